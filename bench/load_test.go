package main

import (
	"bufio"
	"context"
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
	return load{side: resolves(&server{addr: addr}, c, c.names()), workers: 3, count: 120}
}

func TestLoadCount(t *testing.T) {
	c := testCorpus()
	var asked atomic.Int64
	addr := serve(t, func(domain string) (string, bool) {
		asked.Add(1)
		return ok200(c, domain), true
	})
	out, err := testLoad(addr, c).run(t.Context())
	if err != nil || len(out.latencies) != 120 || asked.Load() != 120 || out.elapsed <= 0 {
		t.Errorf("%+v, %v; %d questions arrived", out, err, asked.Load())
	}
}

// A single wrong answer voids a load.
func TestLoadFaults(t *testing.T) {
	c := testCorpus()
	f := func(want string, answer func(domain string) (string, bool)) {
		t.Helper()
		if _, err := testLoad(serve(t, answer), c).run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	f("status 503", func(string) (string, bool) { return "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", true })
	f("asked for", func(string) (string, bool) {
		return "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"slug\":\"other", true
	})
	f("call 127.0.0.1", func(string) (string, bool) { return "", false })
	f("call 127.0.0.1", func(string) (string, bool) { return "SSH-2.0 hello\r\n\r\n", true })
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
	if out, err := testLoad(strings.TrimPrefix(web.URL, "http://"), c).run(t.Context()); err != nil || len(out.latencies) != 120 {
		t.Errorf("%+v, %v", out, err)
	}
}

// A side that stalls delays all operations that became due during the stall, not only the one under way, and none
// begins before it is due.
func TestRateCountsFromDue(t *testing.T) {
	const stall = 300 * time.Millisecond
	first := true
	l := load{workers: 1, rate: 500, duration: 2 * stall, side: &side{name: "staller", worker: func(int) worker {
		return worker{close: func() {}, do: func() error {
			if first {
				time.Sleep(stall)
			}
			first = false
			return nil
		}}
	}}}
	out, err := l.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// 150 of 300 are due during the stall, and two thirds of them wait longer than a third of it: more than a fifth of all.
	if p := out.percentiles(0, 0.8, 1); p[0] < 0 || p[1] < stall/3 || p[2] < stall*9/10 {
		t.Errorf("shortest %v, p80 %v, longest %v of %d", p[0], p[1], p[2], len(out.latencies))
	}
	if most := int(500*out.elapsed.Seconds()) + 1; len(out.latencies) > most { // a slow machine does fewer
		t.Errorf("%d in %v at 500 a second", len(out.latencies), out.elapsed)
	}
}

// The end of ctx ends a load, and is no error; while ends it with its function.
func TestLoadStop(t *testing.T) {
	c := testCorpus()
	ctx, stop := context.WithCancel(t.Context())
	asked := make(chan struct{}, 1000)
	addr := serve(t, func(domain string) (string, bool) {
		select {
		case asked <- struct{}{}:
		default:
		}
		return ok200(c, domain), true
	})
	l := testLoad(addr, c)
	l.count = 0
	out, err := l.while(ctx, func() error { <-asked; return nil })
	if err != nil || len(out.latencies) == 0 {
		t.Errorf("%+v, %v", out, err)
	}
	stop()
	if out, err = l.run(ctx); err != nil || len(out.latencies) > 0 {
		t.Errorf("after its end: %+v, %v", out, err)
	}
}

func TestLoadNobodyThere(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	if _, err := testLoad(addr, testCorpus()).run(t.Context()); err == nil || !strings.Contains(err.Error(), "call 127.0.0.1") {
		t.Errorf("a load on a closed port: %v", err)
	}
}
