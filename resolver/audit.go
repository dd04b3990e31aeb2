package resolver

import (
	"context"
	"errors"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"
)

// The audit trail is in the ledger. The entries of a change are durable there before the store commits the change: the
// store, which commits without a sync, is never ahead of the trail. What a crash leaves is a store that is behind. The
// next look then finds changes in the files that the trail has already, see auditAhead.
//
// While the ledger refuses, writes of clients are refused, too. Changes that people make in the files go live
// nevertheless: their entries wait in memory.

// auditKeeping is the Resolver's state for the audit trail. It is guarded by applying.
type auditKeeping struct {
	ledger  *ledger.Ledger // the instance that is known here; nil before the first one
	last    int64          // id of the newest entry
	ahead   auditAhead
	waiting []catalog.AuditEntry // entries of changes that were made while the ledger refused
	days    map[int64]int        // for waiting, see ledger.AppendAudit
	dropped int                  // entries for which there was no room in waiting
}

const (
	maxAuditWaiting = 10_000
	auditBatch      = 5000 // entries
)

// auditLedger returns the ledger, nil while it takes no entries: the entries of a damaged one come before new ones.
func (r *Resolver) auditLedger() *ledger.Ledger {
	l := r.mail.ledger.Load()
	r.mail.mu.Lock()
	defer r.mail.mu.Unlock()
	if r.mail.recovering() && !r.mail.recovered {
		return nil
	}
	return l
}

// Auditable reports whether the audit trail takes entries: otherwise a write of a client is refused.
func (r *Resolver) Auditable() bool { return r.auditLedger() != nil }

// catchUp gets to know a ledger that was opened since the last change, and gives it the entries that wait. It returns
// nil while there is none. The caller holds applying.
func (r *Resolver) catchUp(st *store.Store) *ledger.Ledger {
	a, l := &r.audit, r.auditLedger()
	if l == nil || l.Err() != nil {
		return nil
	}
	if l != a.ledger {
		if err := r.meetLedger(st, l); err != nil {
			r.log.Error("the audit trail cannot be read", "error", err)
			return nil
		}
	}
	if len(a.waiting) > 0 {
		if r.appendAudit(l, a.waiting, a.days) != nil {
			return nil
		}
		if a.dropped > 0 {
			r.log.Error("audit trail: entries were lost while the ledger was not available", "lost", a.dropped)
		}
		a.waiting, a.days, a.dropped = nil, nil, 0
	}
	return l
}

// meetLedger compares a ledger with what is known of the trail.
func (r *Resolver) meetLedger(st *store.Store, l *ledger.Ledger) error {
	a := &r.audit
	stored, err := st.AuditID()
	if err != nil {
		return err
	}
	switch {
	case a.ledger == nil:
		err = l.AuditSince(stored, func(e *catalog.AuditEntry) error {
			a.ahead.add(e)
			return nil
		})
		for i := range a.waiting { // made since, and not told of yet
			delete(a.ahead, keyOf(&a.waiting[i]))
		}
	case l.LastAudit() > a.last:
		err = l.ForgetAudit(a.last) // their writers got an error, or they wait
	}
	if err != nil {
		return err
	}
	a.ledger, a.last = l, max(a.last, stored, l.LastAudit())
	return nil
}

// flushAudit gives a ledger that is back the entries that wait.
func (r *Resolver) flushAudit() {
	r.applying.Lock()
	defer r.applying.Unlock()
	r.catchUp(r.writes.Load())
}

// appendAudit appends entries in batches. On an error, those of a batch that failed may be on disk; see meetLedger.
func (r *Resolver) appendAudit(l *ledger.Ledger, entries []catalog.AuditEntry, days map[int64]int) error {
	for len(entries) > 0 {
		n := min(len(entries), auditBatch)
		last, err := l.AppendAudit(append([]catalog.AuditEntry(nil), entries[:n]...), r.audit.last, days)
		if err != nil {
			return err
		}
		r.audit.last, entries = last, entries[n:]
	}
	return nil
}

