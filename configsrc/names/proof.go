package names

import (
	"slices"

	"fingerpost/resolver/catalog"
)

// SettleProofs sets what a change of a project's domains by a key that is limited to projects makes of their proofs. A
// name that the project has keeps its Verified, whatever the change says. A new one, which may come from a rename, is
// pending if the defaults require proofs of such keys. If they do not, it has no proof, and a refused name is not set
// free by its rename, nor by taking it out and putting it back: notes are those of the new names.
func SettleProofs(was, is []catalog.Domain, notes map[string]string, defaults *catalog.Defaults) {
	for i := range is {
		d := &is[i]
		if before := named(was, d.Name); before != nil {
			d.Verified = before.Verified
			continue
		}
		refused := d.Verified != nil && (*d.Verified == catalog.VerifiedPending || *d.Verified == catalog.VerifiedLost)
		if d.Verified = nil; refused || defaults.Requires() {
			pending := catalog.VerifiedPending
			d.Verified = &pending
		}
		if note := notes[d.Name]; note == NotePending || note == NoteLost {
			d.Verified = &note
		}
	}
}

// MayProve reports whether a key that is limited to projects may bring about a domain with this Verified: nil, or
// FORBIDDEN. was is the domain of the same name in the same project, nil if there is none.
func MayProve(was, is *catalog.Domain, defaults *catalog.Defaults) error {
	refused := is.Verified != nil && (*is.Verified == catalog.VerifiedPending || *is.Verified == catalog.VerifiedLost)
	switch {
	case was != nil && sameVerified(was, is):
		return nil
	case was == nil && (refused || is.Verified == nil && !defaults.Requires()):
		return nil
	}
	e := &catalog.Error{Code: catalog.CodeForbidden,
		Message: "only a key for every project says that a domain is verified"}
	why := "does not follow from what is live"
	if was == nil {
		why = `must be "pending" for ` + is.Name + ", which is new: declare it again"
	}
	e.Problems.Addf("verified", "%s", why)
	return e
}

// MayProveAll is MayProve for a project's domains.
func MayProveAll(was, is []catalog.Domain, defaults *catalog.Defaults) error {
	for i := range is {
		if err := MayProve(named(was, is[i].Name), &is[i], defaults); err != nil {
			return err
		}
	}
	return nil
}

func named(list []catalog.Domain, name string) *catalog.Domain {
	i := slices.IndexFunc(list, func(d catalog.Domain) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func sameVerified(a, b *catalog.Domain) bool {
	return a.Verified == b.Verified || a.Verified != nil && b.Verified != nil && *a.Verified == *b.Verified
}
