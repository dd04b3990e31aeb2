package main

import (
	"bytes"
	"errors"
)

// An answer is one HTTP/1.1 response in a buffer. head and body are parts of that buffer.
type answer struct {
	status int
	head   []byte // of HTTP: status line and fields, including the end of the last one
	body   []byte
	length int // of head and body together
}

var errAnswer = errors.New("the answer is not HTTP/1.1 with a Content-Length")

var (
	endOfHead     = []byte("\r\n\r\n")
	contentLength = []byte("Content-Length: ")
)

// parseAnswer parses the response at the beginning of b. whole is false while part of it is missing. It accepts what
// fasthttp and net/http write, not everything that the protocol allows.
func parseAnswer(b []byte) (a answer, whole bool, err error) {
	end := bytes.Index(b, endOfHead)
	if end < 0 {
		return a, false, nil
	}
	if end < 12 || string(b[:9]) != "HTTP/1.1 " {
		return a, false, errAnswer
	}
	for _, c := range b[9:12] {
		if c < '0' || c > '9' {
			return a, false, errAnswer
		}
		a.status = a.status*10 + int(c-'0')
	}
	size := 0
	if at := bytes.Index(b[:end], contentLength); at >= 0 {
		digits := b[at+len(contentLength) : end]
		for i, c := range digits {
			if c == '\r' {
				break
			}
			if c < '0' || c > '9' || i > 8 {
				return a, false, errAnswer
			}
			size = size*10 + int(c-'0')
		}
	} else if a.status != 304 && a.status != 204 {
		return a, false, errAnswer
	}
	a.length = end + len(endOfHead) + size
	if len(b) < a.length {
		return a, false, nil
	}
	a.head, a.body = b[:end+len("\r\n")], b[end+len(endOfHead):a.length]
	return a, true, nil
}

// field returns a header field, "" without it.
func (a answer) field(name string) string {
	_, rest, _ := bytes.Cut(a.head, []byte("\r\n"+name+": "))
	value, _, _ := bytes.Cut(rest, []byte("\r\n"))
	return string(value)
}

var (
	slugField    = []byte(`"slug":"`)
	revisionWord = []byte(", revision ")
	smsOn        = []byte(`"smsEnabled":true`)
	smsOff       = []byte(`"smsEnabled":false`)
)

// hasSlug reports whether body is about the project with the slug.
func hasSlug(body []byte, slug string) bool {
	at := bytes.Index(body, slugField)
	if at < 0 {
		return false
	}
	at += len(slugField)
	return len(body) > at+len(slug) && string(body[at:at+len(slug)]) == slug && body[at+len(slug)] == '"'
}

// revisionOf returns a project's revision from a body. ok is false if it is missing or if its two places disagree, see
// projectFile.
func revisionOf(body []byte) (revision int, ok bool) {
	at := bytes.Index(body, revisionWord)
	if at < 0 || len(body) < at+len(revisionWord)+6 {
		return 0, false
	}
	for _, c := range body[at+len(revisionWord) : at+len(revisionWord)+6] {
		if c < '0' || c > '9' {
			return 0, false
		}
		revision = revision*10 + int(c-'0')
	}
	sign := smsOff
	if revision%2 == 1 {
		sign = smsOn
	}
	return revision, bytes.Contains(body, sign)
}
