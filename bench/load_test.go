package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func testCorpus() *corpus {
	p := corpusParams{Projects: 4, Domains: 12}
	c := newCorpus("", p)
	c.key = "k"
	return c
}

// serve answers every question with what the function returns; ok false closes the connection instead.
func serve(t *testing.T, answer func(domain string) (text string, ok bool)) string {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for r := bufio.NewReader(conn); ; {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					text, ok := answer(req.URL.Query().Get("domain"))
					if !ok {
						return
					}
					fmt.Fprint(conn, text)
				}
			}()
		}
	}()
	return ln.Addr().String()
}

func ok200(c *corpus, domain string) string {
	body := `{"slug":"` + c.slugs[projectNumber([]byte(domain))] + `"}`
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func testLoad(addr string, c *corpus) load {
	return load{target: known(&server{addr: addr}, c, uniformSchedule(c.Domains)), connections: 3, count: 120}
}

func TestLoadCount(t *testing.T) {
	c := testCorpus()
	var asked atomic.Int64
	addr := serve(t, func(domain string) (string, bool) {
		asked.Add(1)
		return ok200(c, domain), true
	})
	res, err := testLoad(addr, c).run(t.Context())
	if err != nil || res.requests != 120 || asked.Load() != 120 || res.failures() != 0 || res.require() != nil {
		t.Errorf("%+v, %v; %d questions arrived", res, err, asked.Load())
	}
	if res.elapsed <= 0 || res.latencies.count() != 120 {
		t.Errorf("elapsed %v, %d latencies of a closed loop", res.elapsed, res.latencies.count())
	}
}

func TestLoadFaults(t *testing.T) {
	c := testCorpus()
	f := func(want fault, answer func(domain string) (string, bool)) {
		t.Helper()
		res, err := testLoad(serve(t, answer), c).run(t.Context())
		if err != nil {
			t.Errorf("fault %s: %v", faultNames[want], err)
			return
		}
		if res.faults[want] != 120 || res.failures() != 120 || res.require() == nil || !strings.Contains(res.describeFaults(), faultNames[want]) {
			t.Errorf("fault %s: %+v", faultNames[want], res)
		}
	}
	f(faultStatus, func(string) (string, bool) { return "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", true })
	f(faultContent, func(string) (string, bool) {
		return "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"slug\":\"other", true
	})
	f(faultConnection, func(string) (string, bool) { return "", false })
	f(faultConnection, func(string) (string, bool) { return "SSH-2.0 hello\r\n\r\n", true })
	f(faultConnection, func(d string) (string, bool) { return ok200(c, d) + "HTTP/1.1 200 twice", true })
}

// An answer that comes in small pieces is one answer.
func TestLoadPieces(t *testing.T) {
	c := testCorpus()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := `{"slug":"` + c.slugs[projectNumber([]byte(r.URL.Query().Get("domain")))] + `"}`
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		for i := range len(body) {
			fmt.Fprint(w, body[i:i+1])
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	}))
	defer web.Close()
	res, err := testLoad(strings.TrimPrefix(web.URL, "http://"), c).run(t.Context())
	if err != nil || res.requests != 120 || res.failures() != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// A server that stalls delays all questions that became due during the stall, not only the one in flight.
func TestOpenLoopCountsFromDue(t *testing.T) {
	const stall = 300 * time.Millisecond
	c := testCorpus()
	var first atomic.Bool
	addr := serve(t, func(domain string) (string, bool) {
		if first.CompareAndSwap(false, true) {
			<-time.After(stall)
		}
		return ok200(c, domain), true
	})
	l := testLoad(addr, c)
	l.connections, l.count, l.rate, l.duration = 1, 0, 500, 2*stall
	res, err := l.run(t.Context())
	if err != nil || res.failures() != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	// 150 of 300 are due during the stall, and two thirds of them wait longer than a third of it: more than a fifth of all.
	if p := res.latencies.percentiles(0.8, 1); p[0] < stall/3 || p[1] < stall*9/10 {
		t.Errorf("p80 %v, longest %v of %d answers", p[0], p[1], res.latencies.count())
	}
	if res.requests > 400 { // a slow machine answers fewer than 300
		t.Errorf("%d questions in %v at 500 a second", res.requests, 2*stall)
	}
}

// The end of ctx ends a load, and is no error.
func TestLoadStop(t *testing.T) {
	c := testCorpus()
	ctx, stop := context.WithCancel(t.Context())
	addr := serve(t, func(domain string) (string, bool) {
		stop()
		return ok200(c, domain), true
	})
	l := testLoad(addr, c)
	l.count = 0
	res, err := l.run(ctx)
	if err != nil || res.requests == 0 || res.failures() != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestLoadNobodyThere(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	if _, err := testLoad(addr, testCorpus()).run(t.Context()); err == nil {
		t.Error("a load on a closed port ran")
	}
	if _, err := testLoad("localhost", testCorpus()).run(t.Context()); err == nil {
		t.Error("a load on a bad address ran")
	}
}

func TestParseAnswer(t *testing.T) {
	const good = "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\nhello"
	for cut := range len(good) {
		if a, whole, err := parseAnswer([]byte(good[:cut])); whole || err != nil {
			t.Errorf("cut at %d: %+v, %v, %v", cut, a, whole, err)
		}
	}
	f := func(text string, status int, body string) {
		t.Helper()
		a, whole, err := parseAnswer([]byte(text))
		if err != nil || !whole || a.status != status || string(a.body) != body {
			t.Errorf("%q: %d %q, %v, %v", text, a.status, a.body, whole, err)
		}
	}
	f(good, 200, "hello")
	f(good+"HTTP", 200, "hello")
	f("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n", 304, "")
	f("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, "")
	bad := func(text string) {
		t.Helper()
		if a, whole, err := parseAnswer([]byte(text)); !errors.Is(err, errAnswer) {
			t.Errorf("%q: %+v, %v, %v", text, a, whole, err)
		}
	}
	bad("\r\n\r\n")
	bad("HTTP/1.0 200 OK\r\n\r\n")
	bad("HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n")
	bad("HTTP/1.1 200 OK\r\n\r\n")
	bad("HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n")
	bad("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
}
