package conformance_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// retryAfter is what the proxy asks for when it is to be "limited", in seconds.
const retryAfter = "30"

// A proxy stands between a client and a server, and misbehaves.
type proxy struct {
	*httptest.Server
	elsewhere *httptest.Server // where redirects lead

	mu        sync.Mutex // guards what follows
	mode      string     // see Step.Proxy
	changed   chan struct{}
	upstream  string
	questions int
	strayed   []string // requests that have followed a redirect
	conns     map[net.Conn]struct{}
}

func newProxy(t testing.TB) *proxy {
	p := &proxy{mode: "pass", changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	p.elsewhere = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.strayed = append(p.strayed, r.URL.String())
	}))
	p.Server = httptest.NewUnstartedServer(p)
	p.Config.ConnState = func(c net.Conn, s http.ConnState) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch s {
		case http.StateNew:
			p.conns[c] = struct{}{}
		case http.StateClosed, http.StateHijacked:
			delete(p.conns, c)
		}
	}
	p.Start()
	t.Cleanup(func() {
		p.set("pass")
		p.cut()
		p.Close()
		p.elsewhere.Close()
	})
	return p
}

func (p *proxy) set(mode string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = mode
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *proxy) lead(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

// cut ends all connections of the client.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// asked returns the number of questions since the last call.
func (p *proxy) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.questions
	p.questions = 0
	return n
}

func (p *proxy) state() (mode, upstream string, changed chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.upstream, p.changed
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mode, upstream, _ := p.state()
	if strings.Contains(r.URL.Path, "/projects/resolve") {
		p.mu.Lock()
		p.questions++
		p.mu.Unlock()
	}
	switch mode {
	case "hang":
		p.hang(r)
		return
	case "html":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html><body>Please sign in to this network.</body></html>")
		return
	case "redirect":
		http.Redirect(w, r, p.elsewhere.URL+r.URL.Path, http.StatusFound)
		return
	case "limited":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"success":false,"message":"too many requests","error":{"code":"RATE_LIMITED"}}`)
		return
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, upstream+r.URL.RequestURI(), r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out.Header = r.Header.Clone()
	out.ContentLength = r.ContentLength
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer res.Body.Close()
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	p.pass(w, r, res.Body)
}

// pass copies an answer, and does to it what the mode says by then.
func (p *proxy) pass(w http.ResponseWriter, r *http.Request, body io.Reader) {
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	b := make([]byte, 64<<10)
	for {
		n, err := body.Read(b)
		for {
			mode, _, changed := p.state()
			if mode != "hang" {
				break
			}
			select {
			case <-changed:
			case <-r.Context().Done():
				panic(http.ErrAbortHandler)
			}
		}
		// Only an event is halved: comments and ids have fewer bytes.
		if mode, _, _ := p.state(); mode == "half" && n > 60 {
			_, _ = w.Write(b[:n/2])
			_ = flush.Flush()
			panic(http.ErrAbortHandler)
		}
		if n > 0 {
			_, _ = w.Write(b[:n])
			_ = flush.Flush()
		}
		switch {
		case err == io.EOF:
			return
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}

// hang gives no byte until the mode is another one, and then ends the connection.
func (p *proxy) hang(r *http.Request) {
	for {
		mode, _, changed := p.state()
		if mode != "hang" {
			panic(http.ErrAbortHandler)
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
