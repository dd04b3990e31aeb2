package hclfile_test

import (
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
)

// TestPointers: what a checkout without git-lfs or git-crypt leaves in the place of a file is a problem that says so, and
// is never mailed.
func TestPointers(t *testing.T) {
	t.Parallel()
	const (
		pointer  = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
		template = "template \"A\" {\n  name = \"A\"\n  subject_template = \"A\"\n  body_html = file(\"a.html\")\n}\n"
	)
	f := func(src, body, want string) {
		t.Helper()
		_, ds := hclfile.Decode("a.hcl", []byte(src), hclfile.Options{ReadFile: func(string) ([]byte, error) { return []byte(body), nil }})
		if got := text(ds); want == "" && ds.HasErrors() || !strings.Contains(got, want) {
			t.Errorf("%.40q, %.40q: %s", src, body, got)
		}
	}
	f(template, pointer, `the file "a.html" is a pointer of Git LFS`)
	f(template, "\ufeff"+strings.ReplaceAll(pointer, "\n", "\r\n"), `the file "a.html" is a pointer of Git LFS`)
	f(pointer, "", "the file is a pointer of Git LFS")
	f("\x00GITCRYPT\x00\x17\x04", "", "git-crypt unlock")
	f(template, "<p>version https://git-lfs.github.com/spec/v1 oid sha256</p>", "")
}
