package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"fingerpost/resolver/publicnet"
)

// Ask asks the token server for a token that is not kept, and returns how long it may be used.
func (t *Tokens) Ask(ctx context.Context, a Account) (text string, use time.Duration, failure *Error) {
	if !strings.HasPrefix(strings.ToLower(a.TokenURL), "https://") {
		return "", 0, &Error{Reason: "has an address that does not begin with https"}
	}
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	c := clientcredentials.Config{ClientID: a.ClientID, ClientSecret: a.Secret, TokenURL: a.TokenURL}
	if a.Scope != "" {
		c.Scopes = []string{a.Scope}
	}
	e := &exchange{client: t.client}
	token, err := c.Token(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: e,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}))
	if err != nil {
		return "", 0, e.failure(err, t.timeout)
	}
	if token.Type() != "Bearer" || len(token.AccessToken) > tokenBytes || !printable(token.AccessToken) {
		return "", 0, &Error{Reason: "gives a token that is none for mail servers"}
	}
	return token.AccessToken, useOf(token.Expiry), nil
}

// An exchange carries the requests of one question, and notes why the last one failed: the library's errors lose it.
type exchange struct {
	client *publicnet.Client
	none   *publicnet.NoAnswer // there was no answer, or it broke off
	much   bool                // the answer is too long
}

// RoundTrip implements http.RoundTripper.
func (e *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	e.none, e.much = nil, false
	res, none := e.client.Do(req)
	if e.none = none; none != nil {
		return nil, none.Cause
	}
	res.Body = &answer{ReadCloser: res.Body, exchange: e, left: answerBytes}
	return res, nil
}

// An answer is the body of an answer, which fails beyond its bound.
type answer struct {
	io.ReadCloser
	exchange *exchange
	left     int
}

func (b *answer) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		b.exchange.much = true
		return 0, errors.New("the answer is too long")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.exchange.none = &publicnet.NoAnswer{Cause: err}
	}
	return n, err
}

// failure says why there is no token.
func (e *exchange) failure(err error, limit time.Duration) *Error {
	var refused *oauth2.RetrieveError
	switch {
	case e.none != nil:
		return &Error{Temporary: true, Reason: "does not answer: " + e.none.Sentence(limit)}
	case e.much:
		return &Error{Reason: fmt.Sprintf("answers with more than %d bytes", answerBytes)}
	case !errors.As(err, &refused):
		return &Error{Reason: "answers without an access token"}
	}
	status := refused.Response.StatusCode
	f := &Error{Code: errorCode(refused.ErrorCode), Description: refused.ErrorDescription,
		Reason: fmt.Sprintf("answered %d", status)}
	switch {
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout,
		slices.Contains([]string{"server_error", "temporarily_unavailable"}, f.Code):
		f.Temporary = true
	case status >= 300 && status < 400:
		f.Reason += "; redirects are not followed"
	}
	return f
}

// errorCode returns what a token server calls an error if it is a code (RFC 6749 5.2), and no text that repeats what it was
// sent.
func errorCode(text string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz_"
	if len(text) > 64 || strings.Trim(strings.ToLower(text), letters) != "" {
		return "an error without a code"
	}
	return text
}

// printable reports whether a token has only characters of tokens (RFC 6749 A.12).
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
