package message

import (
	"bytes"
	"mime/quotedprintable"
	"strings"
	"testing"
	"time"
)

// built makes the message of a draft.
func built(t *testing.T, d *soundDraft) []byte {
	t.Helper()
	message, err := d.build()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

// TestVerifyBites: verify finds every mistake in composing. Only a test of the package can show it, because composing
// makes no mistakes.
func TestVerifyBites(t *testing.T) {
	both := Draft{
		FromEmail: "hello@acme.example", FromName: "Bücher", ReplyTo: "support@acme.example", ToEmail: "ada@example.com",
		Subject: "Ihre Bücher", HTML: "<p>first</p>\n<p>line</p>", Text: "first\nline", MessageID: "<1.2@acme.example>", Date: time.Unix(1e9, 0),
	}
	text, html := both, both
	text.HTML, html.Text = "", ""
	f := func(d Draft, old, new string) {
		t.Helper()
		sound, problems := d.check()
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		good := built(t, &sound)
		if err := sound.verify(good); err != nil {
			t.Fatal(err)
		}
		bad := strings.Replace(string(good), old, new, 1)
		if bad == string(good) {
			t.Fatalf("there is no %q in\n%s", old, good)
		}
		if err := sound.verify([]byte(bad)); err == nil {
			t.Errorf("%q in the place of %q passes:\n%s", new, old, bad)
		} else if strings.Contains(err.Error(), "ada") {
			t.Errorf("the error quotes the mail: %v", err)
		}
	}
	// bytes and lines
	f(both, "first\r\n", "first\r")
	f(both, "first\r\n", "first\n")
	f(both, "first\r\n", "first\r\r\n")
	f(both, "first", "fi\x00rst")
	f(both, "first", "fürst")
	f(both, "first", "fi\x7frst")
	f(both, "\r\n\r\n", "\r\n"+strings.Repeat("=\r\n", 10)+"\r\n")
	f(both, "Auto-Submitted: auto-generated", "Auto-Submitted: auto-generated"+strings.Repeat(" ", 970))
	f(both, "--\r\n", "--")
	f(both, "--\r\n", "--\r")
	f(text, "line\r\n", "line")
	// headers
	f(both, "To: ", "Bcc: eve@evil.example\r\nTo: ")
	f(both, "To: ada@example.com\r\n", "To: ada@example.com\r\nTo: ada@example.com\r\n")
	f(both, "To: ada@example.com\r\n", "")
	f(both, "Reply-To: support@acme.example\r\n", "")
	f(both, "MIME-Version: 1.0\r\n", "")
	f(both, "MIME-Version: 1.0\r\n", "MIME-Version: 1.0\r\n \r\n")
	f(both, " <hello@acme.example>", " <hello@acme.example>, eve@evil.example")
	f(both, " <hello@acme.example>", " Eve <hello@acme.example>")
	f(both, "hello@acme.example", "hello@evil.example")
	f(both, "From: =?UTF-8?B?QsO8Y2hlcg==?=", "From: Acme, Inc.")
	f(both, "To: ada@example.com", "To: ada@example.com, eve@evil.example")
	f(both, "To: ada@example.com", "To: eve@evil.example")
	f(both, "To: ada@example.com", "To: Eve <ada@example.com>")
	f(both, "support@acme.example", "eve@evil.example")
	f(both, "Subject: =", "Subject: x =")
	f(both, "+0000", "+0100")
	f(both, "<1.2@acme.example>", "<1.3@acme.example>")
	f(both, "multipart/alternative", "multipart/mixed")
	f(both, "boundary=", "border=")
	// bodies
	f(both, "first", "First")
	f(both, "first", "first=")
	f(both, "first", "first=0D")
	f(both, "first\r\n", "first=0A")
	f(both, "first\r\n", "")
	f(both, "\r\nline", "\r\nline2")
	f(both, "<p>first", "<p>First")
	f(both, "<p>line</p>", "")
	f(both, "text/html", "text/plain")
	f(both, "text/plain; charset=UTF-8", "text/plain; charset=ISO-8859-1")
	f(both, "Transfer-Encoding: quoted-printable", "Transfer-Encoding: base64")
	f(text, "Transfer-Encoding: quoted-printable", "Transfer-Encoding: 7bit")
	f(text, "charset=UTF-8", "charset=ISO-8859-1")
	f(text, "text/plain", "text/html")
	f(text, "line\r\n", "line\r\n\r\n")
	f(html, "text/html", "text/plain")
	f(html, "<p>first", "<p>")

	// Text that readers and relays may decode in another way.
	odd := both
	odd.Text = "blank \nfür\n" + strings.Repeat("long ", 20)
	f(odd, "blank=20\r\n", "blank \r\n")
	f(odd, "f=C3=BCr", "f=c3=bcr")
	f(odd, "f=C3=BCr", "f=C3=Br")
	f(odd, "long =\r\nlong", "long long")
	f(odd, "long=20\r\n", "long \r\n")

	sound, _ := both.check()
	message := built(t, &sound)
	delimiter := "--" + sound.boundary()
	f(both, delimiter+"--", delimiter+"\r\n\r\nmore\r\n"+delimiter+"--")
	f(both, delimiter+"--", "")
	f(both, delimiter+"--\r\n", delimiter+"--\r\nmore\r\n")
	f(both, delimiter+"\r\n", "more\r\n"+delimiter+"\r\n")
	f(both, delimiter+"\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Type: text/html; charset=UTF-8", "")
	for n := range message {
		if sound.verify(message[:n]) == nil {
			t.Errorf("the first %d of %d bytes pass", n, len(message))
		}
	}
}

// FuzzVerifyBody: what mime/quotedprintable, which mailyak uses, makes of a body reads back as that body.
func FuzzVerifyBody(f *testing.F) {
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
		var text bytes.Buffer
		w := quotedprintable.NewWriter(&text)
		_, _ = w.Write([]byte(body))
		_ = w.Close()
		if err := verifyBody("text/plain", text.Bytes(), body); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
	})
}
