package hcledit_test

import (
	"errors"
	"fmt"
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
	var clash *hcledit.Conflict
	if got, err := hcledit.Merge("w.html", []byte("a"), []byte("b"), []byte("c"), false); !errors.As(err, &clash) ||
		len(clash.All) != 1 || !clash.All[0].Secret || clash.All[0].Field != "content" {
		t.Errorf("text was merged: %s %v", got, err)
	}
}

// A conflict names each field with its three values, an object that is gone without a field, and never a secret. With
// force, the edit's values win wherever the object is there.
func TestMergeClashes(t *testing.T) {
	t.Parallel()
	const head = "project \"acme\" {\n  uuid = \"0f8fad5b-d9cb-469f-a165-70867728950e\"\n  name = "
	project := func(name, rest string) []byte { return []byte(head + `"` + name + "\"\n" + rest + "}\n") }
	smtp := func(host, password string) string {
		return "  smtp_config {\n    host = \"" + host + "\"\n    username = \"u\"\n    password = \"" + password + "\"\n    from_email = \"a@acme.example\"\n  }\n"
	}
	template := func(subject string) string {
		return "  template \"HI\" {\n    name = \"Hi\"\n    subject_template = \"" + subject + "\"\n    body_text = \"x\"\n  }\n"
	}
	domain := func(active string) string {
		return "  domain \"a.example\" {\n    active = " + active + "\n  }\n"
	}
	for name, c := range map[string]struct {
		before, after, theirs []byte
		want                  string // the clashes, field by field
		force                 string // why it does not fit with force; "": it does
	}{
		"name": {project("A", ""), project("B", ""), project("C", ""), "project acme name: A, C, B;", ""},
		"two objects": {project("A", domain("true")), project("B", domain("false")), project("C", "  description = \"x\"\n"),
			"project acme name: A, C, B; domain a.example : <nil>, <nil>, <nil>;", "gone there"},
		"project gone":    {project("A", ""), project("B", ""), []byte("\n"), "project acme : <nil>, <nil>, <nil>;", "gone there"},
		"project removed": {project("A", ""), []byte("\n"), project("C", ""), "project acme name removed: A, C, <nil>;", ""},
		"project removed, and changed below": {project("A", domain("true")), []byte("\n"), project("A", domain("false")),
			"project acme  removed: <nil>, <nil>, <nil>;", ""},
		"secret": {project("A", smtp("a.example", "one")), project("A", smtp("a.example", "two")),
			project("A", smtp("a.example", "three")), "smtp_config acme password secret: <nil>, <nil>, <nil>;", "in clear text"},
		"both added smtp": {project("A", ""), project("A", smtp("a.example", "one")), project("A", smtp("b.example", "one")),
			"smtp_config acme host: <nil>, b.example, a.example;", ""},
		"both added a template": {project("A", ""), project("A", template("Ours")), project("A", template("Theirs")),
			"template HI subjectTemplate: <nil>, Theirs, Ours;", ""},
	} {
		_, err := hcledit.Merge("acme.hcl", c.before, c.after, c.theirs, false)
		var conflict *hcledit.Conflict
		if !errors.As(err, &conflict) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got strings.Builder
		for _, f := range conflict.Clashes() {
			if f.Project != "acme" || f.ProjectID == 0 {
				t.Errorf("%s: of the project %q, %d", name, f.Project, f.ProjectID)
			}
			marks := map[bool]string{true: " removed"}[f.Removes] + map[bool]string{true: " secret"}[f.Secret]
			fmt.Fprintf(&got, " %s %s %s%s: %v, %v, %v;", f.Kind, f.Object, f.Field, marks, f.Was, f.Live, f.Proposed)
		}
		if strings.TrimSpace(got.String()) != c.want {
			t.Errorf("%s: %s\nwant %s", name, got.String(), c.want)
		}
		_, err = hcledit.Merge("acme.hcl", c.before, c.after, c.theirs, true)
		if (err != nil) != (c.force != "") || err != nil && !strings.Contains(err.Error(), c.force) {
			t.Errorf("%s, with force: %v", name, err)
		}
	}
}

