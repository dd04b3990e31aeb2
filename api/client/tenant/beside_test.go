package tenant_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/api/client/tenant"
)

// isEvents reports whether a request is for the change feed.
func isEvents(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/events") }

// TestFeedOpensWithAnID: before the first id a stream may have missed anything, so answers are as with the feed lost.
func TestFeedOpensWithAnID(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	d.want("shop.example", "Shop")
	f.away()
	d.connected(false)
	d.time.Advance(time.Hour)
	early, release := make(chan struct{}, 8), make(chan struct{})
	f.set(func() {
		f.projects["shop.example"] = "New"
		f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
			if !isEvents(r) {
				refuse(w, 503, "UNAVAILABLE")
				return true
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "retry: 2000\n\n: a comment\n\n")
			w.(http.Flusher).Flush()
			early <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
				return true
			}
			fmt.Fprintf(w, "id: %s.9\nevent: project.changed\ndata: {\"domains\":[\"shop.example\"]}\n\n", epoch)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}
	})
	before := d.Status().LastContact
	d.afterWaits("a stream", func() bool { return len(early) > 0 })
	d.eventually("its first blocks", func() bool { return d.Status().LastContact.After(before) })
	d.want("shop.example", "Shop stale")
	if d.Status().Connected {
		t.Error("the feed counts as open before its first id")
	}
	close(release)
	d.afterWaits("the feed", func() bool { return d.Status().Connected })
}

// TestDroppedBeforeOutage: what an event has dropped is the answer, as stale, if the server cannot be asked.
func TestDroppedBeforeOutage(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	path := filepath.Join(t.TempDir(), "answers")
	d := open(t, f, func(o *tenant.Options) { o.File, o.MaxStale = path, time.Minute })
	d.want("shop.example", "Shop")
	d.want("a.x.example", "A")
	d.want("nobody.x.example", "unknown")
	for range 3 { // comments of the open feed confirm the answers
		d.time.Advance(40 * time.Second)
		at := d.time.Now()
		f.send(":\n\n")
		d.eventually("the comment", func() bool { return !d.Status().LastContact.Before(at) })
	}
	f.event(5, "project.changed", "shop.example", "*.x.example")
	d.eventually("the event", func() bool { return d.Status().Entries == 0 && d.Status().Negatives == 0 })
	f.away()
	for range 3 {
		d.want("shop.example", "Shop stale")
		d.want("a.x.example", "A stale")
		d.want("nobody.x.example", "unavailable")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	f.set(func() { f.mangle = nil; f.projects["shop.example"] = "New"; delete(f.projects, "a.x.example") })
	d = open(t, f, nil)
	d.want("shop.example", "New")
	d.want("a.x.example", "unknown")
}

// TestFailuresTogether: questions that fail together are one failure, and a block of the feed ends the wait after it.
func TestFailuresTogether(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	const many = 60
	burst := func(retryAfter string) {
		var arrived, all sync.WaitGroup
		arrived.Add(many)
		f.set(func() {
			f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
				if isEvents(r) {
					return false
				}
				arrived.Done()
				arrived.Wait()
				w.Header().Set("Retry-After", retryAfter)
				refuse(w, 503, "UNAVAILABLE")
				return true
			}
		})
		for i := range many {
			all.Go(func() { d.want(fmt.Sprint("new", i, ".example"), "unavailable") })
		}
		all.Wait()
		f.set(func() { f.mangle = nil })
	}
	for range 5 { // 60 failures would wait for up to 30 s
		burst("")
		d.time.Advance(1100 * time.Millisecond)
		d.want("nobody.example", "unknown")
		f.event(int(d.time.Now().Unix()), "domain.changed", "nobody.example")
		d.eventually("the event", func() bool { return d.Status().Negatives == 0 })
	}
	burst("3")
	f.send(":\n\n")
	d.time.Advance(2 * time.Second)
	d.want("nobody.example", "unavailable") // Retry-After holds
	d.time.Advance(1100 * time.Millisecond)
	f.send(":\n\n")
	d.eventually("the end of the wait", func() bool { return d.Status().LastError == nil })
	d.want("nobody.example", "unknown")
}

// TestUserFunctions: OnChange and Observe may look names up, panic, and take their time.
func TestUserFunctions(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var cache atomic.Pointer[tenant.Cache]
	hold, inside := make(chan struct{}), make(chan string, 8)
	d := open(t, f, func(o *tenant.Options) {
		o.OnChange = func(hosts []string) {
			got, err := cache.Load().Lookup(t.Context(), hosts[0])
			if err != nil {
				t.Error(err)
				return
			}
			inside <- got.Name
			<-hold
			panic("a bug of the user")
		}
	})
	cache.Store(d.Cache)
	d.want("shop.example", "Shop")
	d.want("x.example", "X")
	for i, name := range []string{"One", "Two"} {
		f.set(func() { f.projects["shop.example"] = name })
		f.event(5+i, "project.changed", "shop.example")
		at := fmt.Sprint(epoch, ".", 5+i)
		d.eventually("the event", func() bool { return d.Status().Position == at })
		d.want("shop.example", name) // OnChange of the first event is still inside
	}
	if got := <-inside; got != "One" && got != "Two" {
		t.Errorf("OnChange sees %s", got)
	}
	close(hold)
	<-inside
	d.logs("a bug of the user")
}

// TestQuestionsAreBounded: new names over the bound fail at once, known ones go on.
func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	d.want("shop.example", "Shop")
	d.want("a.x.example", "A")
	hold := make(chan struct{})
	f.set(func() {
		f.mangle = func(_ http.ResponseWriter, r *http.Request) bool {
			if !isEvents(r) {
				<-hold
			}
			return false
		}
	})
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() { d.want(fmt.Sprint("new", i, ".example"), "unknown") })
	}
	d.eventually("64 questions", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.asked) == 66 })
	d.want("one.more.example", "unavailable")
	d.want("shop.example", "Shop")
	f.event(5, "project.changed", "a.x.example")
	d.eventually("the event", func() bool { return d.Status().Entries == 1 })
	d.want("a.x.example", "A stale")
	close(hold)
	all.Wait()
	d.want("one.more.example", "unknown")
}

// TestPause: after a pause of the process the feed counts as lost until it was heard again.
func TestPause(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	d.want("shop.example", "Shop")
	f.set(func() {
		f.mangle = func(w http.ResponseWriter, r *http.Request) bool { refuse(w, 503, "UNAVAILABLE"); return true }
	})
	for range 3 {
		d.time.Advance(14 * time.Second)
		d.want("shop.example", "Shop")
	}
	before := d.Status().LastContact
	f.send(":\n\n")
	d.eventually("a comment", func() bool { return d.Status().LastContact.After(before) })
	d.time.Advance(30 * time.Second)
	before = d.Status().LastContact
	d.want("shop.example", "Shop stale")
	f.send(":\n\n")
	d.eventually("the comment", func() bool { return d.Status().LastContact.After(before) })
	d.want("shop.example", "Shop")
}

// TestFileIsALink: the permissions of a file behind a link belong to somebody else.
func TestFileIsALink(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	dir := t.TempDir()
	theirs, link := filepath.Join(dir, "theirs"), filepath.Join(dir, "link")
	if err := os.WriteFile(theirs, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(theirs, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(theirs, link); err != nil {
		t.Fatal(err)
	}
	d := open(t, f, withFile(link))
	d.logs("is ignored")
	if info, err := os.Stat(theirs); err != nil || info.Mode().Perm() != 0o644 {
		t.Error(err, info.Mode())
	}
}
