package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"fingerpost/cmd/testrig"
)

// A follower is an open event stream of a story.
type follower struct {
	mu    sync.Mutex // guards what follows
	heard strings.Builder
	ended bool
}

func (f *follower) state() (heard string, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard.String(), f.ended
}

type followersKey struct{}

// followCmds are
//
//	follow [-key=K] [-name=N] STREAM [ID]   open an event stream, after ID if it is given, and keep what it brings
//	heard STREAM PATTERN                    wait until what it has brought matches, and print it
//	ended STREAM                            wait for the stream's end
func followCmds() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"follow": cmdFollow, "heard": cmdHeard, "ended": cmdEnded,
	}
}

func cmdFollow(ts *testscript.TestScript, neg bool, args []string) {
	name, key, args := named(args)
	if len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: follow STREAM [ID]")
	}
	if key == "" {
		key = ts.Getenv("KEY")
	}
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, theServer(ts, name).url+"/api/platform/events", nil)
	ts.Check(err)
	req.Header.Set("X-PLATFORM-KEY", key)
	if len(args) > 1 {
		req.Header.Set("Last-Event-ID", args[1])
	}
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	f := &follower{}
	done := make(chan struct{})
	ts.Defer(func() { cancel(); <-done })
	ts.Value(followersKey{}).(map[string]*follower)[args[0]] = f
	go func() {
		defer close(done)
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			f.mu.Lock()
			fmt.Fprintln(&f.heard, lines.Text())
			f.mu.Unlock()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = lines.Err() == nil
	}()
}

func theFollower(ts *testscript.TestScript, name string) *follower {
	f := ts.Value(followersKey{}).(map[string]*follower)[name]
	if f == nil {
		ts.Fatalf("no stream %q was opened", name)
	}
	return f
}

func cmdHeard(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: heard STREAM PATTERN")
	}
	f, want := theFollower(ts, args[0]), regexp.MustCompile(args[1])
	err := poll(testrig.Patience, func() error {
		if heard, _ := f.state(); !want.MatchString(heard) {
			return fmt.Errorf("no match for %s in %s", args[1], heard)
		}
		return nil
	})
	if err != nil {
		ts.Fatalf("%v", err)
	}
	heard, _ := f.state()
	fmt.Fprint(ts.Stdout(), heard)
}

func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	f := theFollower(ts, args[0])
	err := poll(testrig.Patience, func() error {
		if heard, ended := f.state(); !ended {
			return fmt.Errorf("the stream has not ended in good order: %s", heard)
		}
		return nil
	})
	if err != nil {
		ts.Fatalf("%v", err)
	}
}
