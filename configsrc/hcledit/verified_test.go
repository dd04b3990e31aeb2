package hcledit_test

import (
	"slices"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A domain's verified comes, changes and goes within its line, whatever stands around it.
func TestVerifiedIsOneLine(t *testing.T) {
	t.Parallel()
	pending, day := catalog.VerifiedPending, "2026-11-24"
	f := func(name, src string, to *string, want string) {
		t.Helper()
		edited(t, name, src, want, func(src []byte) ([]byte, error) {
			r, ds := hclfile.Decode("a.hcl", src, hclfile.Options{})
			if ds.HasErrors() {
				t.Fatalf("%s: %v", name, ds)
			}
			old := &r.Declared.Projects[0]
			now := *old
			now.Domains = slices.Clone(old.Domains)
			now.Domains[0].Verified = to
			d := hcledit.NewDraft(r)
			if err := d.RewriteProject(old, &now); err != nil {
				return nil, err
			}
			return d.Bytes()
		})
	}
	in := func(domain string) string { return "project \"a\" {\n  name = \"A\"\n\n  " + domain + "\n}\n" }
	for _, c := range []struct {
		name, before string
		to           *string
		after        string
	}{
		{"added to an empty block", `domain "a.example" {} # ours`, &pending, `domain "a.example" { verified = "pending" } # ours`},
		{"added to a blank block", `domain "a.example" {  }`, &day, `domain "a.example" { verified = "2026-11-24" }`},
		{"changed", `domain "a.example" { verified = "pending" } # ours`, &day, `domain "a.example" { verified = "2026-11-24" } # ours`},
		{"equal", `domain "a.example" { verified="pending" }`, &pending, `domain "a.example" { verified="pending" }`},
		{"removed", `domain "a.example" { verified = "pending" } # ours`, nil, `domain "a.example" {} # ours`},
		{"null stays", `domain "a.example" { verified = null }`, nil, `domain "a.example" { verified = null }`},
		{"null replaced", `domain "a.example" { verified = null }`, &day, `domain "a.example" { verified = "2026-11-24" }`},
		{"comment in the block", `domain "a.example" { /* ours */ }`, &pending, "domain \"a.example\" {\n    /* ours */\n    verified = \"pending\"\n  }"},
		{"second attribute", `domain "a.example" { primary = true }`, &pending, "domain \"a.example\" {\n    primary  = true\n    verified = \"pending\"\n  }"},
		{"added in lines", "domain \"a.example\" {\n    primary = true # first\n  }", &day, "domain \"a.example\" {\n    primary  = true # first\n    verified = \"2026-11-24\"\n  }"},
		{"changed in lines", "domain \"a.example\" {\n    verified = \"pending\" # soon\n    # why\n    primary = true\n  }", &day,
			"domain \"a.example\" {\n    verified = \"2026-11-24\" # soon\n    # why\n    primary = true\n  }"},
		{"removed in lines", "domain \"a.example\" {\n    primary = true\n    verified = \"pending\"\n  }", nil, "domain \"a.example\" {\n    primary = true\n  }"},
		{"other spelling of the name", `domain "A.Example." {}`, &day, `domain "A.Example." { verified = "2026-11-24" }`},
	} {
		f(c.name, in(c.before), c.to, in(c.after))
	}
}
