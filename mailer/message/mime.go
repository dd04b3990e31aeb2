package message

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/domodwyer/mailyak/v3"
)

// build returns our headers and the content that mailyak encodes.
func (d *soundDraft) build() ([]byte, error) {
	if err := d.checkComposed(); err != nil {
		return nil, err
	}
	content, err := d.content()
	if err != nil {
		return nil, err
	}
	from := d.FromEmail
	if d.FromName != "" {
		from = encodeName(d.FromName) + " <" + d.FromEmail + ">"
	}
	leave, oneClick := "", ""
	if d.Unsubscribe != "" {
		leave, oneClick = "<"+d.Unsubscribe+">", oneClickValue
	}
	message := make([]byte, 0, 1024+len(content))
	for _, header := range [][2]string{
		{"From", from},
		{"To", d.ToEmail},
		{"Reply-To", d.ReplyTo},
		{"Subject", encodeSubject(d.Subject)},
		{"Date", d.Date.UTC().Format(time.RFC1123Z)},
		{"Message-ID", d.MessageID},
		{"MIME-Version", "1.0"},
		{"Auto-Submitted", "auto-generated"}, // RFC 3834: keeps answering machines from answering
		// MS-OXCMAIL 2.1.3.2.20: the same for Exchange, which ignores Auto-Submitted
		{"X-Auto-Response-Suppress", "OOF, AutoReply"},
		{"List-Unsubscribe", leave},
		{"List-Unsubscribe-Post", oneClick},
	} {
		if name, value := header[0], header[1]; value != "" {
			message = appendHeader(message, name, value)
		}
	}
	return append(message, content...), nil
}

// oneClickValue is the value of List-Unsubscribe-Post (RFC 8058 3.2).
const oneClickValue = "List-Unsubscribe=One-Click"

// content returns the content and the headers that describe it. mailyak wraps everything into a multipart/mixed, for
// which some readers show a paper clip, and a single body into a multipart/alternative of one; these are taken off.
func (d *soundDraft) content() ([]byte, error) {
	yak := mailyak.New("", nil)
	yak.Plain().Set(d.finished(d.Text))
	yak.HTML().Set(d.finished(d.HTML))
	mixed, err := yak.MimeBuf()
	if err != nil {
		return nil, err
	}
	alternative, _, err := unwrap(mixed.Bytes())
	if err != nil {
		return nil, err
	}
	parts, random, err := unwrap(alternative)
	if err != nil || d.single() {
		return parts, err
	}
	return bytes.ReplaceAll(alternative, []byte(random), []byte(d.boundary())), nil
}

// unwrap returns what is between the first and the last delimiter of a multipart with its headers, and the boundary.
func unwrap(multipart []byte) (parts []byte, boundary string, err error) {
	_, body, _ := bytes.Cut(multipart, []byte("\r\n\r\n"))
	first, rest, _ := bytes.Cut(body, []byte("\r\n"))
	boundary, opened := strings.CutPrefix(string(first), "--")
	parts, closed := bytes.CutSuffix(rest, []byte("\r\n--"+boundary+"--\r\n"))
	if boundary == "" || !opened || !closed {
		return nil, "", errors.New("mailyak gives a multipart that its boundary does not enclose")
	}
	return parts, boundary, nil
}

// boundary replaces mailyak's random one, so that equal drafts give equal messages. It may be guessable, because no
// quoted-printable body can contain "=_" (RFC 2045 6.7).
func (d *soundDraft) boundary() string {
	sum := sha256.Sum256([]byte(d.MessageID))
	return "=_" + hex.EncodeToString(sum[:16])
}

// single reports whether there is only one body.
func (d *soundDraft) single() bool { return d.HTML == "" || d.Text == "" }

// finished returns a body as it is composed. A single body ends the message, so it must end with a line break.
func (d *soundDraft) finished(body string) string {
	if body == "" || !d.single() || strings.HasSuffix(body, "\n") {
		return body
	}
	return body + "\n"
}
