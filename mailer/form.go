package mailer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A slot is what stands between two literal stretches of a form.
type slot uint8

const (
	slotNone slot = iota // the end
	slotTo
	slotSubject
	slotDate
	slotMessageID
	slotBoundary
	slotText
	slotHTML
)

// slotHeaders are the headers whose values differ from mail to mail.
var slotHeaders = map[string]slot{"To": slotTo, "Subject": slotSubject, "Date": slotDate, "Message-ID": slotMessageID}

// A stretch of a form is literal text, and what follows it. That of a header is the whole line, name and line break included.
type stretch struct {
	text []byte
	then slot
}

// A form is what the messages of one sender have in common: all that mailyak writes, with slots for the rest. It never
// changes.
type form struct {
	stretches []stretch
	bytes     int // of the stretches
}

// A formKey is what a form follows from.
type formKey struct {
	fromEmail, fromName, replyTo string
	text, html                   bool // there is such a body
}

func (d *soundDraft) formKey() formKey {
	return formKey{d.FromEmail, d.FromName, d.ReplyTo, d.Text != "", d.HTML != ""}
}

// A composer keeps forms, so that mailyak, and the parsers that verify what it writes, are asked once for each sender. The
// zero one is ready. Its methods may be called from any goroutine.
type composer struct {
	mu    sync.RWMutex
	forms map[formKey]*form
}

// maxForms bounds the forms that are kept: some 1.5 KB each.
const maxForms = 2048

// form returns the form for a draft.
func (c *composer) form(d *soundDraft) (*form, error) {
	key := d.formKey()
	c.mu.RLock()
	f := c.forms[key]
	c.mu.RUnlock()
	if f != nil {
		return f, nil
	}
	f, err := newForm(key)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forms == nil {
		c.forms = map[formKey]*form{}
	}
	for some := range c.forms {
		if len(c.forms) < maxForms {
			break
		}
		delete(c.forms, some)
	}
	c.forms[key] = f
	return f, nil
}

// newForm has mailyak build a message with stand-ins, and takes its form.
func newForm(key formKey) (*form, error) {
	sample := soundDraft{Draft{
		FromEmail: key.fromEmail, FromName: key.fromName, ReplyTo: key.replyTo, ToEmail: "to@form.invalid", Subject: "A form",
		MessageID: "<0.0@form.invalid>", Date: time.Unix(0, 0),
	}}
	if key.text {
		sample.Text = "text"
	}
	if key.html {
		sample.HTML = "html"
	}
	head, content, err := sample.mime()
	if err != nil {
		return nil, err
	}
	f := &form{}
	var literal []byte
	for _, name := range sample.headerNames() {
		if s := slotHeaders[name]; s != slotNone {
			f.add(literal, s)
			literal = nil
			continue
		}
		value, ours := ourHeaders[name]
		if !ours {
			if value = head.value(name); value == "" {
				return nil, fmt.Errorf("mailyak gives no %s", name)
			}
		}
		literal = appendHeader(literal, name, value)
	}
	f.add(literal, slotNone)
	if err := f.addContent(&sample, content); err != nil {
		return nil, err
	}
	message := sample.fill(f)
	if err := sample.verify(message); err != nil { // as mail readers do it: what no slot changes is settled by that
		return nil, err
	}
	return f, sample.verifyFilled(f, message)
}

func (f *form) add(text []byte, then slot) {
	if n := len(f.stretches); n > 0 && f.stretches[n-1].then == slotNone {
		last := &f.stretches[n-1]
		last.text, last.then = append(last.text, text...), then
	} else {
		f.stretches = append(f.stretches, stretch{text, then})
	}
	f.bytes += len(text)
}

var errForm = errors.New("mailyak gives parts that are not those it was asked for")

// addContent takes the form of what comes behind the headers: the content's own headers and its body, or both bodies.
func (f *form) addContent(d *soundDraft, content entity) error {
	if d.single() {
		f.add(append(bytes.Clone(content.head), "\r\n\r\n"...), slotNone)
		if d.HTML == "" {
			f.add(nil, slotText)
		} else {
			f.add(nil, slotHTML)
		}
		f.add(nil, slotNone)
		return nil
	}
	_, boundary, err := content.parts()
	if err != nil {
		return err
	}
	between := bytes.Split(append(append(bytes.Clone(content.head), "\r\n\r\n"...), content.body...), []byte(boundary))
	if len(between) != 5 {
		return errForm
	}
	f.add(between[0], slotBoundary)
	f.add(between[1], slotBoundary)
	for i, part := range []struct {
		body string
		slot slot
	}{{d.Text, slotText}, {d.HTML, slotHTML}} {
		head, body, found := bytes.Cut(between[2+i], []byte("\r\n\r\n"))
		after, whole := bytes.CutPrefix(body, []byte(part.body))
		if !found || !whole {
			return errForm
		}
		f.add(append(bytes.Clone(head), "\r\n\r\n"...), part.slot)
		f.add(after, slotBoundary)
	}
	f.add(between[4], slotNone)
	return nil
}

// boundary takes the place of mailyak's, which is random: a message must be a function of its draft. It need not be hard
// to guess, since no quoted-printable body can hold "=_" (RFC 2045 6.7).
func (d *soundDraft) boundary() string {
	sum := sha256.Sum256([]byte(d.MessageID))
	return "=_" + hex.EncodeToString(sum[:16])
}

// fill makes the message of a draft from its form.
func (d *soundDraft) fill(f *form) []byte {
	boundary := d.boundary()
	message := make([]byte, 0, f.bytes+2*len(d.Subject)+512+(len(d.HTML)+len(d.Text))*9/8)
	for i := range f.stretches {
		p := &f.stretches[i]
		message = append(message, p.text...)
		switch p.then {
		case slotTo:
			message = appendHeader(message, "To", d.ToEmail)
		case slotSubject:
			message = appendHeader(message, subjectHeader, encodeSubject(d.Subject))
		case slotDate:
			message = append(d.Date.UTC().AppendFormat(append(message, "Date: "...), time.RFC1123Z), "\r\n"...)
		case slotMessageID:
			message = appendHeader(message, "Message-ID", d.MessageID)
		case slotBoundary:
			message = append(message, boundary...)
		case slotText:
			message = appendQuoted(message, d.finished(d.Text))
		case slotHTML:
			message = appendQuoted(message, d.finished(d.HTML))
		}
	}
	return message
}

// single reports whether there is one body only.
func (d *soundDraft) single() bool { return d.HTML == "" || d.Text == "" }

// finished returns a body as it is composed. A single one is the end of the message, which must be the end of a line.
func (d *soundDraft) finished(body string) string {
	if body == "" || !d.single() || strings.HasSuffix(body, "\n") {
		return body
	}
	return body + "\n"
}