// A secret that a person has written in clear text is not written again, wherever it would be: the edit does not fit.
func TestMergeClearText(t *testing.T) {
	t.Parallel()
	const smtp = "  smtp_config {\n    host = \"a.example\"\n    username = \"u\"\n    password = \"one\"\n    from_email = \"a@acme.example\"\n  }\n"
	for name, files := range map[string][3]string{
		"changed": {"project \"acme\" {\n  name = \"A\"\n" + smtp + "}\n",
			"project \"acme\" {\n  name = \"A\"\n" + strings.Replace(smtp, "one", "two", 1) + "}\n",
			"project \"acme\" {\n  name = \"B\"\n" + smtp + "}\n"},
		"added": {"project \"acme\" {\n  name = \"A\"\n}\n", "project \"acme\" {\n  name = \"A\"\n" + smtp + "}\n",
			"project \"acme\" {\n  name = \"B\"\n}\n"},
		"a new project": {"# A\n", "# A\nproject \"acme\" {\n  name = \"A\"\n" + smtp + "}\n", "# B\n"},
	} {
		if out, err := hcledit.Merge("acme.hcl", []byte(files[0]), []byte(files[1]), []byte(files[2]), false); err == nil ||
			!strings.Contains(err.Error(), "a secret in clear text is not written") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// What belongs to no project and is neither key nor webhook is not merged field by field, and is never left out without a word.
func TestMergeRest(t *testing.T) {
	t.Parallel()
	file := func(require, name string) []byte {
		return []byte("sealing {\n  require = " + require + "\n}\nproject \"acme\" {\n  name = \"" + name + "\"\n}\n")
	}
	out, err := hcledit.Merge("acme.hcl", file("false", "A"), file("true", "A"), file("false", "B"), false)
	if err == nil || !strings.Contains(err.Error(), "more than projects, keys, webhooks, logins and inbound blocks") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A key that was rotated meanwhile is not given its former text again: with force, the edit's fields alone are taken.
func TestMergeKeyRotatedMeanwhile(t *testing.T) {
	t.Parallel()
	key := func(id, hash, rest string) []byte {
		return []byte("key \"ci\" {\n  id    = \"" + id + "\"\n  hash  = \"sha256:" + strings.Repeat(hash, 64) + "\"\n" + rest + "}\n")
	}
	const reads, writes, ends = "  allow = [\"read\"]\n", "  allow = [\"read\", \"write\"]\n", "  expires_at = \"2031-01-01T00:00:00Z\"\n"
	out, err := hcledit.Merge("keys.hcl", key("former00", "a", reads), key("former00", "a", writes), key("rotated0", "b", reads+ends), true)
	got := string(out)
	if err != nil || strings.Contains(got, "former00") || strings.Contains(got, "aaaa") || !strings.Contains(got, "rotated0") ||
		!strings.Contains(got, `"write"`) || !strings.Contains(got, "2031-01-01") {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestMergeLocales: two people who change different texts of a template's languages do not meet.
func TestMergeLocales(t *testing.T) {
	t.Parallel()
	locale := func(tag, subject, text string) string {
		return fmt.Sprintf("\n    locale %q {\n      subject_template = %q\n      body_text        = %q\n    }\n", tag, subject, text)
	}
	file := func(locales ...string) []byte {
		return []byte("project \"acme\" {\n  name = \"Acme\"\n\n  template \"HI\" {\n    name             = \"Hi\"\n    subject_template = \"s\"\n" +
			"    body_text        = \"t\"\n" + strings.Join(locales, "") + "  }\n}\n")
	}
	de, fr := locale("de", "a", "b"), locale("fr", "c", "d")
	for what, c := range map[string]struct {
		before, after, theirs, want []byte
		force                       bool
		conflict                    string
	}{
		"two languages":   {before: file(de, fr), after: file(locale("de", "A", "b"), fr), theirs: file(de, locale("fr", "C", "d")), want: file(locale("de", "A", "b"), locale("fr", "C", "d"))},
		"two texts":       {before: file(de), after: file(locale("de", "A", "b")), theirs: file(locale("de", "a", "B")), want: file(locale("de", "A", "B"))},
		"one text":        {before: file(de), after: file(locale("de", "A", "b")), theirs: file(locale("de", "X", "b")), conflict: "acme: template HI: locales"},
		"forced":          {before: file(de, fr), after: file(locale("de", "A", "b"), fr), theirs: file(locale("de", "X", "B")), force: true, want: file(locale("de", "A", "B"))},
		"both add one":    {before: file(), after: file(de), theirs: file(fr), want: file(fr, de)},
		"both add it":     {before: file(), after: file(de), theirs: file(locale("de", "x", "b")), conflict: "acme: template HI: locales"},
		"removed":         {before: file(de, fr), after: file(fr), theirs: file(de, locale("fr", "C", "d")), want: file(locale("fr", "C", "d"))},
		"removed, edited": {before: file(de, fr), after: file(fr), theirs: file(locale("de", "X", "b"), fr), conflict: "acme: template HI: locales"},
		"edited, removed": {before: file(de, fr), after: file(locale("de", "A", "b"), fr), theirs: file(fr), conflict: "acme: template HI: locales"},
	} {
		got, err := hcledit.Merge("acme.hcl", c.before, c.after, c.theirs, c.force)
		var clash *hcledit.Conflict
		switch {
		case c.conflict != "" && (!errors.As(err, &clash) || !strings.Contains(err.Error(), c.conflict)):
			t.Errorf("%s: %v\n%s", what, err, got)
		case c.conflict == "" && (err != nil || string(got) != string(c.want)):
			t.Errorf("%s: %v\n%s\nwant\n%s", what, err, got, c.want)
		}
	}
}
