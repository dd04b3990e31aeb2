package edits

import (
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// settleProofs sets what the edit of a key that is limited to projects makes of the proofs of a project's domains. had
// are the notes of the names that come or go. The defaults are those that are live, also for a proposal.
func settleProofs(w *attempt, project catalog.UUID, have, want []catalog.Domain) (had map[string]string, err error) {
	had = map[string]string{}
	for _, name := range names.Moving(have, want) {
		if had[name], err = names.Noted(w.Facts, project, name); err != nil {
			return nil, err
		}
	}
	names.SettleProofs(have, want, had, w.o.Live.Defaults())
	return had, nil
}

// noteProofs notes what the files do not say of the proofs of settled domains.
func noteProofs(w *attempt, project catalog.UUID, had map[string]string, have, want []catalog.Domain) {
	w.update.notes = DomainNotes{project, had, names.NotesOf(have, want, had, w.o.Live.Defaults())}
}
