package message_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/message"
)

// A nasty makes drafts of texts that break mail software, the same ones for the same seed. It knows from how it made a
// value whether the value has to be refused.
type nasty struct {
	*rand.Rand
	bad map[string]bool // the fields of the draft at hand that have to be refused
}

func newNasty(seed uint64) *nasty { return &nasty{Rand: rand.New(rand.NewPCG(seed, 4))} }

var (
	words = []string{
		"Acme", "Inc.", ",", ";", ":", "\"", "\\", "\\\"", "'", "(", ")", "(c)", "<", ">", "<x@y.example>", "@", "[", "]", ".",
		"boss@bank.example,", "Bcc: x@y.example", "=?", "?=", "=?UTF-8?Q?x?=", "=?UTF-8?B?eA==?=", "=?utf-8?q?", "=", "=3D", "_", "?",
		"é", "ß", "Bücher", "ı", "İ", "日本語", "中文字", "한국어", "שלום", "مرحبا", "\u202e", "\u200f", "\u200d", "\ufeff", "\ufffd",
		"😀", "👩‍👩‍👧‍👦", "🇹🇷", "e\u0301", "\u00a0", "\u00ad", "\U0010ffff", "%s", "{{", "&amp;", "~", "`", "#",
		" ", " ", " ", " ", "  ", "     ", "word", "word", "a", "7",
	}
	badInHeaders = []string{"\r", "\n", "\r\n", "\r\nBcc: x@y.example", "\r\n\r\nbody", "\n ", "\x00", "\t", "\x1b[0m", "\x7f", "\u0085", "\u009f",
		"\u2028", "\u2029", "\xff", "\xc3", "\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80"}
	bodyWords = append([]string{
		"\r", "\n", "\r\n", "\n\r", "\r\r\n", "\n\n", "\ré\n", "\r=\n", "\r\n.\r\n", "\n.", "\n..", "\n.\n", ".", "\nFrom ", "\n--", "--", "\n--=_", "\n--=_--\n",
		" \n", "\t\n", " \t \r\n", "\t", "=\n", "=20\n", "<p>", "</p>", "<!--[if mso]>", "<![endif]-->", "\u2028", "\u0085", "\u0092",
	}, words...)
	badInBodies = []string{"\x00", "\x01", "\x0b", "\x0c", "\x1b", "\x7f", "\xff", "\xc3", "\xe2\x82", "\xed\xa0\x80"}

	goodAddresses = [][2]string{ // as given, and as sent
		{"ada@example.com", "ada@example.com"}, {"Ada.Lovelace+tag@Example.COM", "Ada.Lovelace+tag@example.com"},
		{"o'neil!#$%&*/=?^`{|}~@acme.example", "o'neil!#$%&*/=?^`{|}~@acme.example"}, {"root@localhost", "root@localhost"},
		{"a..b.@c.example", `"a..b."@c.example`}, {`"a."@c.example`, `"a."@c.example`},
		{"a@bücher.example", "a@xn--bcher-kva.example"}, {"a@BÜCHER.example", "a@xn--bcher-kva.example"}, {"x@日本語.example", "x@xn--wgv71a119e.example"},
		{strings.Repeat("l", 64) + "@" + strings.Repeat("d", 63) + "." + strings.Repeat("e", 63) + ".example", strings.Repeat("l", 64) + "@" + strings.Repeat("d", 63) + "." + strings.Repeat("e", 63) + ".example"},
		{"-@_x.example", "-@_x.example"}, {"a@xn--bcher-kva.example", "a@xn--bcher-kva.example"},
	}
	badAddresses = []string{"a", "@", "a@", "@b", "a@b@c", "a b@c.example", " a@b", "a@b ", "a@b,c@d", "a@b;c@d", "g:a@b;", "A <a@b>", "<a@b>", "a@b> SIZE=1", "a@b NOTIFY=NEVER",
		"a@b\r\nBcc: c@d", "a@b\rBcc:c@d", "a@b\nc", "a@b\x00", "a\t@b", "\"a\"@b", "\"a b\"@c", "(c)a@b", "a@b(c)", "\"a..b@c", ".a@b", "a.\"@b", "é@b.example",
		"a@b..c", "a@[127.0.0.1]", "a@127.0.0.1", "a@b.", "a@xn--a.example", "a@\xff.example", "a\xff@b.example", "=?utf-8?q?a?=@b.example", "x=?utf-8?q?a=40b?=y@b.example", "a@b.example\u2028",
		strings.Repeat("l", 65) + "@b.example", strings.Repeat("a", 10<<10) + "@b.example", "a@" + strings.Repeat("b.", 5<<10) + "c", strings.Repeat("@", 10<<10)}
)

