package hclfile_test

import (
	"os"
	"testing"

	"fingerpost/configsrc/hclfile"
)

// TestFormat formats to a fixed point that says the same, and refuses what does not parse.
func TestFormat(t *testing.T) {
	f := func(before, after string) {
		t.Helper()
		got, ds := hclfile.Format([]byte(before))
		if ds.HasErrors() || string(got) != after {
			t.Errorf("%q\n got %q\nwant %q\n%s", before, got, after, text(ds))
		}
	}
	f("", "")
	f("\n\n", "")
	f("project /* x */ \"a\"   {\nname=\"A\" # n\ndescription=\"D\"\n}\n\n\n", "project /* x */ \"a\" {\n  name        = \"A\" # n\n  description = \"D\"\n}\n")
	f("\xef\xbb\xbfdefaults {\r\n\tservice_settings {}\r\n}", "defaults {\r\n  service_settings {}\r\n}\r\n")
	f("template \"t\" {\n body_text=<<E\n x  y\nE\n}", "template \"t\" {\n  body_text = <<E\n x  y\nE\n}\n")
	if _, ds := hclfile.Format([]byte("project {")); !ds.HasErrors() {
		t.Error("a broken file is formatted")
	}
	for _, name := range []string{"acme.hcl", "plain.hcl", "identity.hcl", "comment.hcl"} {
		src, err := os.ReadFile("testdata/good/" + name)
		if err != nil {
			t.Fatal(err)
		}
		once, ds := hclfile.Format(src)
		if ds.HasErrors() {
			t.Fatal(text(ds))
		}
		f(string(once), string(once))
	}
}
