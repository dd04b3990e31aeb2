package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// pool is the names that the random writes give to projects and take away.
var pool = []string{
	"wild.example", "*.wild.example", "a.wild.example", "b.wild.example", "*.a.wild.example", "x.a.wild.example", "y.a.wild.example",
	"*.shop.acme.example", "x.acme.example", "y.acme.example", "z.x.acme.example", "*.x.acme.example", "one.example", "two.example",
}

// hosts are the names that clients ask for.
var hosts = append(slices.DeleteFunc(slices.Clone(pool), func(n string) bool { return n[0] == '*' }),
	"shop.acme.example", "deep.shop.acme.example", "z.a.wild.example", "c.wild.example", "w.acme.example", "other.example", "gone.example")

// A record is a domain of the model.
type record struct {
	project string
	id      int64
	active  bool
}

// A state is what the files have at a generation.
type state struct {
	generation uint64
	domains    map[string]record
	suspended  map[string]bool
	versions   map[string]int
}

// answer is what a key for every project gets.
func (s *state) answer(host string) string {
	d, found := s.domains[host]
	for rest := host; !found; {
		_, after, more := strings.Cut(rest, ".")
		if !more {
			return "unknown"
		}
		d, found = s.domains["*."+after]
		rest = after
	}
	switch {
	case !d.active:
		return "notVerified"
	case s.suspended[d.project]:
		return "suspended"
	}
	return d.project + " " + name(s.versions[d.project])
}

func name(version int) string { return fmt.Sprint("v", version) }

func text(a driven) string {
	if a.Tenant == nil {
		return a.Error
	}
	return a.Tenant.Slug + " " + a.Tenant.Name
}

// A writer makes random changes over the API, one after the other.
type writer struct {
	*world
	random   *rand.Rand
	projects map[string]int64

	mu      sync.Mutex // guards history
	history []state
}

func newWriter(w *world) *writer {
	x := &writer{world: w, random: rand.New(rand.NewPCG(1, 2)), projects: map[string]int64{}}
	s := state{domains: map[string]record{
		"shop.acme.example": {"acme", 0, true}, "*.acme.example": {"acme", 0, true}, "old.acme.example": {"acme", 0, false},
		"xn--bcher-kva.example": {"acme", 0, true}, "other.example": {"other", 0, true}, "gone.example": {"gone", 0, true},
	}, suspended: map[string]bool{"gone": true}, versions: map[string]int{}}
	for _, slug := range []string{"acme", "other", "gone"} {
		var project struct{ ID int64 }
		x.call(http.MethodGet, "/by-slug/"+slug, nil, &project)
		x.projects[slug] = project.ID
		s.generation = x.call(http.MethodPut, fmt.Sprint("/", project.ID), object{"name": name(0)}, nil)
	}
	x.history = append(x.history, s)
	return x
}

// call makes a call of the platform API and returns its generation.
func (x *writer) call(method, path string, body object, into any) uint64 {
	x.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		x.t.Fatal(err)
	}
	req, err := http.NewRequest(method, x.nodes["authority"].url+"/api/platform/projects"+path, bytes.NewReader(b))
	if err != nil {
		x.t.Fatal(err)
	}
	req.Header.Set("X-PLATFORM-KEY", x.keys["admin"])
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body = http.NoBody
		req.ContentLength = 0
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err = io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		x.t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, b, err)
	}
	if into != nil {
		if err := json.Unmarshal(b, &struct{ Data any }{into}); err != nil {
			x.t.Fatalf("%s %s: %s: %v", method, path, b, err)
		}
	}
	at, err := catalog.ParsePosition(res.Header.Get("X-Config-Position"))
	if err != nil {
		x.t.Fatal(err)
	}
	return at.Generation
}

