package mailer

import (
	"bytes"
	"errors"
	"mime"
	"strings"

	"github.com/domodwyer/mailyak/v3"
)

// An entity is a message or a part of one, cut at the empty line between headers and body.
type entity struct{ head, body []byte }

func cutEntity(b []byte) (e entity, err error) {
	var found bool
	if e.head, e.body, found = bytes.Cut(b, []byte("\r\n\r\n")); !found {
		return e, errors.New("mailyak gives a part without a body")
	}
	return e, nil
}

// value returns a header, unfolded, or "".
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

// parts returns what stands between the delimiters of a multipart, and its boundary.
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

// mime lets mailyak build the message, and takes from it the headers and the content without needless multiparts: mailyak
// wraps all into a multipart/mixed, for which some readers show a paper clip, and a single body into an alternative of one.
func (d *soundDraft) mime() (message, content entity, err error) {
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
		return message, content, err
	}
	if message, err = cutEntity(raw.Bytes()); err != nil {
		return message, content, err
	}
	alternative, _, err := message.parts()
	if err != nil {
		return message, content, err
	}
	if content, err = cutEntity(alternative); err != nil {
		return message, content, err
	}
	if !d.single() {
		return message, content, nil
	}
	parts, _, err := content.parts()
	if err != nil {
		return message, content, err
	}
	content, err = cutEntity(parts)
	return message, content, err
}
