package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"fingerpost/api/client"
	"fingerpost/cmd/testrig"
)

// hookSecret is the secret of the receivers' webhooks, in the environment of the server.
const hookSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// receivers are one receiver of webhooks of each kind. They keep what they get. They answer well once they are calm.
type receivers struct {
	t    testing.TB
	all  map[string]*eventReceiver
	calm chan struct{}
}

// An eventReceiver keeps the first delivery of each event.
type eventReceiver struct {
	*httptest.Server
	mu       sync.Mutex // guards the fields below
	first    []hookEvent
	bodies   map[string][]byte // by webhook-id
	requests int
}

// A hookEvent is what a delivery tells.
type hookEvent struct {
	Type string
	Data client.AuditEntry
	// Entry is the id of Data, which has another name in a delivery.
	Entry int64
}

// badAnswers are what the receivers do with the request of a number, by their names. What they do not handle is answered
// with 204.
var badAnswers = map[string]func(n int, w http.ResponseWriter, r *http.Request, calm <-chan struct{}) (handled bool){
	"steady": func(int, http.ResponseWriter, *http.Request, <-chan struct{}) bool { return false },
	"hangs": func(n int, _ http.ResponseWriter, r *http.Request, calm <-chan struct{}) bool {
		if n%10 == 3 {
			select {
			case <-r.Context().Done(): // the time is over, or the server is dead
			case <-calm:
			}
		}
		return false
	},
	"refuses": func(n int, w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) bool {
		switch n % 7 {
		case 1, 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusFound)
		case 4:
			panic(http.ErrAbortHandler) // it has the event, and says nothing
		default:
			return false
		}
		return true
	},
	"lies": func(n int, w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) bool {
		switch n % 3 {
		case 1: // 2xx, and then a reset
			raw(w, func(c *net.TCPConn) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nok")
				_ = c.SetLinger(0)
			})
		case 2: // 1 GiB
			raw(w, func(c *net.TCPConn) {
				_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
				for part := make([]byte, 1<<16); err == nil; {
					_, err = c.Write(part)
				}
			})
		default:
			return false
		}
		return true
	},
	"drips": func(_ int, w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) bool {
		raw(w, func(c *net.TCPConn) {
			for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") {
				_, _ = c.Write([]byte{b})
			}
		})
		return true
	},
}

// raw hands over the connection of a request, and closes it.
func raw(w http.ResponseWriter, f func(c *net.TCPConn)) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer c.Close()
	f(c.(*net.TCPConn))
}

// newReceivers starts one receiver of each kind.
func newReceivers(t testing.TB) *receivers {
	t.Helper()
	r := &receivers{t: t, all: map[string]*eventReceiver{}, calm: make(chan struct{})}
	for kind, answer := range badAnswers {
		e := &eventReceiver{bodies: map[string][]byte{}}
		e.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			n, err := e.keep(req)
			if err != nil {
				if req.Context().Err() == nil {
					t.Errorf("%s: %v", kind, err)
				}
				return
			}
			select {
			case <-r.calm:
			default:
				if answer(n, w, req, r.calm) {
					return
				}
			}
			w.WriteHeader(http.StatusNoContent)
		}))
		e.Config.ErrorLog = log.New(io.Discard, "", 0)
		e.Start()
		t.Cleanup(func() {
			e.CloseClientConnections()
			e.Close()
		})
		r.all[kind] = e
	}
	return r
}

// keep keeps what a request tells, and returns its number.
func (e *eventReceiver) keep(req *http.Request) (n int, err error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return 0, err
	}
	var v struct {
		hookEvent
		Data struct {
			client.AuditEntry
			Entry int64
		}
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return 0, fmt.Errorf("%s: %w", body, err)
	}
	id := req.Header.Get("webhook-id")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests++
	switch was, again := e.bodies[id]; {
	case !again:
		e.bodies[id] = body
		e.first = append(e.first, hookEvent{Type: v.Type, Data: v.Data.AuditEntry, Entry: v.Data.Entry})
	case !bytes.Equal(was, body):
		return 0, fmt.Errorf("%s had the body\n%s\nand has\n%s", id, was, body)
	}
	return e.requests, nil
}

