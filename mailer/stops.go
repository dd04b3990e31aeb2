package mailer

import (
	"slices"

	"fingerpost/resolver/catalog"
)

// stoppedBy returns the strongest of the entries of a recipient that stop a mail, nil if none does. category is that of the
// mail's template, "" for none, and ignored are the reasons that do not count for this mail. A complaint and a hard bounce
// stop everything. A manual entry stops everything, or its category. An unsubscribe stops its category, or without one all
// mail that has a category: what a recipient never subscribed to, such as a new password, is sent.
func stoppedBy(entries []catalog.Suppression, category string,
	ignored []catalog.SuppressionReason) (strongest *catalog.Suppression) {
	for i := range entries {
		e := &entries[i]
		if slices.Contains(ignored, e.Reason) || !stops(e, category) {
			continue
		}
		if strongest == nil || e.Reason.Strength() < strongest.Reason.Strength() {
			strongest = e
		}
	}
	return strongest
}

func stops(e *catalog.Suppression, category string) bool {
	switch e.Reason {
	case catalog.SuppressComplaint, catalog.SuppressHardBounce:
		return true
	case catalog.SuppressManual:
		return e.Category == "" || e.Category == category
	case catalog.SuppressUnsubscribe:
		return category != "" && (e.Category == "" || e.Category == category)
	}
	return true // a reason of a later release: it was listed for something
}

// Ignorable lists the reasons that a send may ignore. Nothing overrides a recipient's own wish.
var Ignorable = []string{string(catalog.SuppressHardBounce), string(catalog.SuppressComplaint),
	string(catalog.SuppressManual)}
