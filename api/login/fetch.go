package login

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"fingerpost/resolver/publicnet"
)

// Bounds of what is asked of a provider.
const (
	askTime     = 10 * time.Second
	answerBytes = 1 << 20
	headerBytes = 64 << 10
)

// A transport makes the requests of go-oidc and x/oauth2. It reads each answer itself, within the bounds: what fails
// has an *Error, whatever those libraries make of it, and none of their requests is without an end.
type transport struct {
	client  *publicnet.Client
	timeout time.Duration
	agent   string
}

// RoundTrip is for http.Client. A GET is answered with 200, or fails.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.ask(req)
	if err == nil && req.Method == http.MethodGet && res.StatusCode != http.StatusOK {
		return nil, notOK(res.StatusCode)
	}
	return res, err
}

func notOK(status int) *Error {
	return &Error{Status: http.StatusBadGateway,
		Message: fmt.Sprintf("it answered %d instead of 200; redirects are not followed", status)}
}

// ask returns an answer with a status below 500. The error is an *Error, whose message completes a
// sentence.
func (t *transport) ask(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), t.timeout)
	defer cancel()
	req = req.Clone(ctx)
	req.Header.Set("User-Agent", t.agent)
	res, none := t.client.Do(req)
	if none != nil {
		return nil, t.noAnswer(none)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, answerBytes+1))
	switch {
	case err != nil:
		return nil, t.noAnswer(&publicnet.NoAnswer{Cause: err})
	case len(text) > answerBytes:
		return nil, &Error{Status: http.StatusBadGateway, Message: "the answer has more than 1 MiB"}
	case res.StatusCode >= http.StatusInternalServerError:
		return nil, &Error{Status: http.StatusServiceUnavailable, Message: fmt.Sprintf("it answered %d", res.StatusCode)}
	}
	res.Body = io.NopCloser(bytes.NewReader(text))
	return res, nil
}

func (t *transport) noAnswer(none *publicnet.NoAnswer) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Message: none.Sentence(t.timeout), cause: none.Cause}
}
