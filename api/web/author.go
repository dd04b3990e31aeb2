package web

import (
	"bytes"
	"net/mail"
	"strings"
	"unicode/utf8"

	"fingerpost/resolver/catalog"
)

const (
	headerActor = "X-Actor"
	maxActorLen = 256 // bytes
)

// ReadActor reads who a write is made for. It is the request's own word, which the audit trail keeps next to the key.
func (r *Request) ReadActor() error {
	values := r.Ctx.Request.Header.PeekAll(headerActor)
	switch len(values) {
	case 0:
		return nil
	case 1:
	default:
		return InvalidField(headerActor, "must be given once")
	}
	value := bytes.Trim(values[0], " \t")
	text := string(value)
	switch _, err := mail.ParseAddress(text); {
	case len(value) > maxActorLen:
		return InvalidField(headerActor, "has more than 256 bytes")
	case !utf8.Valid(value) || strings.ContainsFunc(text, catalog.BreaksLine):
		return InvalidField(headerActor, "must be UTF-8 without control characters")
	case err != nil:
		return InvalidField(headerActor, "must be a name and an address, such as Ada Lovelace <ada@example.com>")
	}
	r.Actor = text
	return nil
}

const (
	headerMessage = "X-Change-Message"
	maxMessageLen = 72 // characters: it is the first line of a commit
)

// ReadMessage reads what a write says about itself, for the git history.
func (r *Request) ReadMessage() error {
	values := r.Ctx.Request.Header.PeekAll(headerMessage)
	if len(values) == 0 {
		return nil
	}
	text := string(bytes.Trim(values[0], " \t"))
	switch {
	case len(values) > 1:
		return InvalidField(headerMessage, "must be given once")
	case text == "":
		return InvalidField(headerMessage, "must not be empty")
	case !utf8.ValidString(text) || strings.ContainsFunc(text, catalog.BreaksLine):
		return InvalidField(headerMessage, "must be UTF-8 without control characters")
	case utf8.RuneCountInString(text) > maxMessageLen:
		return InvalidField(headerMessage, "has more than 72 characters")
	}
	r.Message = text
	return nil
}