func pick[T any](n *nasty, from []T) T { return from[n.IntN(len(from))] }

// text joins good pieces up to a limit in bytes; one time in sixteen it adds a bad one.
func (n *nasty) text(field string, good, bad []string, limit int) string {
	var pieces []string
	budget := limit
	if n.IntN(3) > 0 {
		budget = min(limit, 80)
	}
	count := 1 + n.IntN(40)
	for size := 0; len(pieces) < count; {
		piece := pick(n, good)
		switch n.IntN(30) {
		case 0:
			piece = strings.Repeat(piece, 1+n.IntN(80))
		case 1:
			piece = strings.Repeat("x", 50+n.IntN(40)) // about as long as a line
		case 2:
			piece = string(rune(0x100 + n.IntN(0xd000)))
		}
		if piece == "\u2028" && limit <= 1000 || size+len(piece) > budget || size+len(piece)+4 > limit {
			break
		}
		size += len(piece)
		pieces = append(pieces, piece)
	}
	if n.IntN(16) == 0 {
		n.bad[field] = true
		pieces = slices.Insert(pieces, n.IntN(len(pieces)+1), pick(n, bad))
	}
	return strings.Join(pieces, "")
}

func (n *nasty) address(field string) (given, sent string) {
	if n.IntN(16) == 0 {
		n.bad[field] = true
		return pick(n, badAddresses), ""
	}
	a := pick(n, goodAddresses)
	return a[0], a[1]
}

// draft returns a draft, and the addresses that a reader must find in it.
func (n *nasty) draft() (d message.Draft, from, to, replyTo string) {
	n.bad = map[string]bool{}
	d.FromEmail, from = n.address("fromEmail")
	d.ToEmail, to = n.address("toEmail")
	if n.IntN(3) > 0 {
		d.ReplyTo, replyTo = n.address("replyTo")
	}
	if n.IntN(8) > 0 {
		d.FromName = n.text("fromName", words, badInHeaders, 255)
	}
	d.Subject = n.text("subject", words, badInHeaders, 990)
	if strings.TrimSpace(d.Subject) == "" && !n.bad["subject"] {
		d.Subject += "x"
	}
	if strings.TrimSpace(d.Subject) == "" {
		d.Subject += "\n." // one problem, not two
	}
	switch n.IntN(8) {
	case 0:
		d.HTML = n.text("bodyHtml", bodyWords, badInBodies, 4000)
	case 1:
		d.Text = n.text("bodyText", bodyWords, badInBodies, 4000)
	case 2: // whatever stands at the end of a quoted-printable line
		d.HTML = strings.Repeat("x", 60+n.IntN(20)) + pick(n, bodyWords) + n.text("bodyHtml", bodyWords, badInBodies, 200)
		d.Text = strings.Repeat("x", 60+n.IntN(20)) + pick(n, bodyWords)
	default:
		d.HTML = n.text("bodyHtml", bodyWords, badInBodies, 4000)
		d.Text = n.text("bodyText", bodyWords, badInBodies, 4000)
	}
	if d.HTML == "" && d.Text == "" {
		n.bad["bodyHtml"] = true
	}
	d.Date = time.Unix(n.Int64N(1<<33), n.Int64N(1e9))
	if n.bad["fromEmail"] {
		d.MessageID = message.NewMessageID(n.Int64N(1<<53), "a@b.example")
	} else {
		d.MessageID = fmt.Sprintf("<%d.0@%s", n.Int64N(1<<53), from[strings.LastIndexByte(from, '@')+1:]) + ">"
	}
	return d, from, to, replyTo
}

