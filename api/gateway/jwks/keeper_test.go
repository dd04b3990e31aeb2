package jwks_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/api/gateway/jwks"
	"fingerpost/cmd/testrig"
)

// A ledger keeps notes in memory.
type ledger struct {
	mu    sync.Mutex
	notes map[string][]byte
	fails bool
}

func (l *ledger) SetNamed(values map[string][]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails {
		return errors.New("the disk is full")
	}
	for name, value := range values {
		if l.notes[name] = value; value == nil {
			delete(l.notes, name)
		}
	}
	return nil
}

func (l *ledger) EachNamed(prefix string, f func(name string, value []byte) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, value := range l.notes {
		if strings.HasPrefix(name, prefix) {
			if err := f(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.notes)
}

func (l *ledger) fail(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = on
}

// jwk returns a new key as a JWK.
func jwk(t testing.TB, kid string) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":%q,"x":%q}`, kid, base64.RawURLEncoding.EncodeToString(public))
}

func setOf(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

// A provider serves a key set, or whatever a test wants.
type provider struct {
	*httptest.Server
	asked  atomic.Int64
	answer atomic.Pointer[http.HandlerFunc]
}

func newProvider(t testing.TB) *provider {
	p := new(provider)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		(*p.answer.Load())(w, r)
	}))
	t.Cleanup(func() { p.CloseClientConnections(); p.Close() })
	p.say(http.StatusOK, "")
	return p
}

func (p *provider) do(f http.HandlerFunc) { p.answer.Store(&f) }

func (p *provider) say(status int, text string) {
	p.do(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	})
}

// A clock is moved by tests.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_800_000_000, c.offset.Load()) }
func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// A rig is a keeper that runs.
type rig struct {
	*jwks.Keeper
	t     *testing.T
	clock clock
	stop  func()
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func newRig(t *testing.T, l *ledger, allow []netip.Prefix) *rig {
	t.Helper()
	if l.notes == nil {
		l.notes = map[string][]byte{}
	}
	r := &rig{t: t}
	r.Keeper = jwks.New(jwks.Options{Notes: l, Allow: allow, Version: "1", Logger: slog.New(slog.DiscardHandler), Now: r.clock.now,
		Timeout: 2 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	r.stop = func() { cancel(); running.Wait() }
	t.Cleanup(r.stop)
	return r
}

func (r *rig) kids(url string) string {
	set := r.KeySet(url)
	if set == nil {
		return "none"
	}
	var kids []string
	for _, k := range set.Keys {
		kids = append(kids, k.ID)
	}
	return strings.Join(kids, " ")
}

func (r *rig) want(url, kids string) {
	r.t.Helper()
	testrig.Eventually(r.t, fmt.Sprintf("the keys %q of %s", kids, url), func() bool { return r.kids(url) == kids })
}

func (r *rig) wantAsked(p *provider, n int64) {
	r.t.Helper()
	testrig.Eventually(r.t, fmt.Sprint(n, " fetches"), func() bool { return p.asked.Load() == n })
}

// TestKeeper: a set is fetched once it is named, an unknown key fetches again at most once a minute for each project, and
// what nobody names is forgotten.
func TestKeeper(t *testing.T) {
	t.Parallel()
	p, l := newProvider(t), new(ledger)
	a, b := jwk(t, "a"), jwk(t, "b")
	p.say(200, setOf(a, `{"kty":"oct","k":"AA"}`))
	r := newRig(t, l, loopback)
	r.Declare([]jwks.Source{{Project: 1, Slug: "one", URL: p.URL, Needed: true}})
	r.want(p.URL, "a")
	r.Put(jwks.Source{Project: 2, Slug: "two", URL: p.URL})
	r.Put(jwks.Source{Project: 1, Slug: "one", URL: p.URL})
	before := r.KeySet(p.URL)

	p.say(200, setOf(a, b))
	flood := func(project int64) {
		for range 1000 {
			r.NoteUnknown(project, p.URL)
		}
	}
	flood(1)
	r.want(p.URL, "a b")
	if r.KeySet(p.URL).Identity == before.Identity {
		t.Error("other keys, and the same identity")
	}
	r.wantAsked(p, 2)
	testrig.Eventually(t, "the fetch of another project", func() bool { flood(1); flood(2); return p.asked.Load() == 3 })
	for range 10 {
		flood(1)
		flood(2)
		flood(3)                                   // names nothing
		r.NoteUnknown(1, "https://other.example/") // names something else
	}
	r.clock.advance(time.Minute - 1)
	flood(1)
	if n := p.asked.Load(); n != 3 {
		t.Errorf("%d fetches within a minute, want 3", n)
	}
	p.say(200, setOf(b))
	r.clock.advance(1)
	testrig.Eventually(t, "the fetch a minute later", func() bool { r.NoteUnknown(1, p.URL); return r.kids(p.URL) == "b" })
	r.clock.advance(-time.Hour) // the clock is set back
	p.say(200, setOf(a))
	testrig.Eventually(t, "the fetch after the clock has jumped", func() bool { r.NoteUnknown(1, p.URL); return r.kids(p.URL) == "a" })

	if r.Remove(1); r.kids(p.URL) != "a" {
		t.Error("a set that another project names is gone")
	}
	if r.Remove(2); r.kids(p.URL) != "none" || l.len() != 0 {
		t.Errorf("a set that nobody names is %s, with %d notes", r.kids(p.URL), l.len())
	}
}

// TestKeeperRestart: the last good set verifies while the provider is away, over a restart; another address drops it.
func TestKeeperRestart(t *testing.T) {
	t.Parallel()
	p, other, l := newProvider(t), newProvider(t), new(ledger)
	p.say(200, setOf(jwk(t, "a")))
	source := jwks.Source{Project: 1, Slug: "one", URL: p.URL, Needed: true}
	r := newRig(t, l, loopback)
	l.fail(true)
	r.Declare([]jwks.Source{source})
	r.want(p.URL, "a")
	identity := r.KeySet(p.URL).Identity
	l.fail(false)
	testrig.Eventually(t, "the note that the ledger did not take at first", func() bool { r.Put(source); return l.len() == 1 })
	r.stop()

	p.say(503, "")
	asked := p.asked.Load()
	r = newRig(t, l, loopback)
	if r.kids(p.URL) != "a" || r.KeySet(p.URL).Identity != identity {
		t.Fatalf("after the restart: %s", r.kids(p.URL))
	}
	r.Declare([]jwks.Source{source})
	r.wantAsked(p, asked+1)
	testrig.Eventually(t, "the last good set", func() bool { return len(r.Problems()) == 0 && r.kids(p.URL) == "a" })

	other.say(500, "")
	source.URL = other.URL
	r.Put(source)
	if r.kids(p.URL) != "none" || r.kids(other.URL) != "none" || l.len() != 0 {
		t.Errorf("another address has %s, the old one %s", r.kids(other.URL), r.kids(p.URL))
	}
	testrig.Eventually(t, "a problem", func() bool { return len(r.Problems()) == 1 })
	if problem := r.Problems()[0]; problem.Slug != "one" || !strings.Contains(problem.Message, "500") {
		t.Errorf("the problem is %+v", problem)
	}
	r.stop()
	l.notes["keyset/x"], l.notes["keyset/y"] = []byte("damaged"), []byte(`{"url":"https://x.example/","keys":[]}`)
	newRig(t, l, loopback)
}
