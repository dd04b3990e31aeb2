package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"

	"fingerpost/resolver/catalog"
)

// An Error is an answer that is not a success.
type Error struct {
	Method, Path string
	Status       int
	Code         catalog.Code // "" where the answer has none
	Message      string
	Details      []Detail
	Requires     string // permissions that the key lacks, separated by commas; "" for any other failure
	RequestID    string
}

// A Detail is what is wrong with one field of a request.
type Detail struct{ Field, Message string }

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: the server answers %d", e.Method, e.Path, e.Status)
	if e.Code != "" {
		fmt.Fprintf(&b, " %s", Printable(string(e.Code)))
	}
	if e.Message != "" {
		fmt.Fprintf(&b, ": %s", Printable(e.Message))
	}
	for _, d := range e.Details {
		fmt.Fprintf(&b, "; %s %s", Printable(d.Field), Printable(d.Message))
	}
	return b.String()
}

// Status reports whether err is an answer with one of the statuses.
func Status(err error, statuses ...int) bool {
	var e *Error
	return errors.As(err, &e) && slices.Contains(statuses, e.Status)
}

// Absent reports whether err means that the service has no such call or object.
func Absent(err error) bool {
	return Status(err, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented)
}

// An IgnoredError is a success after which some fields are not as they were sent.
type IgnoredError struct {
	Fields []string // as files write them
}

func (e *IgnoredError) Error() string {
	return "the server answers success, but does not take over " + strings.Join(e.Fields, ", ")
}

// Printable replaces the characters that would control a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, s)
}

// netError drops the full address that net/http puts into its errors.
func netError(method, path string, err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return fmt.Errorf("%s %s: %w", method, path, err)
}

// A veil hides secrets in texts of a server, which may repeat what it was sent.
type veil struct {
	mu      sync.Mutex // guards secrets
	secrets []string
}

func (v *veil) add(secret string) {
	if secret == "" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.secrets = append(v.secrets, secret)
}

func (v *veil) cover(text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.secrets {
		text = strings.ReplaceAll(text, s, "(secret)")
	}
	return text
}