// TestNasty composes 20,000 drafts in CI: exactly the bad fields are refused, and what is composed reads back as intended,
// with two parsers. TestNastyPython uses a third one.
func TestNasty(t *testing.T) {
	n, drafts := newNasty(1), testrig.Size(t, 20_000, 1_000)
	composed, refused := 0, map[string]int{}
	for i := range drafts {
		d, from, to, replyTo := n.draft()
		message, err := message.Compose(d)
		if len(n.bad) > 0 {
			paths := map[string]bool{}
			for _, p := range problemsOf(err) {
				paths[p.Path] = true
				refused[p.Path]++
				if !utf8.ValidString(p.Message) || len(p.Message) > 200 {
					t.Errorf("case %d: the problem of %s: %q", i, p.Path, p.Message)
				}
			}
			if message != nil || !maps.Equal(paths, n.bad) || len(problemsOf(err)) != len(n.bad) {
				t.Fatalf("case %d, %+q: got %+v, want problems on %v", i, d, problemsOf(err), n.bad)
			}
			continue
		}
		if err != nil {
			t.Fatalf("case %d, %+q: %v, %+v", i, d, err, problemsOf(err))
		}
		if want := reads(d); want.From != unquoted(from) || want.To != unquoted(to) ||
			want.ReplyTo != unquoted(replyTo) {
			t.Fatalf("case %d: the addresses %+v should be %s, %s, %s", i, want, from, to, replyTo)
		}
		if readBack(t, d, message); t.Failed() {
			t.Fatalf("case %d", i)
		}
		composed++
	}
	testrig.Figure(t, "%d composed, refused: %v", composed, refused)
	if composed < drafts/2 {
		t.Errorf("%d of %d were composed: too few", composed, drafts)
	}
	for _, field := range []string{"toEmail", "fromEmail", "replyTo", "fromName", "subject", "bodyHtml", "bodyText"} {
		if refused[field] < drafts/40 {
			t.Errorf("%s was refused %d times: too few", field, refused[field])
		}
	}
}

// FuzzCompose: every draft is either refused for fields of the API or reads back as intended. verify never has to step
// in.
func FuzzCompose(f *testing.F) {
	n := newNasty(2)
	for range 50 {
		d, _, _, _ := n.draft()
		f.Add(d.FromEmail, d.FromName, d.ReplyTo, d.ToEmail, d.Subject, d.HTML, d.Text)
	}
	fields := []string{"toEmail", "subject", "fromName", "fromEmail", "replyTo", "bodyHtml", "bodyText"}
	f.Fuzz(func(t *testing.T, fromEmail, fromName, replyTo, toEmail, subject, html, text string) {
		d := message.Draft{FromEmail: fromEmail, FromName: fromName, ReplyTo: replyTo, ToEmail: toEmail, Subject: subject, HTML: html, Text: text,
			MessageID: message.NewMessageID(1, fromEmail), Date: time.Unix(1e9, 0)}
		message, err := message.Compose(d)
		if err == nil {
			readBack(t, d, message)
			return
		}
		ps := problemsOf(err)
		if len(ps) == 0 {
			t.Fatalf("%+q: %v", d, err)
		}
		for _, p := range ps {
			if !slices.Contains(fields, p.Path) || !utf8.ValidString(p.Message) {
				t.Errorf("a problem on %q: %q", p.Path, p.Message)
			}
		}
	})
}
