package mailer

import (
	"testing"

	"fingerpost/resolver/catalog"
)

// entry is an entry in short: a reason, and after a slash its category.
func entry(reason, category string) catalog.Suppression {
	return catalog.Suppression{Address: "ada@example.com", Reason: catalog.SuppressionReason(reason), Category: category}
}

// TestStops: what of a list stops what.
func TestStops(t *testing.T) {
	t.Parallel()
	const news, offers = "newsletter", "offers"
	complaint, bounce := entry("complaint", ""), entry("hard_bounce", "")
	all, some := entry("manual", ""), entry("manual", news)
	off, offNews := entry("unsubscribe", ""), entry("unsubscribe", news)
	f := func(want string, category string, ignored []catalog.SuppressionReason, entries ...catalog.Suppression) {
		t.Helper()
		got := ""
		if e := stoppedBy(entries, category, ignored); e != nil {
			got = string(e.Reason)
		}
		if got != want {
			t.Errorf("mail of category %q ignoring %q, listed as %+v: stopped by %q, want %q", category, ignored, entries, got,
				want)
		}
	}
	ignore := func(reasons ...catalog.SuppressionReason) []catalog.SuppressionReason { return reasons }
	for _, category := range []string{"", news, offers} {
		f("", category, nil)
		f("complaint", category, nil, complaint)
		f("hard_bounce", category, nil, bounce)
		f("manual", category, nil, all)
	}
	f("manual", news, nil, some)
	f("", offers, nil, some)
	f("", "", nil, some)
	f("unsubscribe", news, nil, offNews)
	f("", offers, nil, offNews)
	f("", "", nil, offNews)
	f("unsubscribe", news, nil, off)
	f("unsubscribe", offers, nil, off)
	f("", "", nil, off)

	// The strongest, in whatever order.
	f("complaint", news, nil, off, all, bounce, complaint)
	f("hard_bounce", news, nil, off, all, bounce)
	f("manual", news, nil, off, some)

	// What is ignored does not count, and the next one does.
	f("hard_bounce", news, ignore(catalog.SuppressComplaint), complaint, bounce, off)
	f("unsubscribe", news, ignore(catalog.SuppressComplaint, catalog.SuppressHardBounce), complaint, bounce, off)
	f("", "", ignore(catalog.SuppressHardBounce, catalog.SuppressComplaint, catalog.SuppressManual), complaint, bounce, all, off)
}
