package tenant_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api/client/tenant"
)

// changes collects what OnChange reports.
type changes struct {
	mu    sync.Mutex
	hosts []string
}

func (c *changes) add(hosts []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts = append(c.hosts, hosts...)
}

func (c *changes) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.hosts)
	hosts := strings.Join(c.hosts, " ")
	c.hosts = nil
	return hosts
}

func TestEventsDrop(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var told changes
	d := open(t, f, func(o *tenant.Options) { o.OnChange = told.add })
	all := []string{"shop.example", "a.x.example", "b.x.example", "x.example", "n.x.example", "deep.n.x.example", "nx.example"}
	after := func(generation int, want, event string, names ...string) {
		t.Helper()
		for _, host := range all {
			d.get(host)
		}
		f.questions()
		told.take()
		f.event(generation, event, names...)
		at := fmt.Sprint(epoch, ".", generation)
		d.eventually("the event", func() bool { return d.Status().Position == at })
		d.eventually("the change", func() bool {
			told.mu.Lock()
			defer told.mu.Unlock()
			return len(told.hosts) >= len(strings.Fields(want))
		})
		for _, host := range all {
			d.get(host)
		}
		asked := strings.Fields(strings.ReplaceAll(f.questions(), ",", ""))
		asked = slices.DeleteFunc(asked, func(s string) bool { return s == "min" || strings.HasPrefix(s, epoch) })
		slices.Sort(asked)
		if got := strings.Join(asked, " "); got != want {
			t.Errorf("%s %s: asked %q, want %q", event, names, got, want)
		}
		if got := told.take(); got != want {
			t.Errorf("%s %s: told %q, want %q", event, names, got, want)
		}
	}
	after(2, "shop.example", "project.changed", "shop.example", "other.example")
	after(3, "a.x.example b.x.example deep.n.x.example n.x.example", "project.changed", "*.x.example")
	after(4, "n.x.example x.example", "domain.deleted", "x.example", "n.x.example")
	after(5, "deep.n.x.example nx.example", "some.day", "*.n.x.example", "nx.example")
	after(6, "", "domain.changed", "*.nothing.example", "none.example")
}

// TestReset: after a reset each name waits for one question, which a 304 may answer.
func TestReset(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var told changes
	d := open(t, f, func(o *tenant.Options) { o.OnChange = told.add })
	d.want("shop.example", "Shop")
	d.want("a.x.example", "A")
	d.want("nobody.example", "unknown")
	before, _ := d.Lookup(t.Context(), "a.x.example")
	f.questions()
	told.take()
	f.set(func() { f.projects["shop.example"] = "New" })
	f.send("id: " + epoch + ".9\nevent: reset\ndata: {\"revision\":9}\n\n")
	d.eventually("the reset", func() bool { return told.take() == "a.x.example nobody.example shop.example" })
	d.want("shop.example", "New")
	d.want("a.x.example", "A")
	d.want("nobody.example", "unknown")
	d.want("a.x.example", "A")
	min := " min " + epoch + ".9"
	want := []string{`shop.example inm "tag-Shop"` + min, `a.x.example inm "tag-A"` + min, "nobody.example" + min}
	if asked := f.questions(); len(asked) != len(strings.Join(want, ", ")) || !strings.Contains(asked, "nobody.example"+min) {
		t.Errorf("asked %s\nwant  %s", asked, strings.Join(want, ", "))
	}
	if after, _ := d.Lookup(t.Context(), "a.x.example"); !after.AsOf.After(before.AsOf) || before == after {
		t.Errorf("confirmed at %v after %v", after.AsOf, before.AsOf)
	}

	f.send("id: " + epoch + ".10\nevent: reset\ndata: {\"revision\":10}\n\n")
	d.eventually("the reset", func() bool { return told.take() != "" })
	f.set(func() {
		f.mangle = func(w http.ResponseWriter, r *http.Request) bool { refuse(w, 503, "UNAVAILABLE"); return true }
	})
	d.time.Advance(time.Minute) // the stream counts as dead, too
	d.connected(false)
	d.want("shop.example", "New stale")
	d.want("nobody.example", "unavailable")
}

// TestVoid: an event that arrives while a question is on the wire voids the answer for the cache, and for lookups that
// begin after the event.
func TestVoid(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	for i, name := range []string{"a.x.example", "*.x.example", "*.example"} {
		hold, first := make(chan struct{}), make(chan string, 2)
		f.set(func() {
			f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
				f.resolve(w, r) // the old answer, which is on its way for long
				<-hold
				return true
			}
		})
		go func() { first <- d.get("a.x.example") }()
		d.eventually("a question", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.asked) > 0 })
		f.set(func() { f.projects["a.x.example"], f.mangle = fmt.Sprint("New ", i), nil })
		f.event(20+10*i, "domain.changed", name)
		d.eventually("the event", func() bool { return strings.HasSuffix(d.Status().Position, fmt.Sprint(".", 20+10*i)) })
		second := make(chan string, 1)
		go func() { second <- d.get("a.x.example") }()
		close(hold)
		if got := <-second; got != fmt.Sprint("New ", i) {
			t.Errorf("%s: a lookup after the event has %s", name, got)
		}
		old := "A"
		if i > 0 {
			old = fmt.Sprint("New ", i-1)
		}
		if got := <-first; got != old {
			t.Errorf("%s: the lookup before it has %s", name, got)
		}
		d.want("a.x.example", fmt.Sprint("New ", i))
		if asked := strings.Count(f.questions(), "a.x.example"); asked != 2 {
			t.Errorf("%s: asked %d times", name, asked)
		}
		f.event(25+10*i, "domain.changed", "a.x.example") // for the next round
		d.eventually("the event", func() bool { return d.Status().Entries == 0 })
	}
}