func (e *eventReceiver) events() []hookEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.first[:len(e.first):len(e.first)]
}

// file declares a webhook for each receiver.
func (r *receivers) file() string {
	var b strings.Builder
	for kind, e := range r.all {
		fmt.Fprintf(&b, "webhook %q {\n  url    = %q\n  secret = env(\"HOOK_SECRET\")\n}\n\n", kind, e.URL)
	}
	return b.String()
}

// hookFlags are what serve needs for the receivers.
var hookFlags = []string{"--webhook-allow", "127.0.0.0/8"}

// serve has a rig that does not run yet deliver to the receivers.
func (r *receivers) serve(s *rig) {
	s.put("hooks.hcl", r.file())
	s.flags, s.env = append(s.flags, hookFlags...), append(s.env, "HOOK_SECRET="+hookSecret)
}

// trailOf reads the whole audit trail.
func (r *rig) trailOf() (all []client.AuditEntry) {
	r.t.Helper()
	for page := 1; ; page++ {
		var list struct{ Data []client.AuditEntry }
		got := r.get(fmt.Sprintf("/api/platform/audit?order=asc&limit=100&page=%d", page))
		if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != http.StatusOK {
			r.t.Fatalf("the audit trail: %d %s", got.status, got.body)
		}
		if all = append(all, list.Data...); len(list.Data) < 100 {
			return all
		}
	}
}

// check calms the receivers and waits for what is not delivered yet. Then each of them has had each entry of the trail,
// in the order of its project, and nothing that the trail does not tell.
func (r *receivers) check(s *rig) {
	r.t.Helper()
	close(r.calm)
	// A success has what waits tried again at once, but for what was brought forward before, and failed again: after a
	// restart nothing was.
	s.kill()
	s.start()
	if status, _ := s.send("POST", "", `{"name":"They are calm"}`); status != http.StatusCreated {
		r.t.Fatalf("a write is answered with %d", status)
	}
	trail := s.trailOf()
	want := map[int64]*client.AuditEntry{}
	for i := range trail {
		if e := &trail[i]; e.Action != "store.load" || e.Generation > 1 {
			want[e.ID] = e
		}
	}
	requests := 0
	for kind, e := range r.all {
		if err := poll(testrig.Patience, func() error {
			if n := len(e.events()); n < len(want) {
				return fmt.Errorf("%s has %d of %d entries", kind, n, len(want))
			}
			return nil
		}); err != nil {
			for _, v := range e.events() {
				delete(want, v.Entry)
			}
			r.t.Fatalf("%v: it does not get %v", err, slices.Sorted(maps.Keys(want)))
		}
		last := map[int64]int64{}
		for _, v := range e.events() {
			is := want[v.Entry]
			if is == nil {
				r.t.Errorf("%s got %+v, which the trail does not have", kind, v)
				continue
			}
			if project := orZero(v.Data.ProjectID); v.Entry <= last[project] {
				r.t.Errorf("%s got entry %d of project %d after entry %d", kind, v.Entry, project, last[project])
			} else {
				last[project] = v.Entry
			}
			if v.Type != is.Action || orEmpty(v.Data.Object) != orEmpty(is.Object) || orZero(v.Data.ProjectID) != orZero(is.ProjectID) ||
				v.Data.Generation != is.Generation || len(v.Data.Changes) != len(is.Changes) {
				r.t.Errorf("%s got %+v, and the trail has %+v", kind, v, is)
			}
		}
		if n := len(e.events()); n != len(want) {
			r.t.Errorf("%s got %d events, and the trail has %d", kind, n, len(want))
		}
		requests += e.requests
	}
	testrig.Figure(r.t, "%d entries to each of %d receivers, %d requests", len(want), len(r.all), requests)
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
