package inbound_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// TestProjects: the mail log decides, then the only project of the block; a project outside of its list is never touched.
func TestProjects(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	all := block("all", catalog.InboundSES)
	all.Projects = nil
	none, gone := block("none", catalog.InboundSES), block("gone", catalog.InboundSES, "nobody")
	none.Projects = []string{}
	r := newRig(t, s.Provider, all, none, gone, block("one", catalog.InboundSES, "acme"),
		block("twice", catalog.InboundSES, "acme", "acme"), block("two", catalog.InboundSES, "acme", "shop"), block("jsons", catalog.InboundJSON, "acme", "shop"))
	now := time.Now()
	n := 0
	address := func() string { return fmt.Sprintf("a%d@example.com", n) } // of the next outcome
	of := func(project int64) string { return r.sent(project, address()) }
	f := func(name, messageID string, want int64) {
		t.Helper()
		address := address()
		n++
		now = now.Add(time.Millisecond)
		result := [5]int{1}
		if want == 0 {
			result = [5]int{0, 0, 0, 0, 1}
		}
		r.takes(name, s.message("Notification", "2", bounce("Permanent", "f"+address, messageID, now, address+" 5.1.1"), now), result)
		for project := int64(1); project <= 3; project++ {
			there, err := r.resolver.Suppressions(project, address)
			if err != nil || (len(there) == 1) != (project == want) {
				t.Errorf("%s, %s: project %d has %v, %v", name, messageID, project, there, err)
			}
		}
	}
	const foreign = "<1234@elsewhere.example>"
	f("one", of(1), 1)
	f("one", r.sent(1, "other@example.com"), 0) // of a mail to somebody else, who may have told it
	f("two", r.sent(3, "other@example.com"), 0)
	f("one", of(2), 0) // of a project that the block does not list: not that of the only entry either
	f("one", of(3), 0)
	f("one", foreign, 1)
	f("one", strings.Replace(of(1), "0123456789abcdef", "fedcba9876543210", 1), 1) // its entry may be too old
	f("one", "", 1)
	f("twice", "", 1)
	f("two", of(1), 1)
	f("two", strings.Trim(of(2), "<>"), 2)
	f("two", of(3), 0)
	f("two", foreign, 0)
	f("all", of(3), 3)
	f("all", of(1), 1)
	f("all", foreign, 0)
	f("all", "<99999999999999999999.0123456789abcdef@x>", 0)
	for _, name := range []string{"none", "gone"} {
		f(name, of(1), 0)
		f(name, "", 0)
	}
	r.takes("jsons", event("hard_bounce", "j@example.com", 3, now), [5]int{0, 0, 0, 0, 1})
	r.takes("jsons", event("hard_bounce", "j@example.com", 77, now), [5]int{0, 0, 0, 0, 1})
	r.takes("jsons", event("hard_bounce", "j@example.com", 0, now), [5]int{0, 0, 0, 0, 1})
	r.takes("jsons", event("hard_bounce", "j@example.com", 2, now), [5]int{1})
	var blocks []string
	for _, trouble := range r.Troubles() {
		if trouble.Dropped.IsZero() {
			t.Errorf("%+v", trouble)
		}
		blocks = append(blocks, trouble.Block)
	}
	if got := strings.Join(blocks, " "); got != "all gone jsons none one two" || r.count("jsons", "unmatched") != 3 {
		t.Errorf("troubles with %s", got)
	}
	if strings.Contains(r.log.String(), "@example.com") {
		t.Errorf("an address is in the log: %s", r.log)
	}
}
