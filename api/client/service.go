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

	once            bool // no call is repeated
	actor, proposal string
}

// page is the meta of a paginated list.
type page struct {
	Total, Page, Limit, TotalPages int

	SearchedTo *string // see Page
}

// A request is one call of a service.
type request struct {
	method, path string
	body         any         // nil: none
	header       http.Header // besides those of the service; nil: none
	viewed       bool        // a read that a proposal can be seen in
	passing      bool        // a POST that changes nothing: it ends with its context
	again        []int       // the statuses after which it is made again
}

// A reply is what an answer has besides its data.
type reply struct {
	*page  // nil: the answer has none
	header http.Header
}

func (r *reply) meta() *page {
	if r == nil {
		return nil
	}
	return r.page
}

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
	r, err := s.do(ctx, request{method: method, path: path, body: body, again: again}, into)
	return r.meta(), err
}

// do makes a request, again where that helps, and decodes the data into into (nil: the data is ignored). The reply is
// nil if there is no answer of the API.
func (s *service) do(ctx context.Context, q request, into any) (r *reply, err error) {
	var payload []byte
	if q.body != nil {
		if payload, err = json.Marshal(q.body); err != nil {
			return nil, err
		}
	}
	for attempt := 1; ; attempt++ {
		r, wait, err := s.attempt(ctx, &q, payload, into)
		var refused *Error
		most := maxReconnects
		if errors.As(err, &refused) {
			if most = maxAttempts; !slices.Contains(q.again, refused.Status) {
				most = 0
			}
		}
		if err == nil || s.once || wait < 0 || attempt >= most || ctx.Err() != nil {
			return r, err
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

// attempt makes a request once. wait is how long to wait before the next time: 0 leaves it to the caller.
func (s *service) attempt(ctx context.Context, q *request, payload []byte, into any) (r *reply, wait time.Duration,
	err error) {
	if q.method != http.MethodGet && !q.passing {
		ctx = context.WithoutCancel(ctx) // a change that has begun is not left half done; the client's timeout applies
	}
	req, err := s.made(ctx, q, payload)
	if err != nil {
		return nil, never, err
	}
	if q.method == http.MethodPost {
		wait = never // the server may or may not have done it
	}
	res, err := s.http.Do(req)
	if err != nil {
		return nil, wait, netError(q.method, q.path, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, wait, netError(q.method, q.path, err)
	}
	meta, err := s.read(q.method, q.path, res, raw, into)
	return &reply{meta, res.Header}, retryAfter(res.Header.Get("Retry-After")), err
}

// made returns the HTTP request.
func (s *service) made(ctx context.Context, q *request, payload []byte) (*http.Request, error) {
	var reader io.Reader
	if payload != nil {
		reader = bytes.NewReader(payload)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, s.base+q.path, reader)
	if err != nil {
		return nil, err
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
	for name, value := range s.headers {
		req.Header.Set(name, value)
	}
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.actor != "" && q.method != http.MethodGet {
		req.Header.Set("X-Actor", s.actor)
	}
	if s.proposal != "" && q.viewed {
		req.Header.Set(headerPropose, s.proposal)
	}
	return req, nil
}

const headerPropose = "X-Propose"

// view reads one object, as the proposal has it if there is one.
func (s *service) view(ctx context.Context, path string, into any) (*reply, error) {
	return s.do(ctx, request{method: http.MethodGet, path: path, viewed: true,
		again: []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}}, into)
}

// read decodes the envelope.
func (s *service) read(method, path string, res *http.Response, raw []byte, into any) (*page, error) {
	if len(raw) > maxAnswerBytes {
		return nil, fmt.Errorf("%s %s: the answer is larger than %d bytes", method, path, maxAnswerBytes)
	}
	refused := &Error{Method: method, Path: path, Status: res.StatusCode, RequestID: res.Header.Get("X-Request-Id")}
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
			Code     catalog.Code
			Message  string
			Details  []Detail
			Requires string
		}
	}
	err := json.Unmarshal(raw, &env)
	if res.StatusCode >= 400 || err == nil && env.Success != nil && !*env.Success {
		if err == nil {
			refused.Code, refused.Requires = env.Error.Code, env.Error.Requires
			refused.Message, refused.Details = s.veil.cover(env.Error.Message), env.Error.Details
			for i := range refused.Details {
				refused.Details[i].Message = s.veil.cover(refused.Details[i].Message)
			}
			if into != nil && env.Data != nil { // a test of SMTP settings that fails says how far it came
				_ = json.Unmarshal(env.Data, into)
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
