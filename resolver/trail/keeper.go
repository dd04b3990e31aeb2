// Package trail writes the audit trail of a node: it turns the changes that the store commits into entries of the
// ledger.
//
// The entries of a change are durable in the ledger before the store commits the change: the store, which commits
// without a sync, is never ahead of the trail. What a crash leaves is a store that is behind. The next look then finds
// changes in the files that the trail has already: a Keeper remembers what the trail says of such objects, and gives
// them no second entry, and the times of the first.
//
// While the ledger refuses, writes of clients are refused with catalog.ErrUnaudited. Changes that people make in the
// files go live nevertheless: their entries wait in memory, and are lost with the process.
//
// The package holds no files of its own. Package ledger stores the entries and their hash chains, package store tells
// the fields that a change has touched.
package trail

import (
	"log/slog"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"
)

// A Keeper writes the trail. Its methods must not be called concurrently.
type Keeper struct {
	log *slog.Logger
	now func() time.Time

	ledger  *ledger.Ledger // the instance that is known here; nil before the first one
	last    int64          // id of the newest entry
	ahead   ahead
	waiting []catalog.AuditEntry // entries of changes that were made while the ledger refused
	days    map[int64]int        // for waiting, see ledger.AppendAudit
	dropped int                  // entries for which there was no room in waiting
}

const (
	maxWaiting = 10_000 // entries
	maxBatch   = 5000   // entries
)

// New returns a Keeper that has met no ledger yet. now gives the entries their times.
func New(log *slog.Logger, now func() time.Time) *Keeper { return &Keeper{log: log, now: now} }

// CatchUp gets to know a ledger that was opened since the last change, and gives it the entries that wait. It returns
// l, or nil if l is nil or takes no entries.
func (k *Keeper) CatchUp(st *store.Store, l *ledger.Ledger) *ledger.Ledger {
	if l == nil || l.Err() != nil {
		return nil
	}
	if l != k.ledger {
		if err := k.meet(st, l); err != nil {
			k.log.Error("the audit trail cannot be read", "error", err)
			return nil
		}
	}
	if len(k.waiting) > 0 {
		if k.add(l, k.waiting, k.days) != nil {
			return nil
		}
		if k.dropped > 0 {
			k.log.Error("audit trail: entries were lost while the ledger was not available", "lost", k.dropped)
		}
		k.waiting, k.days, k.dropped = nil, nil, 0
	}
	return l
}

// meet compares a ledger with what is known of the trail.
func (k *Keeper) meet(st *store.Store, l *ledger.Ledger) error {
	stored, err := st.AuditID()
	if err != nil {
		return err
	}
	switch {
	case k.ledger == nil:
		err = l.AuditSince(stored, func(e *catalog.AuditEntry) error {
			k.ahead.add(e)
			return nil
		})
		for i := range k.waiting { // made since, and not told of yet
			delete(k.ahead, keyOf(&k.waiting[i]))
		}
	case l.LastAudit() > k.last:
		err = l.ForgetAudit(k.last) // their writers got an error, or they wait
	}
	if err != nil {
		return err
	}
	k.ledger, k.last = l, max(k.last, stored, l.LastAudit())
	return nil
}

// add appends entries in batches. On an error, those of a batch that failed may be on disk; see meet.
func (k *Keeper) add(l *ledger.Ledger, entries []catalog.AuditEntry, days map[int64]int) error {
	for len(entries) > 0 {
		n := min(len(entries), maxBatch)
		last, err := l.AppendAudit(append([]catalog.AuditEntry(nil), entries[:n]...), k.last, days)
		if err != nil {
			return err
		}
		k.last, entries = last, entries[n:]
	}
	return nil
}

// Record writes the entries of a change that is about to be committed, and tells the store in e.AuditID how far it then
// agrees with the trail. It returns catalog.ErrUnaudited if the change must not be made. l is what CatchUp has
// returned, now the time that the store gives the changed objects.
func (k *Keeper) Record(l *ledger.Ledger, c *catalog.Change, e *store.Effect, now time.Time) error {
	entries, days := k.entries(e, now.UTC().Truncate(time.Microsecond))
	if len(entries) == 0 {
		e.AuditID = k.upTo(l, e)
		return nil
	}
	if c.Recording != nil {
		defer c.Recording()()
	}
	if l == nil || k.add(l, entries, days) != nil {
		for i := range c.Files {
			if c.Files[i].Waits {
				return catalog.ErrUnaudited
			}
		}
		k.queueEntries(entries, days)
		return nil
	}
	for i := range entries {
		k.ahead.add(&entries[i]) // until the store has committed
	}
	e.AuditID = k.upTo(l, e)
	return nil
}

