package message_test

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/mailer/message"
	"fingerpost/resolver/catalog"
)

// draft returns a valid draft.
func draft() message.Draft {
	return message.Draft{
		FromEmail: "hello@acme.example", FromName: "Acme Shop", ReplyTo: "support@acme.example", ToEmail: "ada@example.com",
		Subject: "Your code is 123456", HTML: "<p>Your code is <b>123456</b>.</p>\n", Text: "Your code is 123456.\n",
		MessageID: "<4712.00112233aabbccdd@acme.example>", Date: time.Date(2026, 1, 31, 9, 30, 0, 123456000, time.FixedZone("", 3600)),
	}
}

func compose(t testing.TB, d message.Draft) string {
	t.Helper()
	message, err := message.Compose(d)
	if err != nil {
		t.Fatalf("%v, %+v, of %+q", err, problemsOf(err), d)
	}
	return string(message)
}

// problemsOf returns the problems of a VALIDATION_ERROR, nil for any other error.
func problemsOf(err error) catalog.Problems {
	if e := (*catalog.Error)(nil); errors.As(err, &e) && e.Code == catalog.CodeValidation {
		return e.Problems
	}
	return nil
}

const wholeMessage = `From: "Acme Shop" <hello@acme.example>
To: ada@example.com
Reply-To: support@acme.example
Subject: Your code is 123456
Date: Sat, 31 Jan 2026 08:30:00 +0000
Message-ID: <4712.00112233aabbccdd@acme.example>
MIME-Version: 1.0
Auto-Submitted: auto-generated
X-Auto-Response-Suppress: OOF, AutoReply
Content-Type: multipart/alternative;
	boundary="=_4abf34ad12d9cbe44fa10618eea783f3"

--=_4abf34ad12d9cbe44fa10618eea783f3
Content-Transfer-Encoding: quoted-printable
Content-Type: text/plain; charset=UTF-8

Your code is 123456.

--=_4abf34ad12d9cbe44fa10618eea783f3
Content-Transfer-Encoding: quoted-printable
Content-Type: text/html; charset=UTF-8

<p>Your code is <b>123456</b>.</p>

--=_4abf34ad12d9cbe44fa10618eea783f3--
`

