package message

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/mail"
	"slices"
	"strings"
	"time"
)

const maxLine = 998 // without the CR LF (RFC 5322 2.1.1)

// verify reads a finished message back, without the code that composed it, and reports where it differs from the draft.
// Its errors quote nothing of the mail.
func (d *soundDraft) verify(message []byte) error {
	if err := verifyBytes(message); err != nil {
		return err
	}
	if err := d.verifyHeaderNames(message); err != nil {
		return err
	}
	parsed, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return errors.New("the header cannot be read")
	}
	if err := d.verifyHeaders(parsed.Header); err != nil {
		return err
	}
	_, body, _ := bytes.Cut(message, []byte("\r\n\r\n"))
	return d.verifyContent(parsed.Header, body)
}

// verifyBytes checks that the message has only bytes that every server passes on, in lines that every server accepts.
func verifyBytes(message []byte) error {
	start := 0
	for start < len(message) {
		n := bytes.IndexByte(message[start:], '\r')
		if n < 0 {
			n = len(message) - start
		}
		for i, c := range message[start : start+n] {
			if c != '\t' && (c < ' ' || c > '~') {
				return fmt.Errorf("byte %d is 0x%02x, which a line of 7-bit mail cannot hold", start+i, c)
			}
		}
		switch end := start + n; {
		case end == len(message):
			return errors.New("the last line has no end")
		case end+1 == len(message) || message[end+1] != '\n':
			return fmt.Errorf("byte %d is a CR without an LF", end)
		case n > maxLine:
			return fmt.Errorf("the line at byte %d has %d bytes, %d are allowed", start, n, maxLine)
		}
		start += n + 2
	}
	if start == 0 {
		return errors.New("there is no line")
	}
	return nil
}

// verifyHeaderNames checks that each header is there once, in its place, and that there is no other.
func (d *soundDraft) verifyHeaderNames(message []byte) error {
	head, _, found := bytes.Cut(message, []byte("\r\n\r\n"))
	if !found {
		return errors.New("the header has no end")
	}
	want := []string{"From", "To", "Reply-To", "Subject", "Date", "Message-ID", "MIME-Version", "Auto-Submitted",
		"X-Auto-Response-Suppress"}
	if d.ReplyTo == "" {
		want = slices.Delete(want, 2, 3)
	}
	if d.Unsubscribe != "" {
		want = append(want, "List-Unsubscribe", "List-Unsubscribe-Post")
	}
	if d.single() {
		want = append(want, "Content-Transfer-Encoding")
	}
	want = append(want, "Content-Type")
	var names []string
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') && len(names) > 0 {
			if len(bytes.TrimSpace(line)) == 0 {
				return errors.New("a line of the header is blank")
			}
			continue
		}
		name, _, _ := bytes.Cut(line, []byte(":"))
		names = append(names, string(name))
	}
	if !slices.Equal(names, want) {
		return fmt.Errorf("there are %d headers, or their names differ: want %s", len(names), strings.Join(want, ", "))
	}
	return nil
}

// verifyHeaders checks that a reader finds the draft's mailboxes and texts, and no others.
func (d *soundDraft) verifyHeaders(h mail.Header) error {
	for _, want := range []struct{ header, name, address string }{
		{"From", d.FromName, d.FromEmail}, {"To", "", d.ToEmail}, {"Reply-To", "", d.ReplyTo},
	} {
		if want.address == "" {
			continue
		}
		list, err := h.AddressList(want.header)
		if err != nil || len(list) != 1 || list[0].Name != want.name ||
			list[0].Address != strings.ReplaceAll(want.address, `"`, "") { // the reader takes the quotes off
			return fmt.Errorf("the %s does not read back as the one mailbox that it is made of", want.header)
		}
	}
	if subject, err := new(mime.WordDecoder).DecodeHeader(h.Get("Subject")); err != nil || subject != d.Subject {
		return errors.New("the Subject does not read back")
	}
	if date, err := time.Parse(time.RFC1123Z, h.Get("Date")); err != nil || !date.Equal(d.Date.Truncate(time.Second)) {
		return errors.New("the Date does not read back")
	}
	if h.Get("Message-ID") != d.MessageID {
		return errors.New("the Message-ID does not read back")
	}
	if d.Unsubscribe != "" && (h.Get("List-Unsubscribe") != "<"+d.Unsubscribe+">" ||
		h.Get("List-Unsubscribe-Post") != "List-Unsubscribe=One-Click") {
		return errors.New("the link to unsubscribe does not read back")
	}
	return nil
}

