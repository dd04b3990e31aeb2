package hclfile

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"fingerpost/cmd/testrig"
)

// full repeats a piece until a file is as large as a file may be.
func full(head, piece, tail string) []byte {
	n := (MaxFileBytes - len(head) - len(tail)) / len(piece)
	return []byte(head + strings.Repeat(piece, n) + tail)
}

// TestTokenMemory reads files of 1 MiB that are nothing but tokens. Each must be refused, by every function that reads
// one, before it costs much memory: without the bound they cost up to 1,576 MB.
func TestTokenMemory(t *testing.T) {
	if testrig.Race {
		t.Skip("code that is made for the race detector allocates more")
	}
	const most = 64 << 20
	n, every := 0, testrig.Size(t, 1, 23)
	f := func(name string, src []byte) {
		if n++; n%every != 0 {
			return // every seventh file is enough outside of CI
		}
		t.Run(name, func(t *testing.T) {
			for door, read := range map[string]func() error{
				"Decode": func() error { _, ds := Decode("h.hcl", src, Options{}); return asError(ds) },
				"Format": func() error { _, ds := Format(src); return asError(ds) },
				"edit":   func() error { _, ds := Parse(src); return asError(ds) },
				"Redact": func() error { Redact(src); return fmt.Errorf("it has no result") },
			} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := read()
				runtime.ReadMemStats(&after)
				if err == nil {
					t.Errorf("%s accepts it", door)
				}
				if used := after.TotalAlloc - before.TotalAlloc; used > most {
					t.Errorf("%s allocates %d MB, want at most %d: %v", door, used>>20, most>>20, err)
				}
			}
		})
	}
	f("newlines", full("", "\n", ""))
	f("carriage returns", full("", "\r\n", ""))
	f("index", full("a = ", "[0]", ""))
	f("index of a name", full("a = b", "[0]", ""))
	f("path", full("a = a", ".a", ""))
	f("minuses", full("a = ", "-", "1"))
	f("bangs", full("a = ", "!", "true"))
	f("list", full("a = [", "1,", "]"))
	f("texts", full("a = [", `"",`, "]"))
	f("blocks", full("", "a{}\n", ""))
	f("attributes", full("", "a=1\n", ""))
	f("commas", full("", ",", ""))
	f("wrong characters", full("", "@", ""))
	f("quotes", full("", "\"\n", ""))
	f("labels", full("a ", `""`, "{}"))
	f("comments", full("", "#\n", ""))
	f("behind a long comment", []byte("# "+strings.Repeat("x", 100_000)+"\n"+strings.Repeat("\n", 900_000)))
}

func asError(ds Diagnostics) error {
	if len(ds) == 0 {
		return nil
	}
	return fmt.Errorf("%+v", ds[0])
}

// TestTokenBound: the message says what is too many, where, and the bound; large files of any sane kind are read.
func TestTokenBound(t *testing.T) {
	testrig.Thorough(t)
	if testrig.Race {
		t.Skip("large files")
	}
	_, ds := Decode("h.hcl", full("", "\n", ""), Options{})
	if len(ds) != 1 || !strings.Contains(ds[0].Summary, "700,000") || ds[0].Start.Line != maxTokenStarts+1 || ds[0].Detail == "" {
		t.Errorf("newlines: %+v", ds)
	}
	// Fewer than 700,000 words and signs, and still too many tokens.
	_, ds = Decode("h.hcl", full("", "key \"k\" {    \n}\n\n", ""), Options{})
	if len(ds) != 1 || !strings.Contains(ds[0].Summary, "400,000") || ds[0].Start.Line < 100_000 {
		t.Errorf("blocks: %+v", ds)
	}

	sane := func(name string, src []byte, least int) {
		if len(src) < MaxFileBytes-15_000 || len(src) > MaxFileBytes {
			t.Fatalf("%s: %d bytes", name, len(src))
		}
		if _, ds := Decode(name, src, Options{}); len(ds) > 0 {
			t.Errorf("%s: %+v", name, ds[0])
		}
		tokens, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos)
		if len(tokens) < least || len(tokens) > maxTokens/3*2 {
			t.Errorf("%s has %d tokens: the bound is not far above it", name, len(tokens))
		}
	}
	var b strings.Builder
	for i := 0; b.Len() < MaxFileBytes-2000; i++ {
		fmt.Fprintf(&b, saneProject, i)
	}
	sane("projects", []byte(b.String()), 150_000)
	html := `<tr><td style="padding:0 8px;color:#333"><a href="https://acme.example/?a=1&b=2">{{projectName}}</a></td></tr>`
	b.Reset()
	for i := 0; b.Len() < MaxFileBytes-12_000; i++ {
		fmt.Fprintf(&b, "template \"T%d\" {\n  name = \"T\"\n  subject_template = \"T\"\n  body_html = <<E\n%sE\n}\n", i, strings.Repeat(html+"\n", 100))
	}
	sane("mail bodies", []byte(b.String()), 1000)
}

const saneProject = `project "shop-%[1]d" {
  name        = "Shop %[1]d"
  description = "Storefront and back office"
  status      = "ACTIVE"

  domain "shop%[1]d.acme.example" { primary = true }
  domain "*.acme%[1]d.example" {}
  domain "old.acme%[1]d.example" { active = false }

  service_settings {
    auth_enabled         = true
    mail_enabled         = true
    sms_provider         = "none"
    audit_retention_days = 365
  }

  auth_settings {
    registration_mode           = "OPEN"
    email_verification_required = true
    jwt_secret                  = env("JWT_%[1]d")
    jwt_expires_in              = "15m"
    password_min_length         = 12
  }

  smtp_config {
    host        = "smtp.acme.example"
    port        = 587
    username    = "acme"
    password    = env("ACME_SMTP_PASSWORD")
    from_email  = "hello@acme.example"
    from_name   = "Acme"
    tls_enabled = true
    active      = true
  }
}

`

// TestTokenStarts: a file never has more tokens than tokenStarts counts, but for the one that marks its end.
func TestTokenStarts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	parts := []string{"\n", "\r\n", "\r", " ", "\t", "a", "ab_c", "_", "-", "0", "1e5", "0a", "1.5", "é", "ß", "…", "𝄞", "\u0301", "\"", " \" \"", "\\", "\\\"", "$", "%", "${", "%{", "$${",
		"~}", "}", "{", "(", "[", "]", "=", "==", "=>", "!", ".", "...", ",", "?", ":", "::", "&&", "&", "|", "<", "<=", "<<E\n", "<<-E\n", "  E\n", "E\n", "#", "//", "/*", "*/", "/", "*", "@", ";", "'", "`", "^", "+", "\x01"}
	for range testrig.Size(t, 20_000, 1_000) {
		var b strings.Builder
		few := 1 + rnd.IntN(len(parts))
		for range 1 + rnd.IntN(60) {
			b.WriteString(parts[rnd.IntN(few)])
		}
		src := []byte(b.String())
		tokens, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos)
		if n := len(tokens) - 1; n > 0 {
			if _, more := tokenStarts(src, n-1); !more {
				t.Fatalf("%q has %d tokens, tokenStarts counts fewer", src, n)
			}
		}
		rnd.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	}
}
