package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fingerpost/resolver/catalog"
)

// A service is one of the two APIs: its address and the headers that carry the key.
type service struct {
	http    *http.Client
	base    string
	headers map[string]string
	veil    *veil
}

// page is the meta of a paginated list.
type page struct{ Total, Page, Limit, TotalPages int }

const (
	maxAnswerBytes = 256 << 20 // a list that is not paginated, of very many projects
	maxAttempts    = 6         // where the server asks to try again later
	maxReconnects  = 3         // where the connection failed
	maxRetryPause  = 30 * time.Second
)

// call makes one request, decodes the data into into (nil: the data is ignored) and returns the page if the answer has
// one. It tries again if the server asks for it (429, 503) and, except for POST, after a failed connection; each call
// but a POST may so be made twice. body nil: none.
func (s *service) call(ctx context.Context, method, path string, body, into any) (meta *page, err error) {
	return s.callAgain(ctx, method, path, body, into, http.StatusTooManyRequests, http.StatusServiceUnavailable)
}

// callAgain is call with the statuses after which it tries again.
func (s *service) callAgain(ctx context.Context, method, path string, body, into any, again ...int) (meta *page,
	err error) {
	var payload []byte
	if body != nil {
		if payload, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	for attempt := 1; ; attempt++ {
		meta, wait, err := s.once(ctx, method, path, payload, into)
		var refused *Error
		most := maxReconnects
		if errors.As(err, &refused) {
			if most = maxAttempts; !slices.Contains(again, refused.Status) {
				most = 0
			}
		}
		if err == nil || wait < 0 || attempt >= most || ctx.Err() != nil {
			return meta, err
		}
		if wait == 0 {
			wait = time.Duration(100<<attempt)*time.Millisecond + rand.N(100*time.Millisecond)
		}
		timer := time.NewTimer(min(wait, maxRetryPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// never is the wait of an attempt that must not be repeated.
const never time.Duration = -1

// once makes one attempt. wait is how long to wait before the next: 0 leaves it to the caller.
func (s *service) once(ctx context.Context, method, path string, payload []byte, into any) (meta *page,
	wait time.Duration, err error) {
	if method != http.MethodGet {
		ctx = context.WithoutCancel(ctx) // a change that has begun is not left half done; the client's timeout applies
	}
	var reader io.Reader
	if payload != nil {
		reader = bytes.NewReader(payload)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, reader)
	if err != nil {
		return nil, never, err
	}
	for name, value := range s.headers {
		req.Header.Set(name, value)
	}
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	wait = 0
	if method == http.MethodPost {
		wait = never // the server may or may not have done it
	}
	res, err := s.http.Do(req)
	if err != nil {
		return nil, wait, netError(method, path, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, wait, netError(method, path, err)
	}
	meta, err = s.read(method, path, res, raw, into)
	return meta, retryAfter(res.Header.Get("Retry-After")), err
}

// read decodes the envelope.
func (s *service) read(method, path string, res *http.Response, raw []byte, into any) (*page, error) {
	if len(raw) > maxAnswerBytes {
		return nil, fmt.Errorf("%s %s: the answer is larger than %d bytes", method, path, maxAnswerBytes)
	}
	refused := &Error{Method: method, Path: path, Status: res.StatusCode}
	if res.StatusCode == http.StatusNoContent {
		return nil, nil
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		refused.Message = "a redirect, which is not followed with a key in the request"
		if at, err := res.Location(); err == nil {
			refused.Message += "; is " + at.Scheme + "://" + at.Host + " the address?"
		}
		return nil, refused
	}
	var env struct {
		Success *bool
		Data    json.RawMessage
		Meta    *page
		Error   struct {
			Code    catalog.Code
			Message string
			Details []Detail
		}
	}
	err := json.Unmarshal(raw, &env)
	if res.StatusCode >= 400 || err == nil && env.Success != nil && !*env.Success {
		if err == nil {
			refused.Code, refused.Message, refused.Details = env.Error.Code, s.veil.cover(env.Error.Message), env.Error.Details
			for i := range refused.Details {
				refused.Details[i].Message = s.veil.cover(refused.Details[i].Message)
			}
		}
		return nil, refused
	}
	if err != nil || env.Success == nil {
		return nil, fmt.Errorf("%s %s: the answer is not the JSON envelope of this API: does the address lead to it?", method,
			path)
	}
	if into != nil {
		if err := json.Unmarshal(env.Data, into); err != nil {
			return nil, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
		}
	}
	return env.Meta, nil
}

// retryAfter parses a number of seconds or a date; 0 if there is none.
func retryAfter(text string) time.Duration {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return max(min(time.Duration(n)*time.Second, maxRetryPause), time.Millisecond)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), time.Millisecond)
	}
	return 0
}
