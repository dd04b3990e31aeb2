package console

import (
	"net/url"
	pathpkg "path"
	"strings"
	"testing"
	"unicode"
)

// FuzzOwnPath: after signing in nobody leaves the console, whatever the link said.
func FuzzOwnPath(f *testing.F) {
	for _, s := range []string{"", "/console/", "/console/projects?q=a", "https://evil.example/", "//evil.example", `/\evil.example`, "/console//evil.example",
		"/console/../api", "/console/../../evil", "/console/%2e%2E/evil", "/console/./x/..", "/console/%2e%2e/%2e%2e//evil.example", "javascript:alert(1)", "/console/\t//evil.example"} {
		f.Add(s)
	}
	base, _ := url.Parse("http://fingerpost.example/console/sign-in")
	f.Fuzz(func(t *testing.T, path string) {
		to := ownPath(path)
		u, err := base.Parse(to)
		if err != nil || u.Scheme != base.Scheme || u.Host != base.Host {
			t.Errorf("%q leads to %q (%v)", path, to, err)
		}
		if strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") || !strings.HasPrefix(to, Prefix) ||
			!strings.HasPrefix(pathpkg.Clean(u.Path)+"/", Prefix) {
			t.Errorf("%q leads to %q", path, to)
		}
	})
}

// FuzzHighlight: colours change no character of a block.
func FuzzHighlight(f *testing.F) {
	for _, s := range []string{"", "project \"a\" {\n  name = \"b\" # c\n}\n", "x = <<-EOT\n  # no comment\nEOT\n", `a = "\"" // 1`, "\xff\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, block string) {
		var back strings.Builder
		for _, l := range highlight(block, 1) {
			for _, p := range l.Parts {
				back.WriteString(p.Text)
			}
			back.WriteByte('\n')
		}
		if got := back.String(); got != block && got != block+"\n" {
			t.Errorf("%q became %q", block, got)
		}
	})
}

// FuzzVisible: what is shown has no character that hides, or turns text around.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "Acme", "a\u202eb\u200b\u2066\ufeff", "\x1b[31m", "naïve 日本 עברית"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range visible(s) {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x200b || r == 0xfeff || r == 0x2060) {
				t.Errorf("%q shows %U", s, r)
			}
		}
	})
}