// write makes one change, and adds the state after it to the history.
func (x *writer) write() {
	x.t.Helper()
	before := x.newest()
	s := state{domains: maps.Clone(before.domains), suspended: maps.Clone(before.suspended), versions: maps.Clone(before.versions)}
	slugs := []string{"acme", "other", "gone"}
	slug := slugs[x.random.IntN(len(slugs))]
	host := pool[x.random.IntN(len(pool))]
	d, there := s.domains[host]
	switch kind := x.random.IntN(10); {
	case kind < 2:
		s.versions[slug]++
		s.generation = x.call(http.MethodPut, fmt.Sprint("/", x.projects[slug]), object{"name": name(s.versions[slug])}, nil)
	case kind == 2:
		s.suspended[slug] = !s.suspended[slug]
		status := map[bool]string{true: "SUSPENDED", false: "ACTIVE"}[s.suspended[slug]]
		s.generation = x.call(http.MethodPut, fmt.Sprint("/", x.projects[slug]), object{"status": status}, nil)
	case !there:
		var made struct{ ID int64 }
		s.generation = x.call(http.MethodPost, fmt.Sprintf("/%d/domains", x.projects[slug]), object{"domain": host}, &made)
		s.domains[host] = record{slug, made.ID, true}
	case kind < 6:
		d.active = !d.active
		s.domains[host] = d
		s.generation = x.call(http.MethodPut, fmt.Sprintf("/%d/domains/%d", x.projects[d.project], d.id), object{"active": d.active}, nil)
	default:
		delete(s.domains, host)
		s.generation = x.call(http.MethodDelete, fmt.Sprintf("/%d/domains/%d", x.projects[d.project], d.id), nil, nil)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.history = append(x.history, s)
}

func (x *writer) newest() state {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.history[len(x.history)-1]
}

// fits reports whether an answer was right at a generation or after it.
func (x *writer) fits(host string, generation uint64, answer string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := len(x.history) - 1; i >= 0; i-- {
		if x.history[i].answer(host) == answer {
			return true
		}
		if x.history[i].generation <= generation {
			return false
		}
	}
	return true // from before the history
}

// A seen is an answer that a client gave, to a question that came after an event.
type seen struct {
	host, answer string
	generation   uint64 // of the event
}

func (d *driver) generation(t testing.TB) uint64 {
	a := d.ask("status", object{})
	if a.Status == nil || a.Status.Position == "" {
		return 0
	}
	_, digits, _ := strings.Cut(a.Status.Position, ".")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		t.Errorf("the position is %q", a.Status.Position)
	}
	return n
}

// opened starts a client that is connected.
func (w *world) opened(l language, o object) *driver {
	w.t.Helper()
	d := startDriver(w.t, l)
	o["url"] = w.proxy.URL
	if a := d.ask("open", o); !a.OK {
		w.t.Fatal(a.Error)
	}
	w.connected(d)
	return d
}

func (w *world) connected(d *driver) {
	w.t.Helper()
	alike(w.t, func() string {
		if a := d.ask("status", object{}); a.Status == nil || !a.Status.Connected {
			return fmt.Sprintf("the status is %+v", a.Status)
		}
		return ""
	})
}

// TestRandomWrites: while names come and go, no client gives an answer that is older than an event which was there
// before the question. After them, every cached answer is the server's.
func TestRandomWrites(t *testing.T) {
	build(t)
	writes := testrig.Size(t, 1000, 100)
	for _, l := range []language{inGo, inTS} {
		t.Run(l.name, func(t *testing.T) {
			l.command(t) // or skip
			w := newWorld(t, false)
			x := newWriter(w)
			every, bound := w.opened(l, object{"key": w.keys["all"]}), w.opened(l, object{"key": w.keys["acme"]})
			defer every.end()
			defer bound.end()

			done := make(chan struct{})
			var asking sync.WaitGroup
			answers := make([][]seen, 3)
			for i := range answers {
				random := rand.New(rand.NewPCG(7, uint64(i)))
				asking.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						host, after := hosts[random.IntN(len(hosts))], every.generation(t)
						answers[i] = append(answers[i], seen{host, text(every.ask("lookup", object{"host": host})), after})
						bound.ask("lookup", object{"host": hosts[random.IntN(len(hosts))]})
					}
				})
			}
			for range writes {
				x.write()
			}
			close(done)
			asking.Wait()
			count := 0
			for _, some := range answers {
				for _, a := range some {
					if count++; !x.fits(a.host, a.generation, a.answer) {
						t.Errorf("after the event %d, %s is %q, which is older", a.generation, a.host, a.answer)
					}
				}
			}
			last := x.newest()
			alike(t, func() string { // the last write need not change an answer of the bound key
				if got := every.generation(t); got < last.generation {
					return fmt.Sprintf("the client is at %d, want %d", got, last.generation)
				}
				return ""
			})
			x.quiet(every, bound)
			testrig.Figure(t, "%d writes, %d answers, none older than an event", writes, count)
		})
	}
}