// record writes the entries of a change that is about to be committed. An error means that the change must not be made.
// l is what catchUp has returned. The caller holds applying.
func (r *Resolver) record(l *ledger.Ledger, c *catalog.Change, e *store.Effect) error {
	a := &r.audit
	entries, days := a.entries(e, r.options.Now().UTC().Truncate(time.Microsecond))
	if len(entries) == 0 {
		e.AuditID = a.upTo(l, e)
		return nil
	}
	if l == nil || r.appendAudit(l, entries, days) != nil {
		for i := range c.Files {
			if c.Files[i].By != nil {
				return catalog.ErrUnaudited
			}
		}
		r.keepAudit(entries, days)
		return nil
	}
	for i := range entries {
		a.ahead.add(&entries[i]) // until the store has committed
	}
	e.AuditID = a.upTo(l, e)
	return nil
}

// keepAudit lets entries wait for the ledger.
func (r *Resolver) keepAudit(entries []catalog.AuditEntry, days map[int64]int) {
	a := &r.audit
	room := min(len(entries), maxAuditWaiting-len(a.waiting))
	if lost := len(entries) - room; lost > 0 {
		if a.dropped == 0 {
			r.log.Error("audit trail: entries are lost, because too many wait for the ledger", "waiting", maxAuditWaiting)
		}
		a.dropped += lost
	}
	a.waiting = append(a.waiting, entries[:room]...)
	if a.days == nil {
		a.days = map[int64]int{}
	}
	for project, n := range days {
		a.days[project] = n
	}
}

// entries returns the entries of a change, without what the trail has already.
func (a *auditKeeping) entries(e *store.Effect, now time.Time) (entries []catalog.AuditEntry, days map[int64]int) {
	if e.Loaded {
		a.ahead = nil // the files of this load are what is served
		if e.Generation > 1 && e.Counts.Projects == 0 {
			return nil, nil // a start with no files
		}
		return []catalog.AuditEntry{{Time: now, Generation: e.Generation, Action: catalog.AuditLoad, Door: catalog.DoorFile, Changes: []catalog.FieldChange{
			{Field: "projects", After: int64(e.Counts.Projects)}, {Field: "domains", After: int64(e.Counts.Domains)}}}}, nil
	}
	for i := range e.Objects {
		o := &e.Objects[i]
		if known := a.ahead[keyOf(&o.Entry)]; known != nil && !known.rebase(&o.Entry, o.After) {
			continue
		}
		o.Entry.Time, o.Entry.Generation = now, e.Generation
		entries = append(entries, o.Entry)
		if o.Days > 0 {
			if days == nil {
				days = map[int64]int{}
			}
			days[o.Entry.ProjectID] = o.Days
		}
	}
	return entries, days
}

// upTo returns the id of the newest entry, once the store has what all entries tell of with this change; else 0.
func (a *auditKeeping) upTo(l *ledger.Ledger, e *store.Effect) int64 {
	left := len(a.ahead)
	counted := map[auditKey]bool{}
	for i := range e.Objects {
		if key := keyOf(&e.Objects[i].Entry); a.ahead[key] != nil && !counted[key] {
			counted[key] = true
			left--
		}
	}
	if l == nil || left > 0 || len(a.waiting) > 0 {
		return 0
	}
	return a.last
}

// committed notes that the store has a change.
func (a *auditKeeping) committed(e *store.Effect) {
	if e.Loaded {
		a.ahead = nil
	}
	for i := range e.Objects {
		delete(a.ahead, keyOf(&e.Objects[i].Entry))
	}
}

