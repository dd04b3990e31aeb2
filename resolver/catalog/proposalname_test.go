package catalog_test

import (
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// What is a good name of a proposal is a good name of a branch.
func TestProposalNames(t *testing.T) {
	t.Parallel()
	f := func(name string, want bool) {
		t.Helper()
		if got := catalog.ValidProposalName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
		if !want {
			return
		}
		testrig.Need(t, "git")
		if out, err := testrig.TryGit(t.TempDir(), "check-ref-format", "refs/heads/propose/"+name); err != nil {
			t.Errorf("git refuses %q: %s", name, out)
		}
	}
	for _, name := range []string{"a", "1", "rename-shop", "a.b_c-d", "lock", "a.locked", "a-", "a_", strings.Repeat("a", 63)} {
		f(name, true)
	}
	for _, name := range []string{"", "A", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", strings.Repeat("a", 64), "a..b", "a.", "a.lock", "a~1", "@"} {
		f(name, false)
	}
}
