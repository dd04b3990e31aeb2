package hcledit_test

import (
	"errors"
	"strings"
	"testing"

	"fingerpost/configsrc/hcledit"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	const base = `# Acme
project "acme" {
  name   = "Acme"
  status = "ACTIVE"
  domain "a.example" {}
}

key "ci" {
  id       = "7kq2m9"
  hash     = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
  allow    = ["read"]
  projects = ["acme"]
}
`
	edit := func(src string, pairs ...string) []byte {
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(src, pairs[i]) {
				t.Fatalf("%q is not in %s", pairs[i], src)
			}
		}
		return []byte(strings.NewReplacer(pairs...).Replace(src))
	}
	name := func(n string) []string { return []string{`"Acme"`, `"` + n + `"`} }
	domain := []string{"  domain \"a.example\" {}\n", "  domain \"a.example\" {}\n  domain \"b.example\" {}\n"}
	status := []string{`"ACTIVE"`, `"SUSPENDED"`}
	block := base[strings.Index(base, "project"):strings.Index(base, "\nkey")]
	for what, c := range map[string]struct {
		after, theirs, want []byte
		force               bool
		conflict            string
	}{
		"other field":       {after: edit(base, name("B")...), theirs: edit(base, status...), want: edit(base, append(name("B"), status...)...)},
		"next to a comment": {after: edit(base, name("B")...), theirs: edit(base, "# Acme", "# Acme, with care"), want: edit(base, append(name("B"), "# Acme", "# Acme, with care")...)},
		"same change":       {after: edit(base, name("B")...), theirs: edit(base, append(name("B"), status...)...), want: edit(base, append(name("B"), status...)...)},
		"same field":        {after: edit(base, name("B")...), theirs: edit(base, name("C")...), conflict: "acme: name"},
		"forced":            {after: edit(base, name("B")...), theirs: edit(base, name("C")...), want: edit(base, name("B")...), force: true},
		"gone":              {after: edit(base, name("B")...), theirs: edit(base, block, ""), conflict: "gone"},
		"no file":           {after: edit(base, name("B")...), theirs: nil, conflict: "gone"},
		"added":             {after: edit(base, domain...), theirs: edit(base, name("B")...), want: edit(base, append(domain, name("B")...)...)},
		"domain removed":    {after: edit(base, "  domain \"a.example\" {}\n", ""), theirs: edit(base, status...), want: edit(base, append(status, "  domain \"a.example\" {}\n", "")...)},
		"removed":           {after: edit(base, block, ""), theirs: edit(base, status...), conflict: "removed here"},
		"key":               {after: edit(base, `["read"]`, `["read", "write"]`), theirs: edit(base, name("B")...), want: edit(base, append(name("B"), `["read"]`, `["read", "write"]`)...)},
		"both keys":         {after: edit(base, `["read"]`, `["read", "write"]`), theirs: edit(base, `["read"]`, `["resolve"]`), conflict: "key ci"},
	} {
		got, err := hcledit.Merge("acme.hcl", []byte(base), c.after, c.theirs, c.force)
		var clash *hcledit.Conflict
		switch {
		case c.conflict != "" && (!errors.As(err, &clash) || !strings.Contains(err.Error(), c.conflict)):
			t.Errorf("%s: %v", what, err)
		case c.conflict == "" && (err != nil || string(got) != string(c.want)):
			t.Errorf("%s: %v\n%s\nwant\n%s", what, err, got, c.want)
		}
	}
	if got, err := hcledit.Merge("w.html", []byte("a"), []byte("b"), []byte("c"), false); err == nil {
		t.Errorf("text was merged: %s", got)
	}
}
