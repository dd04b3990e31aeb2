package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// A client sends requests to a desk's server over keep-alive connections, from any number of goroutines, and validates
// every exchange against openapi.yaml.
type client struct {
	t    testing.TB
	http *http.Client
	url  string
	key  string

	patient bool // see ask
}

// newClient gives up a request after testrig.Patience: a server that takes so long is as good as locked up.
func newClient(t testing.TB, d *desk) *client {
	via := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(via.CloseIdleConnections)
	return &client{t: t, url: "http://" + d.addr, key: d.key,
		http: &http.Client{Timeout: testrig.Patience, Transport: conformingTransport{t, via}}}
}

// A reply is what a client gets. Status 0 means that no reply came; the test has failed already then.
type reply struct {
	status int
	etag   string
	body   []byte
}

// ask sends a request, with an If-Match unless that is "". A patient client asks again after a 503, which has changed
// nothing.
func (c *client) ask(method, path, body, ifMatch string) (r reply) {
	for end := time.Now().Add(testrig.Patience); ; {
		if r = c.once(method, path, body, ifMatch); !c.patient || r.status != http.StatusServiceUnavailable || time.Now().After(end) {
			return r
		}
	}
}

func (c *client) once(method, path, body, ifMatch string) (r reply) {
	req, err := http.NewRequest(method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return reply{}
	}
	req.Header.Set("X-PLATFORM-KEY", c.key)
	if ifMatch != "" {
		req.Header.Set("If-Match", ifMatch)
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Errorf("%s %s: %v", method, path, err)
		return reply{}
	}
	defer res.Body.Close()
	if r.body, err = io.ReadAll(res.Body); err != nil {
		c.t.Error(err)
		return reply{}
	}
	r.status, r.etag = res.StatusCode, res.Header.Get("ETag")
	return r
}

// want is ask for a call with one right status; ok reports whether it came.
func (c *client) want(status int, method, path, body string) (r reply, ok bool) {
	r = c.ask(method, path, body, "")
	if r.status != status && r.status != 0 {
		c.t.Errorf("%s %s %s: %d, want %d: %s", method, path, body, r.status, status, r.body)
	}
	return r, r.status == status
}

// into decodes an answer's data.
func (r reply) into(t testing.TB, data any) {
	if err := json.Unmarshal(r.body, &struct{ Data any }{data}); err != nil {
		t.Errorf("%v: %s", err, r.body)
	}
}