// quiet compares what the clients have with what the server says.
func (x *writer) quiet(every, bound *driver) {
	x.t.Helper()
	last := x.newest()
	for _, host := range hosts {
		got := every.ask("lookup", object{"host": host})
		if want := last.answer(host); text(got) != want {
			x.t.Errorf("%s is %q in the cache, %q on the server", host, text(got), want)
		}
		if status, body := x.resolve(x.nodes["authority"], host, "all"); got.Tenant != nil && (status != http.StatusOK || got.Tenant.Stale) {
			x.t.Errorf("%s is %+v in the cache, %d %s on the server", host, got.Tenant, status, body)
		}
		alike(x.t, func() string { // the bound key has no event that says that it has all
			status, body := x.resolve(x.nodes["authority"], host, "acme")
			got := bound.ask("lookup", object{"host": host})
			same := (status == http.StatusOK) == (got.Tenant != nil)
			if got.Tenant == nil {
				word := map[string]string{"unknown": "NOT_FOUND", "forbidden": "FORBIDDEN", "notVerified": "DOMAIN_NOT_VERIFIED",
					"suspended": "PROJECT_SUSPENDED"}[got.Error]
				same = strings.Contains(body, `"`+word+`"`)
				// Neither says more than that it is not the key's, and no event tells a stranger's name.
				outside := !strings.HasSuffix(host, ".acme.example")
				same = same || outside && (status == http.StatusNotFound || strings.Contains(body, `"FORBIDDEN"`)) &&
					(got.Error == "unknown" || got.Error == "forbidden")
			} else if same {
				same = strings.Contains(body, `"name":"`+got.Tenant.Name+`"`)
			}
			if !same {
				return fmt.Sprintf("for the key of acme, %s is %q in the cache, %d %s on the server", host, text(got), status, body)
			}
			return ""
		})
	}
}

// TestHourAway: the server is gone for an hour, and every name that was known has an answer.
func TestHourAway(t *testing.T) {
	build(t)
	for _, l := range []language{inGo, inTS} {
		t.Run(l.name, func(t *testing.T) {
			l.command(t) // or skip
			w := newWorld(t, false)
			d := w.opened(l, object{"key": w.keys["all"]})
			defer d.end()
			var known []string
			for i := range 50 {
				known = append(known, fmt.Sprintf("n%d.acme.example", i))
			}
			for _, host := range known {
				if a := d.ask("lookup", object{"host": host}); a.Tenant == nil {
					t.Fatalf("%s: %s", host, a.Error)
				}
			}
			w.nodes["authority"].signal(syscall.SIGKILL)
			count := 0
			for range 60 {
				d.ask("advance", object{"by": 60_000})
				var answers []<-chan driven
				for _, host := range known {
					answers = append(answers, d.begin("lookup", object{"host": host, "timeout": 20_000}))
				}
				for i, c := range answers {
					count++
					if a := <-c; a.Tenant == nil || a.Tenant.Slug != "acme" {
						t.Fatalf("%s has no answer: %+v", known[i], a)
					}
				}
			}
			w.start()
			d.ask("advance", object{"by": 30_000})
			w.connected(d)
			for _, host := range known {
				alike(t, func() string {
					if a := d.ask("lookup", object{"host": host}); a.Tenant == nil || a.Tenant.Stale {
						return fmt.Sprintf("%s: %+v", host, a)
					}
					return ""
				})
			}
			testrig.Figure(t, "%d answers in an hour without a server, none missing", count)
		})
	}
}
