package resolver

import (
	"errors"
	"slices"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/records"
)

// Suppress adds entries to the suppression list of a project, with one entry of the trail, in one durable batch. It
// returns those that the list did not have. An entry that the list has stays as it is. If bounded, the error is CONFLICT
// for a list that would become longer than catalog.MaxSuppressions.
func (r *Resolver) Suppress(project int64, list []catalog.Suppression, by catalog.Author, bounded bool) (
	added []catalog.Suppression, err error) {
	r.applying.Lock()
	defer r.applying.Unlock()
	if added, err = r.notListed(project, list); err != nil || len(added) == 0 {
		return nil, err
	}
	if bounded {
		if err := r.hasRoom(project, len(added)); err != nil {
			return nil, err
		}
	}
	return added, r.changeList(&catalog.SuppressionChange{ProjectID: project, Add: added}, by, ledger.AuditWith{})
}

// hasRoom returns CONFLICT if the list of a project would become longer than catalog.MaxSuppressions with so many more.
func (r *Resolver) hasRoom(project int64, more int) error {
	n, err := r.SuppressionCount(project)
	if err == nil && n+int64(more) > catalog.MaxSuppressions {
		return errListFull
	}
	return err
}

// SuppressOnce is Suppress for one entry, bounded, whose cause has a name: the named value of SetNamed under mark is set
// in the same batch. If there is such a value, nothing is changed, so that a repeat does not bring back what a person has
// removed.
func (r *Resolver) SuppressOnce(project int64, s catalog.Suppression, mark string, value []byte,
	by catalog.Author) (catalog.Once, error) {
	r.applying.Lock()
	defer r.applying.Unlock()
	_, before, err := r.Named(mark)
	if err != nil || before {
		return catalog.OnceBefore, err
	}
	added, err := r.notListed(project, []catalog.Suppression{s})
	switch {
	case err != nil:
		return 0, err
	case len(added) == 0:
		return catalog.OncePresent, r.SetNamed(map[string][]byte{mark: value})
	}
	if err = r.hasRoom(project, 1); err != nil {
		return 0, err
	}
	return catalog.OnceAdded, r.changeList(&catalog.SuppressionChange{ProjectID: project, Add: added}, by,
		ledger.AuditWith{Named: map[string][]byte{mark: value}})
}

var errListFull = &catalog.Error{Code: catalog.CodeConflict,
	Message: "the project's suppression list would have more than 2,000,000 entries: remove some first"}

// Release removes the entries of an address from the suppression list of a project that a query selects by its reason and
// category, with an entry of the trail. It returns them.
func (r *Resolver) Release(project int64, q catalog.SuppressionQuery, by catalog.Author) (
	removed []catalog.Suppression, err error) {
	r.applying.Lock()
	defer r.applying.Unlock()
	there, err := r.Suppressions(project, q.Address)
	if err != nil {
		return nil, err
	}
	for _, s := range there {
		if q.Selects(&s) {
			removed = append(removed, s)
		}
	}
	if len(removed) == 0 {
		return nil, nil
	}
	return removed, r.changeList(&catalog.SuppressionChange{ProjectID: project, Remove: removed}, by, ledger.AuditWith{})
}

// BounceMail stores the entry of a mail that has ended, as UpdateMail does, and lists its recipient in the same batch.
func (r *Resolver) BounceMail(log *catalog.MailLog, s catalog.Suppression) error {
	r.applying.Lock()
	defer r.applying.Unlock()
	added, err := r.notListed(log.ProjectID, []catalog.Suppression{s})
	switch {
	case err != nil:
		return err
	case len(added) == 0:
		return r.UpdateMail(log)
	}
	ended := *log // a write that does not end keeps it
	return r.changeList(&catalog.SuppressionChange{ProjectID: log.ProjectID, Add: added},
		catalog.Author{Door: catalog.DoorMail}, ledger.AuditWith{Ended: &ended})
}

// notListed returns the entries that a list does not have, each once. The caller holds applying.
func (r *Resolver) notListed(project int64, list []catalog.Suppression) (missing []catalog.Suppression, err error) {
	seen := map[string]bool{}
	for i := range list {
		s := &list[i]
		key := s.Key()
		if seen[key] {
			continue
		}
		seen[key] = true
		there, err := r.Suppressions(project, s.Address)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(there, func(t catalog.Suppression) bool { return t.Key() == key }) {
			missing = append(missing, *s)
		}
	}
	return missing, nil
}

// changeList makes a change with its entry of the trail, and with more in the same batch. The caller holds applying:
// nothing else changes lists.
func (r *Resolver) changeList(c *catalog.SuppressionChange, by catalog.Author, with ledger.AuditWith) error {
	if _, err := r.MailLedger(); err != nil {
		return err
	}
	e := catalog.AuditEntry{Action: catalog.AuditSuppress, ProjectID: c.ProjectID, Door: by.Door, Actor: by.Actor,
		Key: by.Key, RequestID: by.RequestID, Changes: listChanges(c)}
	of := c.Add
	if len(c.Remove) > 0 {
		e.Action, of = catalog.AuditRelease, c.Remove
	}
	if one := slices.IndexFunc(of, func(s catalog.Suppression) bool { return s.Address != of[0].Address }) < 0; one {
		e.Object = of[0].Address
	}
	st := r.stores.Writes()
	fillEntry(&e, st)
	with.List = c
	err := r.applying.trail.NoteAll(r.applying.trail.CatchUp(st, r.TrailLedger()), []catalog.AuditEntry{e}, with)
	if errors.Is(err, ledger.ErrClosed) {
		return catalog.Unavailable("the ledger is being replaced; try again")
	}
	return records.RefusalOf(err)
}

// listChanges are what the trail tells of a change of a list: how many entries, and their reasons and categories.
func listChanges(c *catalog.SuppressionChange) []catalog.FieldChange {
	of := append(slices.Clone(c.Add), c.Remove...)
	var reasons []string
	for i := range of {
		reason := string(of[i].Reason)
		if of[i].Category != "" {
			reason += " of " + of[i].Category
		}
		if !slices.Contains(reasons, reason) && len(reasons) < maxReasonsTold {
			reasons = append(reasons, reason)
		}
	}
	return []catalog.FieldChange{{Field: "count", After: int64(len(of))}, {Field: "reasons", After: reasons}}
}

// maxReasonsTold bounds an entry of the trail: a request may name a thousand categories.
const maxReasonsTold = 20