// TestComposeBytes pins the whole message: a retry, and any other node, must compose the same bytes.
func TestComposeBytes(t *testing.T) {
	want := strings.ReplaceAll(wholeMessage, "\n", "\r\n")
	for range 20 {
		if got := compose(t, draft()); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestComposeSingle: one body stands alone, as the whole content, and ends in a line break.
func TestComposeSingle(t *testing.T) {
	f := func(html, text, want string) {
		t.Helper()
		d := draft()
		d.HTML, d.Text, d.ReplyTo = html, text, ""
		got := compose(t, d)
		if _, content, _ := strings.Cut(got, "AutoReply\r\n"); content != want {
			t.Errorf("got %q, want %q", content, want)
		}
		if strings.Contains(got, "Reply-To:") {
			t.Errorf("a Reply-To that nobody asked for:\n%s", got)
		}
	}
	plain := "Content-Transfer-Encoding: quoted-printable\r\nContent-Type: text/plain; charset=UTF-8\r\n\r\n"
	html := "Content-Transfer-Encoding: quoted-printable\r\nContent-Type: text/html; charset=UTF-8\r\n\r\n"
	f("", "hello", plain+"hello\r\n")
	f("", "hello\n", plain+"hello\r\n")
	f("", "hello\r", plain+"hello\r\n")
	f("", "hello \r\n\r\n", plain+"hello=20\r\n\r\n")
	f("", "\n", plain+"\r\n")
	f("<p>é</p>", "", html+"<p>=C3=A9</p>\r\n")
}

// TestComposeHeaders pins the encoding of names and subjects, of which a parser shows only the meaning.
func TestComposeHeaders(t *testing.T) {
	f := func(header, value, want string) {
		t.Helper()
		d := draft()
		if header == "From" {
			d.FromName = value
		} else {
			d.Subject = value
		}
		got := compose(t, d)
		_, got, _ = strings.Cut("\r\n"+got, "\r\n"+header+": ")
		if got = got[:regexp.MustCompile(`\r\n[^ ]`).FindStringIndex(got)[0]]; got != want {
			t.Errorf("%s %q is written\n%q, want\n%q", header, value, got, want)
		}
	}
	f("From", "", `hello@acme.example`)
	f("From", "Acme, Inc.", `"Acme, Inc." <hello@acme.example>`)
	f("From", "boss@bank.example,", `"boss@bank.example," <hello@acme.example>`)
	f("From", `a"b\c`, `"a\"b\\c" <hello@acme.example>`)
	f("From", "Müller", "=?UTF-8?B?TcO8bGxlcg==?= <hello@acme.example>")
	f("From", "=?UTF-8?Q?x?=", "=?UTF-8?B?PT9VVEYtOD9RP3g/PQ==?= <hello@acme.example>")
	f("From", "two  spaces", "=?UTF-8?B?dHdvICBzcGFjZXM=?= <hello@acme.example>")
	f("From", " ", "=?UTF-8?B?IA==?= <hello@acme.example>")
	f("Subject", "Plain: <a> \"b\", c@d", "Plain: <a> \"b\", c@d")
	f("Subject", "trailing ", "=?UTF-8?B?dHJhaWxpbmcg?=")
	f("Subject", "=?UTF-8?Q?x?=", "=?UTF-8?B?PT9VVEYtOD9RP3g/PQ==?=")
	f("Subject", strings.Repeat("x", 67)+" y", strings.Repeat("x", 67)+"\r\n y")
	f("Subject", strings.Repeat("x", 68), "=?UTF-8?B?eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4?=\r\n =?UTF-8?B?eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg=?=")
	f("Subject", strings.Repeat("é", 20)+"a"+"\U0001F600", "=?UTF-8?B?w6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6k=?=\r\n =?UTF-8?B?w6lh8J+YgA==?=")
}

// TestComposeBad: each bad value gets a problem on its own field, with a message that helps.
func TestComposeBad(t *testing.T) {
	f := func(set func(d *message.Draft), path, says string) {
		t.Helper()
		d := draft()
		set(&d)
		got, err := message.Compose(d)
		ps := problemsOf(err)
		if got != nil || len(ps) != 1 || ps[0].Path != path || !strings.Contains(ps[0].Message, says) {
			t.Errorf("got %q, %v, %+v, want one problem on %s with %q", got, err, ps, path, says)
		}
	}
	to := func(address, says string) {
		t.Helper()
		f(func(d *message.Draft) { d.ToEmail = address }, "toEmail", says)
		f(func(d *message.Draft) { d.FromEmail = address }, "fromEmail", says)
		if address != "" {
			f(func(d *message.Draft) { d.ReplyTo = address }, "replyTo", says)
		}
	}
	to("", "must not be empty")
	to("ada", "has no @")
	to("a@x.example, b@y.example", "must not be a list")
	to("a@x.example,b@y.example", "must not be a list")
	to("Ada Lovelace <a@x.example>", "without angle brackets")
	to("x@y.example> NOTIFY=SUCCESS", "without angle brackets")
	to("x@y.example SIZE=1", "holds a space at byte 12")
	to("x@y.example\rBcc:z@y.example", "U+000D at byte 12")
	to("x@y.example\u0085", "U+0085")
	to("x\x00@y.example", "U+0000 at byte 2")
	to("x@y\xff.example", "UTF-8")
	to("ö@y.example", "ASCII")
	to(`"a b"@y.example`, "holds")
	to(`"a"@y.example`, `'"' before the @`)
	to("=?utf-8?q?a=40evil.example?=@y.example", "=?")
	to(strings.Repeat("a", 10<<10)+"@y.example", "has 10250 bytes, 254 are allowed")
	to(strings.Repeat("a", 64)+"@"+strings.Repeat(strings.Repeat("b", 63)+".", 3)+"c", "has 258 bytes, 254 are allowed")
	to(strings.Repeat("a", 64)+"@"+strings.Repeat("bücher.", 14)+"example", "has 268 bytes with its domain as A-labels, 254 are allowed")

	f(func(d *message.Draft) { d.Subject = "" }, "subject", "required")
	f(func(d *message.Draft) { d.Subject = " \u00a0" }, "subject", "blank")
	f(func(d *message.Draft) { d.Subject = "Hi\r\nBcc: x@y.example" }, "subject", "U+000D at byte 3")
	f(func(d *message.Draft) { d.Subject = "a\u2028b" }, "subject", "one line")
	f(func(d *message.Draft) { d.Subject = "a\tb" }, "subject", "control characters: U+0009")
	f(func(d *message.Draft) { d.Subject = "a\xc3" }, "subject", "UTF-8")
	f(func(d *message.Draft) { d.Subject = strings.Repeat("a", 999) }, "subject", "has 999 bytes, 998 are allowed")
	f(func(d *message.Draft) { d.FromName = "Acme\nBcc: x@y.example" }, "fromName", "U+000A at byte 5")
	f(func(d *message.Draft) { d.FromName = "Acme\x00" }, "fromName", "U+0000")
	f(func(d *message.Draft) { d.FromName = strings.Repeat("é", 128) }, "fromName", "has 256 bytes, 255 are allowed")
	f(func(d *message.Draft) { d.HTML, d.Text = "", "" }, "bodyHtml", "required")
	f(func(d *message.Draft) { d.HTML = "<p>\r\n<p>é\x00" }, "bodyHtml", "line 2, column 5: must not hold control characters other than tabs and line breaks: this is U+0000")
	f(func(d *message.Draft) { d.Text = "a\rb\r\rcd\xe9f" }, "bodyText", "line 4, column 3: is not valid UTF-8")
	f(func(d *message.Draft) { d.Text = strings.Repeat("a", 1<<20+1) }, "bodyText", "has 1048577 bytes, 1048576 are allowed")

	bad := message.Draft{ToEmail: "a", FromEmail: "b", ReplyTo: "c", FromName: "\n", Subject: "\n", HTML: "\x00", Text: "\xff"}
	_, err := message.Compose(bad)
	var paths []string
	for _, p := range problemsOf(err) {
		paths = append(paths, p.Path)
	}
	slices.Sort(paths)
	if want := []string{"bodyHtml", "bodyText", "fromEmail", "fromName", "replyTo", "subject", "toEmail"}; !slices.Equal(paths, want) {
		t.Errorf("problems on %v, want all at once: %v", paths, want)
	}
}

// TestComposeOwnMistakes: a problem that no caller can correct is no VALIDATION_ERROR.
func TestComposeOwnMistakes(t *testing.T) {
	f := func(set func(d *message.Draft)) {
		t.Helper()
		d := draft()
		set(&d)
		if message, err := message.Compose(d); message != nil || err == nil || problemsOf(err) != nil {
			t.Errorf("got %q, %v", message, err)
		}
	}
	f(func(d *message.Draft) { d.Date = time.Time{} })
	f(func(d *message.Draft) { d.Date = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) })
	for _, id := range []string{"", "a@b", "<a>", "<a@b>\r\nBcc: x@y", "<a b@c>", "<a@b c>", "<a@b> ", "<<a@b>>", "<@b>", "<a@>", "<é@b>", "<a@é>"} {
		f(func(d *message.Draft) { d.MessageID = id })
	}
}

func TestDraftEnvelope(t *testing.T) {
	d := draft()
	d.FromEmail, d.ToEmail = "Hello@Bücher.Example", "o'neil+x@EXAMPLE.com"
	if from, to := d.Envelope(); from != "Hello@xn--bcher-kva.example" || to != "o'neil+x@example.com" {
		t.Errorf("got %s to %s", from, to)
	}
	message := compose(t, d)
	if !strings.Contains(message, "<Hello@xn--bcher-kva.example>\r\nTo: o'neil+x@example.com\r\n") {
		t.Errorf("the header has other addresses than the envelope:\n%s", message)
	}
}

func TestNewMessageID(t *testing.T) {
	form := regexp.MustCompile(`^<4712\.[0-9a-f]{16}@xn--bcher-kva\.example>$`)
	seen := map[string]bool{}
	for range 1000 {
		id := message.NewMessageID(4712, "hello@Bücher.example")
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("%q has another form than %s, or is there twice", id, form)
		}
		seen[id] = true
	}
	// The longest possible address gives a Message-ID that Compose accepts, and so does none.
	long := "a@" + strings.Repeat(strings.Repeat("b", 62)+".", 4)[:245] + ".example"
	for _, from := range []string{long[len(long)-254+2:], "", "a@b\r\nc"} {
		d := draft()
		d.MessageID = message.NewMessageID(1<<53-1, from)
		compose(t, d)
	}
}