// verifyContent checks the bodies, and that there is nothing else.
func (d *soundDraft) verifyContent(h mail.Header, content []byte) error {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	switch {
	case err != nil:
		return errors.New("the Content-Type cannot be read")
	case d.single():
		want := "text/html"
		if d.HTML == "" {
			want = "text/plain"
		}
		if h.Get("Content-Type") != want+contentCharset || h.Get("Content-Transfer-Encoding") != "quoted-printable" {
			return fmt.Errorf("the headers of the %s do not read back", want)
		}
		return verifyBody(want, content, d.finished(d.HTML+d.Text))
	case media != "multipart/alternative":
		return errors.New("the Content-Type does not read back")
	}
	delimiter := []byte("--" + params["boundary"])
	between, opened := bytes.CutPrefix(content, append(delimiter, "\r\n"...))
	between, closed := bytes.CutSuffix(between, []byte("\r\n"+string(delimiter)+"--\r\n"))
	if !opened || !closed || params["boundary"] == "" {
		return errors.New("the content does not begin and end with its boundary")
	}
	first, second, both := bytes.Cut(between, []byte("\r\n"+string(delimiter)+"\r\n"))
	switch {
	case !both:
		return errors.New("a part is missing")
	case bytes.Contains(first, delimiter) || bytes.Contains(second, delimiter):
		return errors.New("there is more than the two parts")
	}
	if err := verifyPart(first, "text/plain", d.Text); err != nil {
		return err
	}
	return verifyPart(second, "text/html", d.HTML)
}

const contentCharset = "; charset=UTF-8"

// verifyPart checks one body and its two headers.
func verifyPart(part []byte, media, body string) error {
	const encoding, kind = "Content-Transfer-Encoding: quoted-printable", "Content-Type: "
	head, content, _ := bytes.Cut(part, []byte("\r\n\r\n"))
	one, other, _ := strings.Cut(string(head), "\r\n")
	if one != encoding {
		one, other = other, one
	}
	if one != encoding || other != kind+media+contentCharset {
		return fmt.Errorf("the headers of the %s do not read back", media)
	}
	return verifyBody(media, content, body)
}

// maxQuotedLine is the longest line of a quoted-printable text, without its CR LF (RFC 2045 6.7).
const maxQuotedLine = 76

// verifyBody decodes quoted-printable text and compares it with the wanted body, whose line breaks are LF. It is
// stricter than readers are: a text that some reader might decode differently fails. It does not use
// mime/quotedprintable, because that package has written the text.
func verifyBody(media string, text []byte, want string) error {
	at, column := 0, 0
	fail := func() error {
		return fmt.Errorf("%s: the body does not read back at byte %d of %d", media, at, len(want))
	}
	for i := 0; i < len(text); {
		c, size := text[i], 1
		switch {
		case c == '\r': // verifyBytes has seen that an LF follows
			if i > 0 && (text[i-1] == ' ' || text[i-1] == '\t') {
				return fail() // relays may drop blanks at the end of a line
			}
			c, size, column = '\n', 2, -2
		case c == '=' && bytes.HasPrefix(text[i+1:], []byte("\r\n")):
			if column >= maxQuotedLine {
				return fail()
			}
			i, column = i+3, 0
			continue
		case c == '=':
			var ok bool
			if c, ok = quotedByte(text[i+1:]); !ok || c == '\n' {
				return fail()
			}
			size = 3
		}
		if column += size; column > maxQuotedLine || at == len(want) || want[at] != c {
			return fail()
		}
		at, i = at+1, i+size
	}
	if at < len(want) || len(text) > 0 && (text[len(text)-1] == ' ' || text[len(text)-1] == '\t') {
		return fail()
	}
	return nil
}

// quotedByte reads the two upper-case hexadecimal digits after an "=".
func quotedByte(digits []byte) (c byte, ok bool) {
	if len(digits) < 2 {
		return 0, false
	}
	for _, d := range digits[:2] {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'A' <= d && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, false
		}
		c = c<<4 | d
	}
	return c, true
}
