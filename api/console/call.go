package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// callTime is how long a call of the API may take: a write waits for its turn, and a test of SMTP settings for a
// server.
const callTime = 30 * time.Second

// maxAnswer bounds an answer of the API: templates are the largest.
const maxAnswer = 8 << 20

// An object is a JSON object of the API.
type object = map[string]any

// An answer is the API's answer to a call.
type answer struct {
	Status int
	Header http.Header
	Data   any
	Total  int // of a list's rows on all pages
	Pages  int
}

// Object returns the data as an object, an empty one if it is none.
func (a *answer) Object() object { return asObject(a.Data) }

// List returns the data as a list of objects.
func (a *answer) List() []object { return asList(a.Data) }

func asObject(v any) object {
	o, _ := v.(object)
	return o
}

func asList(v any) (list []object) {
	rows, _ := v.([]any)
	for _, row := range rows {
		list = append(list, asObject(row))
	}
	return list
}

// asWords returns a list of texts, nil if v is none.
func asWords(v any) (words []string) {
	list, is := v.([]any)
	if is {
		words = []string{}
	}
	for _, w := range list {
		words = append(words, text(w))
	}
	return words
}

// text returns a value as people read it; null is "".
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case []any:
		words := make([]string, len(v))
		for i := range v {
			words[i] = text(v[i])
		}
		return strings.Join(words, ", ")
	case object:
		b, _ := json.Marshal(v)
		return string(b)
	}
	return fmt.Sprint(v)
}

// A failure is an answer that is no success, or the reason why there is none. It is an error for people.
type failure struct {
	Status    int
	Code      string
	Message   string
	Details   []detail
	RequestID string
}

// A detail is what is wrong with one field.
type detail struct{ Field, Message string }

func (f *failure) Error() string { return f.Message }

// text is the message with what is wrong with each field.
func (f *failure) text() string {
	all := f.Message
	for _, d := range f.Details {
		all += "; " + d.Field + " " + d.Message
	}
	return all
}

// A call is a question to the API.
type call struct {
	method, path string // with its query
	body         object // nil: none
	header       http.Header
}

func get(path string, query ...string) call {
	return call{method: http.MethodGet, path: link(path, query...)}
}

// with appends a query to a path; pairs without a value are left out.
func link(path string, pairs ...string) string {
	if q := query(pairs...); q != "" {
		return path + "?" + q
	}
	return path
}

func query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q.Encode()
}

// ask calls the API with the session's key, and in the name of its person. A failure of the API is a *failure.
func (c *Console) ask(ctx context.Context, s *session, q call) (*answer, error) {
	req, err := c.request(ctx, s, q)
	if err != nil {
		return nil, err
	}
	res, err := c.client.Do(req)
	if err != nil {
		return nil, &failure{Status: http.StatusServiceUnavailable,
			Message: "The service does not answer: it is stopping, or overloaded. Nothing is known of what was asked."}
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, &failure{Status: http.StatusServiceUnavailable, Message: "The answer of the service ended early."}
	}
	a := &answer{Status: res.StatusCode, Header: res.Header}
	if len(raw) == 0 {
		return a, nil
	}
	var envelope struct {
		Data  any
		Meta  struct{ Total, TotalPages int }
		Error *struct {
			Code, Message string
			Details       []detail
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&envelope); err != nil {
		return nil, fmt.Errorf("read the answer to %s %s: %w", q.method, q.path, err)
	}
	a.Data, a.Total, a.Pages = envelope.Data, envelope.Meta.Total, envelope.Meta.TotalPages
	if e := envelope.Error; e != nil {
		return a, &failure{Status: res.StatusCode, Code: e.Code, Message: e.Message, Details: e.Details,
			RequestID: res.Header.Get("X-Request-Id")}
	}
	return a, nil
}

// inProposal are the paths of reads that can show a proposal: those of one project, and of what belongs to it.
var inProposal = regexp.MustCompile(`^/api/(platform/projects/(\d+|by-slug/[^/?]+)|mail/projects/\d+/(smtp-config|templates))(/|\?|$)`)

func (c *Console) request(ctx context.Context, s *session, q call) (*http.Request, error) {
	var body io.Reader
	if q.body != nil {
		b, err := json.Marshal(q.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, "http://console"+q.path, body)
	if err != nil {
		return nil, err
	}
	if name := s.Proposal(); name != "" && q.method == http.MethodGet && inProposal.MatchString(q.path) {
		req.Header.Set(headerPropose, name)
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(q.path, "/api/mail") {
		req.Header.Set("X-Internal-Service-Token", s.text)
		req.Header.Set("X-Internal-Service-Name", "console")
	} else {
		req.Header.Set("X-PLATFORM-KEY", s.text)
	}
	if s.actor != "" && q.method != http.MethodGet {
		req.Header.Set("X-Actor", s.actor)
	}
	return req, nil
}

// number returns a number of a form or query, or def.
func number(text string, def int) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	return def
}

// parseObject reads a JSON object, nil if it is none.
func parseObject(text string) (o object) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&o)
	return o
}
