package configsrc_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A testClock is a clock that a test sets.
type testClock struct {
	mu sync.Mutex // guards at
	at time.Time
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *testClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

const (
	needsProofs = "defaults {\n  verification {\n    require = \"project-keys\"\n  }\n}\n"
	former      = `project "acme" {
  name = "Acme"

  domain "acme.example" { verified = "2026-11-24" }
  domain "shop.acme.example" {}
}
`
)

// TestSlugUsedAgain: a project whose slug was another's gets no proof of that one's domains. A stash, a revert and a move
// change nothing.
func TestSlugUsedAgain(t *testing.T) {
	another := strings.Replace(former, "Acme", "Another", 1)
	pending := strings.NewReplacer(`"2026-11-24"`, `"pending"`, `example" {}`, `example" { verified = "pending" }`)
	own := strings.Replace(another, "{\n", "{\n  uuid = \"5e0f1b26-6d9a-4f9e-8f31-61d5e9b8a0c4\"\n", 1)
	for _, c := range []struct {
		name     string
		defaults string
		gone     time.Duration
		again    string // the block that comes back
		want     string // the file then
		warned   bool
		readOnly bool
		restart  bool
		byAPI    bool // removes the project
	}{
		{name: "as it was", defaults: needsProofs, gone: 48 * time.Hour, again: former, want: former},
		{name: "as it was, spelt differently", defaults: needsProofs, gone: 48 * time.Hour,
			again: strings.Replace(former, "  name", "\t# ours\n\tname", 1), want: strings.Replace(former, "  name", "\t# ours\n\tname", 1)},
		{name: "within the hour", defaults: needsProofs, gone: 59 * time.Minute, again: another, want: another},
		{name: "another", defaults: needsProofs, gone: 61 * time.Minute, again: another, want: pending.Replace(another), warned: true},
		{name: "another, by the API", defaults: needsProofs, gone: 61 * time.Minute, again: another, want: pending.Replace(another),
			warned: true, byAPI: true},
		{name: "another, after a restart", defaults: needsProofs, gone: 300 * 24 * time.Hour, again: another,
			want: pending.Replace(another), warned: true, restart: true},
		{name: "after a year", defaults: needsProofs, gone: 367 * 24 * time.Hour, again: another, want: another},
		{name: "no proofs", defaults: "defaults {}\n", gone: 61 * time.Minute, again: another, want: another, warned: true},
		{name: "read-only", defaults: needsProofs, gone: 61 * time.Minute, again: another, want: another, warned: true, readOnly: true},
		{name: "its own uuid", defaults: needsProofs, gone: 61 * time.Minute, again: own, want: own},
		{name: "clock set back", defaults: needsProofs, gone: -48 * time.Hour, again: another, want: another},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, data := t.TempDir(), t.TempDir()
			write(t, filepath.Join(dir, "defaults.hcl"), c.defaults)
			file := write(t, filepath.Join(dir, "acme.hcl"), former)
			clock := &testClock{at: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
			o := nodeOptions{data: data, now: clock.now, readOnly: c.readOnly, accept: true}
			n := newNode(t, dir, o)
			n.untilName("acme.example", "Acme")
			if c.byAPI {
				must(t, deleteProject(t.Context(), n.source, acme, func(*catalog.ProjectConfig) error { return nil }))
			} else {
				must(t, os.Remove(file))
			}
			n.untilName("acme.example", "NOT_FOUND")
			if c.restart {
				n.stop()
				n = newNode(t, dir, o)
			}
			clock.add(c.gone)
			write(t, file, c.again)
			served := "Another"
			switch c.want {
			case pending.Replace(another):
				served = "DOMAIN_NOT_VERIFIED"
			case c.again:
				if !strings.Contains(c.again, "Another") {
					served = "Acme"
				}
			}
			n.untilName("acme.example", served)
			if got := read(t, file); got != c.want {
				t.Errorf("the file is\n%s\nwant\n%s", got, c.want)
			}
			n.until("the look has ended", func() bool { return n.source.Status().Projects == 1 })
			if warned := strings.Contains(fmt.Sprint(n.source.Status().Problems), "is another"); warned != c.warned {
				t.Errorf("warned: %v; %v", warned, n.source.Status().Problems)
			}
			f, err := catalog.FormerOf(n.resolver, acme)
			if err != nil || f.Other.IsZero() == c.warned || (c.want != own && !f.Removed.IsZero()) {
				t.Errorf("noted: %+v, %v", f, err)
			}
		})
	}
}

// A forgetfulSink cannot list its named values while fails is set, and stores them.
type forgetfulSink struct {
	*resolver.Resolver
	fails atomic.Bool
}

func (f *forgetfulSink) EachNamed(prefix string, each func(name string, value []byte) error) error {
	if f.fails.Load() {
		return errors.New("no list")
	}
	return f.Resolver.EachNamed(prefix, each)
}

// TestRemovedWhileNobodyIsKnown: a removal is remembered also while what was known before cannot be read.
func TestRemovedWhileNobodyIsKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "acme.hcl"), former)
	sink := &forgetfulSink{Resolver: openResolver(t, "")}
	sink.fails.Store(true)
	n := newNode(t, dir, nodeOptions{resolver: sink.Resolver, sink: sink, accept: true})
	t.Cleanup(func() { n.stop(); must(t, sink.Close()) })
	n.untilName("acme.example", "Acme")
	must(t, deleteProject(t.Context(), n.source, acme, func(*catalog.ProjectConfig) error { return nil }))
	sink.fails.Store(false)
	if f, err := catalog.FormerOf(sink, acme); err != nil || f.Removed.IsZero() {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestPeopleWinOverPending: a person may say that it is the same customer after all.
func TestPeopleWinOverPending(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "defaults.hcl"), needsProofs)
	file := write(t, filepath.Join(dir, "acme.hcl"), former)
	clock := &testClock{at: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	n := newNode(t, dir, nodeOptions{now: clock.now, accept: true})
	n.untilName("acme.example", "Acme")
	must(t, os.Remove(file))
	n.untilName("acme.example", "NOT_FOUND")
	clock.add(2 * time.Hour)
	another := strings.Replace(former, "Acme", "Another", 1)
	write(t, file, another)
	n.untilName("acme.example", "DOMAIN_NOT_VERIFIED")
	write(t, file, another)
	n.untilName("acme.example", "Another")
	if got := read(t, file); got != another {
		t.Errorf("the file is\n%s", got)
	}
	n.until("no warning is left", func() bool { return n.source.Status().Warnings == 0 })
}
