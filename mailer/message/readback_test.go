package message_test

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	parser "github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"

	"fingerpost/mailer/message"
	"fingerpost/resolver/catalog"
)

// A reading is a parser's result for a message.
type reading struct {
	FromName, From, To, ReplyTo, Subject, MessageID string
	Text, HTML                                      string
	Media                                           string // of the whole message
}

// unquoted returns an address without the quotes that SMTP and headers need around some.
func unquoted(address string) string { return strings.ReplaceAll(address, `"`, "") }

// reads returns what every parser should find in the message of a draft: Compose's promise.
func reads(d message.Draft) reading {
	canonical := func(address string) string {
		address, _ = catalog.ParseAddress(address)
		return unquoted(address) // parsers take the quotes off
	}
	crlf := func(body string) string {
		body = strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")
		if (d.HTML == "" || d.Text == "") && body != "" && !strings.HasSuffix(body, "\n") {
			body += "\n" // it is the end of the message
		}
		return strings.ReplaceAll(body, "\n", "\r\n")
	}
	media := "multipart/alternative"
	switch {
	case d.HTML == "":
		media = "text/plain"
	case d.Text == "":
		media = "text/html"
	}
	return reading{
		FromName: d.FromName, From: canonical(d.FromEmail), To: canonical(d.ToEmail), ReplyTo: canonical(d.ReplyTo),
		Subject: d.Subject, MessageID: d.MessageID, Text: crlf(d.Text), HTML: crlf(d.HTML), Media: media,
	}
}

// readBack reads a message with two parsers, compares their results with the draft, and checks the lines.
func readBack(t testing.TB, d message.Draft, message []byte) {
	t.Helper()
	want := reads(d)
	checkLines(t, d, message)
	for name, parse := range map[string]func([]byte) (reading, error){"go-message": readGoMessage, "net/mail": readNetMail} {
		if got, err := parse(message); err != nil || got != want {
			t.Errorf("%s reads %+q, %v\nwant %+q\nof\n%s", name, got, err, want, message)
		}
	}
}

// checkLines: CR LF, 7-bit, no line over 998, no header line over 78 that could be folded, each header once.
func checkLines(t testing.TB, d message.Draft, message []byte) {
	t.Helper()
	body, ended := bytes.CutSuffix(message, []byte("\r\n"))
	if !ended {
		t.Errorf("the message does not end in CR LF: %q", message)
	}
	inHeader, names := true, map[string]int{}
	for line := range strings.SplitSeq(string(body), "\r\n") {
		if len(line) > 998 || !inHeader && len(line) > 78 || strings.ContainsFunc(line, odd) {
			t.Errorf("a bad line, %d bytes: %q", len(line), line)
		}
		if inHeader = inHeader && line != ""; !inHeader {
			continue
		}
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line[0] != ' ' && line[0] != '\t':
			names[name]++
		case strings.TrimSpace(line) == "":
			t.Errorf("a blank line in the header of\n%s", message)
		default:
			value = line[1:]
		}
		if len(line) > 78 && strings.Contains(value, " ") || len(line) > 76 && strings.Contains(line, "=?") {
			t.Errorf("the header line %q could be folded", line)
		}
		for _, word := range encodedWord.FindAllString(line, -1) {
			// Each has to be whole characters (RFC 2047 5), which parsers that join them first do not check.
			if text, err := new(mime.WordDecoder).Decode(word); err != nil || !utf8.ValidString(text) {
				t.Errorf("the encoded word %q is %q, %v", word, text, err)
			}
		}
	}
	want := map[string]int{"From": 1, "To": 1, "Subject": 1, "Date": 1, "Message-ID": 1, "MIME-Version": 1, "Content-Type": 1,
		"Auto-Submitted": 1, "X-Auto-Response-Suppress": 1}
	if d.ReplyTo != "" {
		want["Reply-To"] = 1
	}
	if d.HTML == "" || d.Text == "" {
		want["Content-Transfer-Encoding"] = 1
	}
	for name := range names {
		if names[name] != want[name] {
			t.Errorf("there are %d of the header %q, want %d", names[name], name, want[name])
		}
	}
	if len(names) != len(want) {
		t.Errorf("there are the headers %v, want %v", names, want)
	}
}

