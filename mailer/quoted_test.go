package mailer

import (
	"bytes"
	"mime/quotedprintable"
	"strings"
	"testing"
	"time"
)

// FuzzQuoted compares appendQuoted with mime/quotedprintable, which must write the same bytes, and reads both back.
func FuzzQuoted(f *testing.F) {
	for n := 70; n < 80; n++ {
		x := strings.Repeat("x", n)
		for _, end := range []string{"", " ", "\t", "  ", "=", "\u00e9", " \n", "\n ", "x=\n\n", "\u00e9\u00e9 \n.", "\x7f"} {
			f.Add(x + end)
		}
	}
	f.Add("")
	f.Add("\n\n")
	f.Add(strings.Repeat("\u00e9", 60) + "\n" + strings.Repeat(" ", 200) + "\n" + strings.Repeat("=", 60))
	f.Fuzz(func(t *testing.T, body string) {
		body = strings.ReplaceAll(body, "\r", "")
		var want bytes.Buffer
		w := quotedprintable.NewWriter(&want)
		_, _ = w.Write([]byte(body))
		_ = w.Close()
		got := appendQuoted([]byte("before"), body)
		if !bytes.Equal(got, append([]byte("before"), want.Bytes()...)) {
			t.Fatalf("%q is written\n%q, want\n%q", body, got, want.Bytes())
		}
		if err := verifyBody("text/plain", want.Bytes(), body); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
	})
}

// TestFormsAreBounded: a sender more than are kept costs another one, not more memory, and a form that is kept makes the same
// message as a new one.
func TestFormsAreBounded(t *testing.T) {
	var c composer
	d := Draft{FromEmail: "hello@acme.example", ToEmail: "ada@example.com", Subject: "s", Text: "t", MessageID: "<1.2@acme.example>", Date: time.Unix(1e9, 0)}
	for i := range maxForms + 10 {
		d.FromName = strings.Repeat("x", i%200) + string(rune('a'+i%26)) + strings.Repeat("y", i/200)
		message, err := c.compose(d)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := c.compose(d); err != nil || !bytes.Equal(again, message) {
			t.Fatalf("%q, then %q, %v", message, again, err)
		}
		if len(c.forms) > maxForms {
			t.Fatalf("%d forms are kept", len(c.forms))
		}
	}
	if len(c.forms) != maxForms {
		t.Errorf("%d forms are kept, want %d", len(c.forms), maxForms)
	}
}
