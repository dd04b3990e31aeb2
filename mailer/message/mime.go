package message

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"strings"
	"time"

	"github.com/domodwyer/mailyak/v3"
)

// An entity is a message or a part of one, split at the empty line between headers and body.
type entity struct{ head, body []byte }

func cutEntity(b []byte) (e entity, err error) {
	var found bool
	if e.head, e.body, found = bytes.Cut(b, []byte("\r\n\r\n")); !found {
		return e, errors.New("mailyak gives a part without a body")
	}
	return e, nil
}

// value returns a header's value, unfolded, or "".
func (e entity) value(name string) string {
	for line, rest := cutLine(e.head); len(line) > 0; line, rest = cutLine(rest) {
		value, found := strings.CutPrefix(string(line), name+headerSeparator)
		if !found {
			continue
		}
		for len(rest) > 0 && (rest[0] == '\t' || rest[0] == ' ') {
			line, rest = cutLine(rest)
			value += " " + string(line[1:])
		}
		return value
	}
	return ""
}

func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\r\n"))
	return line, rest
}

// parts returns what is between the delimiters of a multipart, and its boundary.
func (e entity) parts() (between []byte, boundary string, err error) {
	_, params, err := mime.ParseMediaType(e.value("Content-Type"))
	if err != nil {
		return nil, "", err
	}
	boundary = params["boundary"]
	between, opened := bytes.CutPrefix(e.body, []byte("--"+boundary+"\r\n"))
	between, closed := bytes.CutSuffix(between, []byte("\r\n--"+boundary+"--\r\n"))
	if boundary == "" || !opened || !closed {
		return nil, "", errors.New("mailyak gives a multipart that its boundary does not enclose")
	}
	return between, boundary, nil
}

// build lets mailyak compose the message and puts our headers around its content. mailyak writes its own headers in
// random order and unfolded, without a Message-ID; its boundaries are random.
func (d *soundDraft) build() ([]byte, error) {
	if err := d.checkComposed(); err != nil {
		return nil, err
	}
	composed, err := d.mailyak()
	if err != nil {
		return nil, err
	}
	content, err := d.content(composed)
	if err != nil {
		return nil, err
	}
	message := make([]byte, 0, 1024+len(content))
	for _, name := range d.headerNames() {
		value := d.header(name)
		if value == "" {
			value = composed.value(name)
		}
		if value == "" {
			return nil, fmt.Errorf("mailyak gives no %s", name)
		}
		message = appendHeader(message, name, value)
	}
	return append(message, content...), nil
}

// header returns a header that mailyak writes not at all or not as needed; "" if mailyak's header is used.
func (d *soundDraft) header(name string) string {
	switch name {
	case "Date": // mailyak writes the time at which it composes
		return d.Date.UTC().Format(time.RFC1123Z)
	case "Message-ID":
		return d.MessageID
	}
	return ourHeaders[name]
}

// mailyak composes the message with mailyak. Name and subject are encoded before: mailyak quotes no name and folds no
// long subject.
func (d *soundDraft) mailyak() (entity, error) {
	yak := mailyak.New("", nil)
	yak.From(d.FromEmail)
	if d.FromName != "" {
		yak.FromName(encodeName(d.FromName))
	}
	yak.To(d.ToEmail)
	yak.ReplyTo(d.ReplyTo)
	yak.Subject(encodeSubject(d.Subject))
	yak.Plain().Set(d.finished(d.Text))
	yak.HTML().Set(d.finished(d.HTML))
	raw, err := yak.MimeBuf()
	if err != nil {
		return entity{}, err
	}
	return cutEntity(raw.Bytes())
}

// content takes the content's headers and body from what mailyak has composed, without superfluous multiparts: mailyak
// wraps everything into a multipart/mixed, for which some readers show a paper clip, and a single body into a
// multipart/alternative of one.
func (d *soundDraft) content(composed entity) ([]byte, error) {
	alternative, _, err := composed.parts()
	if err != nil {
		return nil, err
	}
	content, err := cutEntity(alternative)
	if err != nil {
		return nil, err
	}
	between, random, err := content.parts()
	if err != nil {
		return nil, err
	}
	if d.single() {
		return between, nil
	}
	return bytes.ReplaceAll(alternative, []byte(random), []byte(d.boundary())), nil
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
