package console

import (
	"net/url"
	"strings"
	"testing"
)

// What is not saved yet takes a bounded amount of memory: older changes are forgotten, the newest is kept.
func TestDraftsAreBounded(t *testing.T) {
	s := new(session)
	keep := func(bytes int) *draft {
		d := &draft{Diff: strings.Repeat("x", bytes/2), sent: url.Values{"bodyText": {strings.Repeat("x", bytes-bytes/2)}}}
		s.addDraft(d)
		return d
	}
	there := func(d *draft) bool { return s.draft(d.ID) == d }
	small := keep(10)
	for range 4 {
		if last := keep(1_000_000); !there(last) {
			t.Error("a change of 1 MB is forgotten at once")
		}
	}
	if !there(small) {
		t.Error("a small change is forgotten after 4 MB of others")
	}
	middle := keep(300_000)
	if there(small) || !there(middle) || len(s.drafts) != 4 {
		t.Errorf("more than 4 MiB of unsaved changes are kept, or too few: %d", len(s.drafts))
	}
	huge := keep(8 << 20)
	if !there(huge) || len(s.drafts) != 1 {
		t.Errorf("next to one that is larger than the bound there are %d", len(s.drafts)-1)
	}
	for range 20 {
		keep(1)
	}
	if len(s.drafts) != maxDrafts || there(huge) {
		t.Errorf("%d small changes are kept, want %d", len(s.drafts), maxDrafts)
	}
}