// settleAudit compares what the trail has and the store does not with what is served, once all files have been looked
// at: a change that was taken back meanwhile gets an entry of its own. The caller holds applying.
func (r *Resolver) settleAudit(st *store.Store) error {
	l := r.catchUp(st)
	if l == nil || len(r.audit.ahead) == 0 {
		return nil
	}
	var entries []catalog.AuditEntry
	for _, key := range r.audit.ahead.keys() {
		fields, err := st.AuditFields(key.noun, key.project, key.object)
		if err != nil {
			return err
		}
		known := r.audit.ahead[key]
		e := catalog.AuditEntry{Action: key.noun + ".update", ProjectID: key.project, Object: known.object, Door: catalog.DoorFile,
			Time: r.options.Now().UTC().Truncate(time.Microsecond), Generation: st.Generation()}
		var after func() []catalog.Field
		if fields != nil {
			after = func() []catalog.Field { return fields }
		}
		if known.rebase(&e, after) {
			entries = append(entries, e)
		}
	}
	if r.appendAudit(l, entries, nil) != nil {
		r.keepAudit(entries, nil)
	}
	r.audit.ahead = nil
	return nil
}

// Note appends an entry that tells of no change of an object, such as catalog.AuditConfirm. It is durable when Note returns. If
// the ledger refuses it, the entry waits in memory.
func (r *Resolver) Note(action string, by catalog.Author, changes ...catalog.FieldChange) {
	r.applying.Lock()
	defer r.applying.Unlock()
	st := r.writes.Load()
	entries := []catalog.AuditEntry{{Time: r.options.Now().UTC().Truncate(time.Microsecond), Generation: st.Generation(), Action: action,
		Door: by.Door, Actor: by.Actor, Key: by.Key, RequestID: by.RequestID, Commit: by.Commit, Changes: changes}}
	if l := r.catchUp(st); l == nil || r.appendAudit(l, entries, nil) != nil {
		r.keepAudit(entries, nil)
	}
}

// Audit returns a page of the audit trail.
func (r *Resolver) Audit(q catalog.AuditQuery) (page catalog.AuditPage, err error) {
	err = r.withMailLog(func(l *ledger.Ledger) (err error) {
		page, err = l.Audit(q)
		return err
	})
	return page, err
}

// AuditHeads calls f with the chain of each project that has entries after an id, and returns the newest entry's id.
func (r *Resolver) AuditHeads(after int64, f func(c *AuditChain)) (last int64, err error) {
	err = r.withMailLog(func(l *ledger.Ledger) error {
		last = l.LastAudit()
		if last == after {
			return nil
		}
		return l.AuditChains(func(c *AuditChain) error {
			if c.Last > after {
				f(c)
			}
			return nil
		})
	})
	return last, err
}

// PruneAudit deletes the entries that are older than the auditRetentionDays of their project, and those of no project
// after ledger.DefaultAuditDays. It ends early with ctx.
func (r *Resolver) PruneAudit(ctx context.Context, now time.Time) error {
	l := r.auditLedger()
	if l == nil {
		return unavailable("the audit trail is not available at the moment")
	}
	var failed error
	err := l.PruneAudit(ctx, now, func(project int64) int {
		if project == 0 {
			return ledger.DefaultAuditDays
		}
		p, defaults, err := r.project(project)
		switch {
		case isNotFound(err):
			return 0
		case err != nil:
			failed = err
			return -1
		case defaults != nil:
			return p.Service.Over(defaults.Service).AuditRetentionDays
		}
		return p.Service.AuditRetentionDays
	})
	return errors.Join(mailError(err), failed)
}

func isNotFound(err error) bool {
	var e *catalog.Error
	return errors.As(err, &e) && e.Code == catalog.CodeNotFound
}

// VerifyAudit checks the chains of the trail, see ledger.Ledger.
func (r *Resolver) VerifyAudit(head [32]byte) (check ledger.AuditCheck, err error) {
	err = r.withMailLog(func(l *ledger.Ledger) (err error) {
		check, err = l.VerifyAudit(head)
		return err
	})
	return check, err
}