var encodedWord = regexp.MustCompile(`=\?[^ ]*\?=`)

func odd(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }

func readGoMessage(b []byte) (got reading, err error) {
	e, err := parser.Read(bytes.NewReader(b))
	if err != nil {
		return got, err
	}
	got.Media, _, _ = e.Header.ContentType()
	h := mail.Header{Header: e.Header}
	one := func(key string) (name, address string) {
		list, listErr := h.AddressList(key)
		if listErr != nil {
			err = listErr
		}
		if len(list) != 1 {
			return "", ""
		}
		return list[0].Name, list[0].Address
	}
	got.FromName, got.From = one("From")
	_, got.To = one("To")
	_, got.ReplyTo = one("Reply-To")
	if err != nil {
		return got, err
	}
	if got.Subject, err = h.Subject(); err != nil {
		return got, err
	}
	if id, idErr := h.MessageID(); idErr != nil {
		return got, idErr
	} else {
		got.MessageID = "<" + id + ">"
	}
	for r := mail.NewReader(e); ; {
		part, err := r.NextPart()
		if err == io.EOF {
			return got, nil
		} else if err != nil {
			return got, err
		}
		body, err := io.ReadAll(part.Body)
		if err != nil {
			return got, err
		}
		inline, _ := part.Header.(*mail.InlineHeader)
		media, _, err := inline.ContentType()
		if err != nil {
			return got, err
		}
		got.add(media, body)
	}
}

func readNetMail(b []byte) (got reading, err error) {
	m, err := netmail.ReadMessage(bytes.NewReader(b))
	if err != nil {
		return got, err
	}
	one := func(key string) (name, address string) {
		if m.Header.Get(key) == "" {
			return "", ""
		}
		a, parseErr := netmail.ParseAddress(m.Header.Get(key)) // fails on more than one
		if parseErr != nil {
			err = parseErr
			return "", ""
		}
		return a.Name, a.Address
	}
	got.FromName, got.From = one("From")
	_, got.To = one("To")
	_, got.ReplyTo = one("Reply-To")
	if err != nil {
		return got, err
	}
	if got.Subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		return got, err
	}
	got.MessageID = m.Header.Get("Message-ID")
	media, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if got.Media = media; err != nil {
		return got, err
	}
	if media != "multipart/alternative" {
		body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		got.add(media, body)
		return got, err
	}
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := r.NextPart()
		if err == io.EOF {
			return got, nil
		} else if err != nil {
			return got, err
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return got, err
		}
		media, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		got.add(media, body)
	}
}

// add records a body. A second one of its kind would show as unwanted text.
func (r *reading) add(media string, body []byte) {
	switch media {
	case "text/plain":
		r.Text += string(body)
	case "text/html":
		r.HTML += string(body)
	default:
		r.Text += "a part of type " + media
	}
}

// Bodies finds what was composed.
func TestBodies(t *testing.T) {
	t.Parallel()
	drafts, messages := composed(t, 6, 300)
	for i, d := range drafts {
		want := reads(d)
		html, text, err := message.Bodies(messages[i])
		if lf := strings.NewReplacer("\r\n", "\n"); err != nil || html != lf.Replace(want.HTML) || text != lf.Replace(want.Text) {
			t.Errorf("draft %d: %+q and %+q, %v\nwant %+q and %+q", i, html, text, err, want.HTML, want.Text)
		}
	}
	for _, bad := range []string{"", "x", "Content-Type: \r\n\r\n"} {
		if html, text, err := message.Bodies([]byte(bad)); err == nil {
			t.Errorf("%q is read as %q and %q", bad, html, text)
		}
	}
}
