package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the programs that bench starts, such as the floor: arguments that are no test flags
// are a command of bench. Otherwise each such program would run the tests, and start itself again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func smallBench(t *testing.T) *bench {
	t.Helper()
	o := defaultOptions("resolve")
	o.work = t.TempDir()
	o.corpus = corpusParams{Projects: 40, Domains: 120}
	o.connections, o.rounds, o.round = 4, 2, 50*time.Millisecond
	b := &bench{options: o, progress: io.Discard}
	t.Cleanup(func() { end(t, b) })
	return b
}

// end ends a command before the test does.
func end(t *testing.T, b *bench) {
	t.Helper()
	if err := b.end(); err != nil {
		t.Error(err)
	}
}

func smallCorpus(t *testing.T, b *bench) *corpus {
	t.Helper()
	c, err := b.openCorpus("corpus-", b.corpus)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// standIn is a server that runs a handler in this process.
func standIn(t *testing.T, handler http.HandlerFunc) *server {
	t.Helper()
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return &server{name: "stand-in", addr: strings.TrimPrefix(web.URL, "http://"), pid: os.Getpid()}
}