// TestPosition: questions carry the position of the newest event until an answer has reached it; an answer that is
// older is asked for again; a position that is unknown is forgotten.
func TestPosition(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var told changes
	d := open(t, f, func(o *tenant.Options) { o.OnChange = told.add })
	event := func(generation int) {
		f.event(generation, "domain.changed", "nothing.example")
		d.eventually("the event", func() bool { return d.Status().Position == fmt.Sprint(epoch, ".", generation) })
	}
	asked := func(want string) {
		t.Helper()
		if got := f.questions(); got != strings.ReplaceAll(want, "@", " min "+epoch+".") {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
	event(5)
	f.set(func() { f.position = 5 })
	d.want("shop.example", "Shop")
	d.want("a.x.example", "A")
	asked("shop.example@5, a.x.example")
	f.set(func() { f.position = 4 }) // another node
	f.set(func() {
		f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("X-Min-Position") != "" {
				f.set(func() { f.position = 5 })
			}
			return false
		}
	})
	d.want("b.x.example", "B")
	d.want("n1.example", "unknown")
	asked("b.x.example, b.x.example@5, n1.example")
	event(6)
	f.set(func() {
		f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("X-Min-Position") == "" {
				return false
			}
			refuse(w, http.StatusConflict, "POSITION_UNKNOWN")
			return true
		}
	})
	told.take()
	d.want("x.example", "X")
	d.eventually("the changes", func() bool { return told.take() == "a.x.example b.x.example n1.example shop.example" })
	asked("x.example@6, x.example")
	d.want("shop.example", "Shop") // as after a reset
	d.want("x.example", "X")       // asked after it
	asked(`shop.example inm "tag-Shop"`)
	f.set(func() { f.mangle = nil })
	event(7) // the node never reaches it
	d.want("n2.example", "unavailable")
	d.want("shop.example", "Shop")
	asked("n2.example@7")
}

// TestResume: a lost stream is resumed after the last event, and what was not lost stays.
func TestResume(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	d.want("shop.example", "Shop")
	d.want("a.x.example", "A")
	f.send("id: " + epoch + ".3\nevent: domain.changed\ndata: {\"domains\":[\"a.x.example\"]}\n\nid: " + epoch + ".4\nevent: domain.changed\ndata: {\"dom") // half
	d.eventually("the event", func() bool { return d.Status().Entries == 1 })
	f.cut()
	d.connected(false)
	f.questions()
	d.pass()
	d.connected(true)
	f.mu.Lock()
	if got := strings.Join(f.opened, ","); got != ","+epoch+".3" {
		t.Errorf("streams after %s", got)
	}
	f.mu.Unlock()
	d.want("shop.example", "Shop")
	if asked := f.questions(); asked != "" {
		t.Errorf("asked %s", asked)
	}
}

// TestDeadStreams: streams that cannot be read, or that are silent, are given up and opened again.
func TestDeadStreams(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	for what, cause := range map[string]string{
		"id: x\nevent: domain.changed\ndata: <html>\n\n": "not JSON",
		"": "no byte for 45s",
	} {
		f.send(what)
		if what == "" {
			d.time.Advance(44 * time.Second)
			f.send(": a comment\n\n")
			d.eventually("the comment", func() bool { return d.time.Now().Sub(d.Status().LastContact) < time.Second })
			d.time.Advance(44 * time.Second)
			if !d.Status().Connected {
				t.Error("a stream with comments counts as dead")
			}
			d.time.Advance(2 * time.Second)
		}
		d.connected(false)
		if err := d.Status().LastError; err == nil || !strings.Contains(err.Error(), cause) {
			t.Errorf("%q: %v", what, err)
		}
		d.pass()
		d.connected(true)
	}
	d.want("shop.example", "Shop")

	for cause, answer := range map[string]func(w http.ResponseWriter){
		`content type "text/html"`: func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<p>welcome")
		},
		"redirects are refused":     func(w http.ResponseWriter) { w.Header().Set("Location", "/x"); w.WriteHeader(307) },
		"answers 400 with the cont": func(w http.ResponseWriter) { refuse(w, 400, "VALIDATION_ERROR") },
		"answers 502":               func(w http.ResponseWriter) { w.WriteHeader(502) },
		"refuses the key":           func(w http.ResponseWriter) { refuse(w, 401, "UNAUTHORIZED") },
	} {
		f.set(func() {
			f.mangle = func(w http.ResponseWriter, r *http.Request) bool { answer(w); return true }
		})
		f.cut()
		d.afterWaits(cause, func() bool {
			err := d.Status().LastError
			return err != nil && strings.Contains(err.Error(), cause)
		})
		f.set(func() { f.mangle = nil })
		d.afterWaits("the next stream", func() bool { return d.Status().Connected })
		d.want("shop.example", "Shop")
	}
}