// GiveTimes gives the objects of a change the times of the trail, where the store has lost the commit in a crash and they
// are what they were then: a client or an edge may have seen these times.
func (k *Keeper) GiveTimes(c *catalog.Change) {
	if len(k.ahead) == 0 {
		return
	}
	for i := range c.Files {
		d := c.Files[i].Declared
		if d == nil {
			continue
		}
		for _, o := range d.Objects() {
			switch o.Kind {
			case catalog.KindProject, catalog.KindDomain, catalog.KindTemplate:
			default: // has no times
				continue
			}
			of := key{noun: o.Noun(), project: o.ProjectID}
			if o.Kind.Named() {
				of.object = o.Name
			}
			if known := k.ahead[of]; known != nil && known.same(o.Fields()) {
				c.Files[i].Times = append(c.Files[i].Times, catalog.ObjectTime{Kind: o.Kind, UUID: o.UUID,
					CreatedAt: known.created, UpdatedAt: known.updated})
			}
		}
	}
}

// queueEntries lets entries wait for the ledger.
func (k *Keeper) queueEntries(entries []catalog.AuditEntry, days map[int64]int) {
	room := min(len(entries), maxWaiting-len(k.waiting))
	if lost := len(entries) - room; lost > 0 {
		if k.dropped == 0 {
			k.log.Error("audit trail: entries are lost, because too many wait for the ledger", "waiting", maxWaiting)
		}
		k.dropped += lost
	}
	k.waiting = append(k.waiting, entries[:room]...)
	if k.days == nil {
		k.days = map[int64]int{}
	}
	for project, n := range days {
		k.days[project] = n
	}
}

// entries returns the entries of a change, without what the trail has already.
func (k *Keeper) entries(e *store.Effect, now time.Time) (entries []catalog.AuditEntry, days map[int64]int) {
	if e.Loaded {
		k.ahead = nil // the files of this load are what is served
		if e.Generation > 1 && e.Counts.Projects == 0 {
			return nil, nil // a start with no files
		}
		return []catalog.AuditEntry{{Time: now, Generation: e.Generation, Action: catalog.AuditLoad, Door: catalog.DoorFile,
			Changes: []catalog.FieldChange{
				{Field: "projects", After: int64(e.Counts.Projects)}, {Field: "domains", After: int64(e.Counts.Domains)}}}}, nil
	}
	for i := range e.Objects {
		o := &e.Objects[i]
		if known := k.ahead[keyOf(&o.Entry)]; known != nil && !known.rebase(&o.Entry, o.After) {
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
func (k *Keeper) upTo(l *ledger.Ledger, e *store.Effect) int64 {
	left := len(k.ahead)
	counted := map[key]bool{}
	for i := range e.Objects {
		if of := keyOf(&e.Objects[i].Entry); k.ahead[of] != nil && !counted[of] {
			counted[of] = true
			left--
		}
	}
	if l == nil || left > 0 || len(k.waiting) > 0 {
		return 0
	}
	return k.last
}

// Committed notes that the store has a change.
func (k *Keeper) Committed(e *store.Effect) {
	if e.Loaded {
		k.ahead = nil
	}
	for i := range e.Objects {
		delete(k.ahead, keyOf(&e.Objects[i].Entry))
	}
}

// Settle compares what the trail has and the store does not with what is served, once all files have been looked at: a
// change that was taken back meanwhile gets an entry of its own. l is what CatchUp has returned.
func (k *Keeper) Settle(st *store.Store, l *ledger.Ledger) error {
	if l == nil || len(k.ahead) == 0 {
		return nil
	}
	var entries []catalog.AuditEntry
	for _, of := range k.ahead.keys() {
		o, err := st.Object(catalog.KindOfNoun(of.noun), of.project, of.object)
		if err != nil {
			return err
		}
		slug, err := st.Slug(of.project)
		if err != nil {
			return err
		}
		known := k.ahead[of]
		e := catalog.AuditEntry{Action: of.noun + ".update", ProjectID: of.project, Slug: slug, Object: known.object,
			Door: catalog.DoorFile,
			Time: k.time(), Generation: st.Generation()}
		var after func() []catalog.Field
		if o != nil {
			after = o.Fields
		}
		if known.rebase(&e, after) {
			entries = append(entries, e)
		}
	}
	if k.add(l, entries, nil) != nil {
		k.queueEntries(entries, nil)
	}
	k.ahead = nil
	return nil
}

// Note appends an entry that tells of no change of an object, such as catalog.AuditConfirm. It is durable when Note
// returns. If the ledger refuses it, the entry waits in memory. l is what CatchUp has returned.
func (k *Keeper) Note(l *ledger.Ledger, e catalog.AuditEntry) {
	e.Time = k.time()
	entries := []catalog.AuditEntry{e}
	if l == nil || k.add(l, entries, nil) != nil {
		k.queueEntries(entries, nil)
	}
}

// NoteAll appends entries as Note does, together with other records of the ledger: all or nothing. Nothing waits: if the
// ledger refuses them, it returns why.
func (k *Keeper) NoteAll(l *ledger.Ledger, entries []catalog.AuditEntry, with ledger.AuditWith) error {
	if l == nil {
		return catalog.ErrUnaudited
	}
	for i := range entries {
		entries[i].Time = k.time()
	}
	last, err := l.AppendAuditWith(entries, k.last, nil, with)
	if err == nil {
		k.last = last
	}
	return err
}

// time returns the time of an entry that is made now.
func (k *Keeper) time() time.Time { return k.now().UTC().Truncate(time.Microsecond) }
