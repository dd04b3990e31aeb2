package tenant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	resolvePath = "/api/platform/projects/resolve?labels=1"
	eventsPath  = "/api/platform/events"

	maxBody = 64 << 20 // bytes; a batch of 1,000 names has about 2 MiB
	sends   = 4        // of one question, where its position is refused
)

// A reply is what the server says about a name.
type reply struct {
	tenant    *Tenant
	unchanged bool  // since the tenant that was asked about
	refusal   error // ErrUnknown, ErrInvalid, ErrNotVerified, ErrSuspended or ErrForbidden
}

// A failure is the reason why the server has said nothing about a name.
type failure struct {
	cause      error
	retryAfter time.Duration // 0 if the server has not asked for a wait
}

func failed(format string, args ...any) *failure { return &failure{cause: fmt.Errorf(format, args...)} }

// resolve asks about one name.
func (c *Cache) resolve(ctx context.Context, q *question) (*reply, *failure) {
	path := resolvePath + "&domain=" + url.QueryEscape(q.host)
	header := http.Header{}
	if q.prior != nil && q.prior.ETag != "" {
		header.Set("If-None-Match", q.prior.ETag)
	}
	a, f := c.exchange(ctx, []*question{q}, path, header, nil)
	switch {
	case f != nil:
		return nil, f
	case a.status == http.StatusNotModified && header.Get("If-None-Match") != "":
		return &reply{unchanged: true}, nil
	}
	return replyOf(a.status, a.code, a.data, a.header.Get("ETag"))
}

// replyOf reads the answer about one name, also that in a row of a batch.
func replyOf(status int, code string, data []byte, etag string) (*reply, *failure) {
	if status == http.StatusOK {
		t, err := readTenant(data, etag)
		if err != nil {
			return nil, &failure{cause: err}
		}
		return &reply{tenant: t}, nil
	}
	if refusal := refusalOf(status, code); refusal != nil {
		return &reply{refusal: refusal}, nil
	}
	return nil, failed("the server answers %d", status)
}

// refusalOf returns what a status says about a name; nil if it says nothing.
func refusalOf(status int, code string) error {
	switch {
	case status == http.StatusBadRequest && code == "VALIDATION_ERROR":
		return ErrInvalid
	case status == http.StatusNotFound && code == "NOT_FOUND":
		return ErrUnknown
	case status == http.StatusForbidden && code == "DOMAIN_NOT_VERIFIED":
		return ErrNotVerified
	case status == http.StatusForbidden && code == "PROJECT_SUSPENDED":
		return ErrSuspended
	case status == http.StatusForbidden && code == "FORBIDDEN":
		return ErrForbidden
	}
	return nil
}

// readTenant reads the data of an answer.
func readTenant(data []byte, etag string) (*Tenant, error) {
	var d struct {
		Project struct {
			ID                       int64
			UUID, Slug, Name, Status string
			Labels                   map[string]string
		}
		AuthSettings    Auth
		ServiceSettings Services
		MatchedDomain   struct{ Domain string }
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	p := &d.Project
	if p.ID == 0 || p.Slug == "" || d.MatchedDomain.Domain == "" {
		return nil, errors.New("an answer has no project")
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	return &Tenant{ID: p.ID, UUID: p.UUID, Slug: p.Slug, Name: p.Name, Status: p.Status, Domain: d.MatchedDomain.Domain,
		Labels: p.Labels, Auth: d.AuthSettings, Services: d.ServiceSettings, ETag: etag}, nil
}

// An answered is an answer of the server that is as new as the newest event.
type answered struct {
	status int
	code   string // of an error
	data   json.RawMessage
	header http.Header
}

// exchange sends a request, again where its position is refused.
func (c *Cache) exchange(ctx context.Context, qs []*question, path string, header http.Header, body []byte) (
	*answered, *failure) {
	for range sends {
		minPosition, at := c.begun(qs)
		h := header.Clone()
		if minPosition != "" {
			h.Set("X-Min-Position", minPosition)
		}
		a, f := c.send(ctx, path, h, body)
		switch {
		case f != nil:
			return nil, f
		case a.status == http.StatusConflict && a.code == "POSITION_UNKNOWN" && minPosition != "":
			c.forgetPosition()
		case c.arrived(a.header.Get("X-Config-Position"), at):
			return a, nil
		case minPosition != "":
			return nil, failed("an answer is older than the position that was asked for")
		}
	}
	return nil, failed("the server's position changes with every answer")
}

// send sends a request and reads the answer, which is JSON.
func (c *Cache) send(ctx context.Context, path string, header http.Header, body []byte) (*answered, *failure) {
	header.Set("Accept", "application/json")
	res, f := c.do(ctx, path, header, body)
	if f != nil {
		return nil, f
	}
	defer res.Body.Close()
	a := &answered{status: res.StatusCode, header: res.Header}
	if res.StatusCode == http.StatusNotModified {
		return a, nil
	}
	if t := res.Header.Get("Content-Type"); mediaType(t) != "application/json" {
		return nil, failed("the server answers %d with the content type %q instead of JSON", res.StatusCode, t)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err != nil {
		return nil, &failure{cause: fmt.Errorf("read an answer: %w", cause(ctx, err))}
	}
	var envelope struct {
		Success bool
		Data    json.RawMessage
		Error   struct{ Code string }
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return nil, failed("the server answers %d with a body that is not JSON", res.StatusCode)
	}
	if ok := res.StatusCode == http.StatusOK; ok != envelope.Success {
		return nil, failed("the server answers %d with a body that is not of this API", res.StatusCode)
	}
	a.code, a.data = envelope.Error.Code, envelope.Data
	return a, nil
}

// do sends a request: a POST if it has a body. An answer that cannot be about a name is a failure.
func (c *Cache) do(ctx context.Context, path string, header http.Header, body []byte) (*http.Response, *failure) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, c.o.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, &failure{cause: err}
	}
	req.Header = header
	req.Header.Set("X-Platform-Key", c.o.Key)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, &failure{cause: cause(ctx, err)}
	}
	switch status := res.StatusCode; {
	case status == http.StatusUnauthorized:
		f := failed("%w (401)", ErrUnauthorized)
		res.Body.Close()
		return nil, f
	case status >= 500 || status == http.StatusTooManyRequests:
		f := failed("the server answers %d", status)
		f.retryAfter = retryAfter(res.Header.Get("Retry-After"), c.clock.Now())
		res.Body.Close()
		return nil, f
	case status >= 300 && status < 400 && status != http.StatusNotModified:
		res.Body.Close()
		return nil, failed("the server answers %d: redirects are refused, give the final address as URL", status)
	}
	return res, nil
}

// cause returns why a request has failed, without the parts that http.Client adds.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New(context.Cause(ctx).Error()) // must not pass for the end of the caller's context
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}

// retryAfter reads the header of that name: seconds, or a time.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

func mediaType(contentType string) string {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return strings.ToLower(t)
}