// TestComposeLarge: bodies of the largest size, of the bytes whose encoding is longest.
func TestComposeLarge(t *testing.T) {
	d := draft()
	d.HTML, d.Text = strings.Repeat("\u0100", 1<<19), strings.Repeat("=", 1<<20)
	readBack(t, d, []byte(compose(t, d)))
}

func BenchmarkCompose(b *testing.B) {
	html := "<p>" + strings.Repeat("Grüße aus dem Shop, <b>dein Code</b> ist gleich da. ", 36) + "</p>\n"
	bench := func(name string, d message.Draft) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(compose(b, d))))
			for b.Loop() {
				if _, err := message.Compose(d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	d := draft()
	bench("short", d)
	d.HTML, d.Text, d.FromName, d.Subject = html, html, "Bücher & Söhne", "Dein Bestätigungscode ist da"
	bench("2kB+2kB", d)
	d.Text = ""
	bench("2kB", d)
	d.HTML = strings.Repeat(html, 256)
	d.Text = d.HTML
	bench("512kB+512kB", d)
	b.Run("MessageID", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			message.NewMessageID(4712, d.FromEmail)
		}
	})
}

// TestComposeKeepsDraft: a composed message shares no memory with a later one.
func TestComposeKeepsDraft(t *testing.T) {
	first, _ := message.Compose(draft())
	before := bytes.Clone(first)
	other := draft()
	other.HTML = strings.Repeat("z", 1000)
	compose(t, other)
	if !bytes.Equal(first, before) {
		t.Error("a later message changed an earlier one")
	}
}
