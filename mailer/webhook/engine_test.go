package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/mailer/webhook"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// TestDelivers: each event reaches each webhook that wants it, signed, in the order of its project.
func TestDelivers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	all, some := newReceiver(t, nil), newReceiver(t, nil)
	few := hook("few", some.URL)
	few.EveryProject = false
	few.Covers = func(id int64, slug string) bool { return id == 1 && slug == "p1" }
	few.Wants = func(event string) bool { return event == "domain.update" }
	r.entry(1, "before")
	r.start(hook("all", all.URL), few)
	for i := range 20 {
		r.entry(int64(i%4), fmt.Sprint("o", i))
	}
	r.append(catalog.AuditEntry{Action: "project.update", ProjectID: 1, Slug: "p1", Object: "p1"})
	r.append(catalog.AuditEntry{Action: "webhook.update", Object: "all"})
	r.append(catalog.AuditEntry{Action: "condition.begins", Object: "webhook-waits webhook all"})
	r.append(catalog.AuditEntry{Action: "condition.ends", ProjectID: 1, Slug: "p1", Object: "webhook-waits webhook few"})
	r.append(catalog.AuditEntry{Action: catalog.AuditLoad, Generation: 1})
	r.idle("all")
	r.idle("few")
	byProject := map[int64][]string{}
	for _, q := range all.all() {
		if err := verify(q, secret, r.clock.Now()); err != nil {
			t.Error(err)
		}
		byProject[q.project] = append(byProject[q.project], q.object)
	}
	for project, want := range []string{"o0 o4 o8 o12 o16", "o1 o5 o9 o13 o17 p1 webhook-waits webhook few", "o2 o6 o10 o14 o18", "o3 o7 o11 o15 o19"} {
		if got := strings.Join(byProject[int64(project)], " "); got != want {
			t.Errorf("project %d: %s", project, got)
		}
	}
	if got := some.objects(); got != "o1 o5 o9 o13 o17" {
		t.Errorf("the webhook of one project got %s", got)
	}
	first := some.all()[0]
	if h := first.header; h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "fingerpost"+"/1.2.3" || h.Get("Accept-Encoding") != "" {
		t.Errorf("%v", h)
	}
	if list := r.deliveries("few"); len(list) != 5 || list[0] != "domain.update o1 delivered 1" {
		t.Errorf("%q", list)
	}
}

// TestRename: a project that is renamed is judged by both slugs, a deleted one by its last.
func TestRename(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, nil)
	h := hook("one", got.URL)
	h.EveryProject = false
	h.Covers = func(_ int64, slug string) bool { return slug == "new" }
	r.start(h)
	r.append(catalog.AuditEntry{Action: "project.update", ProjectID: 1, Slug: "old", Object: "renamed",
		Changes: []catalog.FieldChange{{Field: "slug", Before: "old", After: "new"}}})
	r.append(catalog.AuditEntry{Action: "project.update", ProjectID: 2, Slug: "old", Object: "other",
		Changes: []catalog.FieldChange{{Field: "name", Before: "old", After: "new"}}})
	r.append(catalog.AuditEntry{Action: "project.delete", ProjectID: 1, Slug: "new", Object: "gone"})
	r.append(catalog.AuditEntry{Action: "key.create", Object: "of no project"})
	r.idle("one")
	if got := got.objects(); got != "renamed gone" {
		t.Errorf("got %s", got)
	}
}

// TestBackOff: a delivery that fails is repeated after the steps, with the same id and body, and then given up. It holds
// back its project at this webhook and nothing else.
func TestBackOff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, func(q request, w http.ResponseWriter, _ int) {
		if q.object == "bad" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	r.start(hook("crm", got.URL))
	r.entry(1, "bad")
	r.until("the first attempt", func() bool { return r.status("crm").Failing == 1 })
	r.entry(1, "later")
	r.entry(2, "other")
	r.until("the other project, after which the failing delivery is tried at once", func() bool { return got.objects() == "bad other bad" })
	attempts := 2
	for _, step := range []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour,
		6 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
		r.until("the attempt is noted", func() bool {
			list := r.deliveries("crm")
			return len(list) == 2 && list[0] == fmt.Sprintf("domain.update bad failing %d", attempts)
		})
		rows, _, err := r.Deliveries("crm", records.HookQuery{State: records.HookFailing, Page: 1, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		h := rows[0]
		wait := h.NextAttemptAt.Sub(h.Attempts[attempts-1].Time)
		if wait < step*8/10 || wait > step*12/10+time.Second*5 {
			t.Errorf("after attempt %d it waits for %s, and the step is %s", attempts, wait, step)
		}
		r.clock.Advance(step*12/10 + time.Second)
		attempts++
		r.until(fmt.Sprint("attempt ", attempts), func() bool { return strings.Count(got.objects(), "bad") == attempts })
	}
	r.idle("crm")
	if list := r.deliveries("crm"); !slices.Equal(list, []string{"domain.update bad dead 10", "domain.update other delivered 1",
		"domain.update later delivered 1"}) {
		t.Errorf("%q", list)
	}
	if r.status("crm").DeadAt.IsZero() {
		t.Error("the status has no dead delivery")
	}
	var first request
	for _, q := range got.all() {
		switch {
		case q.object != "bad":
		case first.id == "":
			first = q
		case q.id != first.id || string(q.body) != string(first.body):
			t.Errorf("another attempt has %s: %s", q.id, q.body)
		}
	}
}

// TestAfterSuccess: a receiver that answers again gets at once what has waited.
func TestAfterSuccess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, status(http.StatusBadGateway))
	r.start(hook("crm", got.URL))
	for project := range int64(9) {
		r.entry(project, fmt.Sprint("o", project))
	}
	r.until("all fail", func() bool { return r.status("crm").Failing == 9 })
	got.set(nil)
	r.entry(20, "new")
	r.idle("crm")
	if n := len(got.all()); n != 19 {
		t.Errorf("%d requests", n)
	}
}

// TestGone: 410 switches a webhook off, and what it refused comes first once it is resumed, or changed.
func TestGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, status(http.StatusGone))
	h := hook("crm", got.URL)
	r.start(h)
	off := func() bool { return !r.status("crm").OffSince.IsZero() }
	r.entry(1, "a")
	r.until("it is off", off)
	r.entry(1, "b")
	r.entry(2, "c")
	resume := map[string]func(){
		"resume":  func() { _ = r.Resume(t.Context(), "crm") },
		"restart": func() { r.end(); r.start(h); _ = r.Resume(t.Context(), "crm") },
		"change":  func() { h.Version = "2"; r.hooks.set(h) },
	}
	for i, how := range []string{"resume", "restart", "change"} {
		r.clock.Advance(24 * time.Hour)
		if n := len(got.all()); n != i+1 {
			t.Errorf("%d requests while it was off", n)
		}
		if how == "change" {
			got.set(nil)
		}
		resume[how]()
		r.until("it is tried again by "+how, func() bool { return len(got.all()) >= i+2 })
		if how != "change" {
			r.until("it is off again", off)
		}
	}
	r.idle("crm")
	if list := got.objects(); !strings.HasPrefix(list, "a a a a") || strings.Index(list, "b") < strings.LastIndex(list, "a") || !strings.Contains(list, "c") {
		t.Errorf("got %s", list)
	}
	if off() {
		t.Error("it is still off")
	}
}

// TestFiveDays of failures without a success between switch a webhook off.
func TestFiveDays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, status(http.StatusNotFound))
	r.start(hook("crm", got.URL))
	r.entry(1, "a")
	for day := 0; r.status("crm").OffSince.IsZero(); day++ {
		if day > 6*24 {
			t.Fatal("it is never switched off")
		}
		n := len(got.all())
		r.entry(int64(day+2), fmt.Sprint("x", day))
		r.until("an attempt", func() bool { return len(got.all()) > n && r.status("crm").OnWire == 0 })
		r.clock.Advance(time.Hour)
	}
	s := r.status("crm")
	if far := s.OffSince.Sub(got.firstTime()); far < 5*24*time.Hour || far > 5*24*time.Hour+2*time.Hour {
		t.Errorf("it was switched off after %s", far)
	}
}

// firstTime returns the timestamp of the first request.
func (r *receiver) firstTime() time.Time {
	q := r.all()[0]
	var seconds int64
	if _, err := fmt.Sscan(q.header.Get("webhook-timestamp"), &seconds); err != nil {
		panic(err)
	}
	return time.Unix(seconds, 0)
}

// TestRetryAfter replaces the step; with 429 it holds the whole webhook.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	answer := func(code int, after string) func(request, http.ResponseWriter, int) {
		return func(_ request, w http.ResponseWriter, n int) {
			if n == 1 {
				w.Header().Set("Retry-After", after)
				w.WriteHeader(code)
			}
		}
	}
	r := newRig(t)
	busy, down := newReceiver(t, answer(429, "600")), newReceiver(t, answer(503, "7200"))
	r.start(hook("busy", busy.URL), hook("down", down.URL))
	r.entry(1, "a")
	r.until("both have failed", func() bool { return r.status("busy").Failing == 1 && r.status("down").Failing == 1 })
	rows, _, err := r.Deliveries("down", records.HookQuery{Page: 1, Limit: 1})
	if err != nil || rows[0].NextAttemptAt.Sub(rows[0].Attempts[0].Time).Round(time.Minute) != time.Hour {
		t.Errorf("503: %+v, %v", rows, err)
	}
	r.entry(2, "b")
	r.until("the one that is down gets the other project, and then at once what waits", func() bool { return down.objects() == "a b a" })
	r.clock.Advance(9 * time.Minute)
	r.entry(3, "c")
	r.until("the one that is down gets it", func() bool { return strings.HasSuffix(down.objects(), "c") })
	if got := busy.objects(); got != "a" {
		t.Errorf("the busy one got %s within its time", got)
	}
	r.clock.Advance(time.Minute)
	r.idle("busy")
	if n := len(busy.all()); n != 4 {
		t.Errorf("the busy one got %s", busy.objects())
	}
}

// TestNewAndSwitchedOn: a webhook gets what happens from the entry of its beginning on, and nothing from before; one that a
// person has switched off and on misses what was between.
func TestNewAndSwitchedOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, nil)
	r.start()
	h := hook("crm", got.URL)
	r.entry(1, "before")
	r.append(catalog.AuditEntry{Action: "webhook.create", Object: "crm"})
	r.entry(1, "since") // before the Engine knows of it
	r.hooks.set(h)
	r.idle("crm")
	h.Active = false
	r.hooks.set(h)
	r.until("it is inactive", func() bool { return len(r.all()) == 0 })
	r.entry(1, "between")
	r.append(catalog.AuditEntry{Action: "webhook.update", Object: "crm", Changes: []catalog.FieldChange{{Field: "active", Before: false, After: true}}})
	h.Active = true
	r.hooks.set(h)
	r.entry(1, "on")
	r.idle("crm")
	if got := got.objects(); got != "since on" {
		t.Errorf("got %s", got)
	}
	if list := r.deliveries("crm"); len(list) != 2 {
		t.Errorf("%q", list)
	}
	r.hooks.set()
	r.until("it is gone", func() bool { return len(r.all()) == 0 })
	if rows, _, err := r.book.HookDeliveries("crm", records.HookQuery{Page: 1, Limit: 9}); len(rows) != 0 || err != nil {
		t.Errorf("a webhook that is gone has %d deliveries, %v", len(rows), err)
	}
}

// TestFirstLoad: what happens between the first load of the files and the start of the Engine is for their webhooks.
func TestFirstLoad(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, nil)
	r.append(catalog.AuditEntry{Action: catalog.AuditLoad, Generation: 1})
	r.entry(1, "at once")
	r.start(hook("crm", got.URL))
	r.idle("crm")
	if got := got.objects(); got != "at once" {
		t.Errorf("got %q", got)
	}
}

// TestUnreadFiles: what is known of webhooks is kept until the files have been read.
func TestUnreadFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, nil)
	r.start(hook("crm", got.URL))
	r.end()
	r.entry(1, "while down")
	r.hooks.mu.Lock()
	r.hooks.unknown, r.hooks.hooks = true, nil
	r.hooks.mu.Unlock()
	r.Engine = webhook.New(r.o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	r.end = func() { cancel(); <-done }
	if list, _, err := r.Status(ctx); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	r.hooks.set(hook("crm", got.URL))
	r.until("it is delivered", func() bool { return got.objects() == "while down" })
}

// TestCommit: the first attempt waits for the commit, two seconds at most, and each attempt says the same.
func TestCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, func(_ request, w http.ResponseWriter, n int) {
		if n == 2 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	r.o.Commits = true
	r.start(hook("crm", got.URL))
	e := catalog.AuditEntry{Action: "domain.update", ProjectID: 1, Object: "a", Generation: 3, RequestID: "r1", Door: catalog.DoorAPI}
	r.append(e)
	r.until("it waits", func() bool { return r.status("crm").Waiting == 1 })
	commit := func(request, hash string) {
		if err := r.book.Committed([]catalog.WriteCommit{{RequestID: request, Generation: 3, Commit: hash}}); err != nil {
			t.Fatal(err)
		}
	}
	commit("r1", "abc")
	r.until("it has the commit", func() bool { return len(got.all()) == 1 })
	if c := got.all()[0].data["commit"]; c != "abc" {
		t.Errorf("the commit is %v", c)
	}
	e.RequestID, e.Object = "r2", "b"
	r.append(e)
	r.until("it waits", func() bool { return r.status("crm").Waiting == 1 })
	r.clock.Advance(2 * time.Second)
	r.until("it goes without", func() bool { return r.status("crm").Failing == 1 })
	commit("r2", "def")
	r.clock.Advance(7 * time.Second)
	r.idle("crm")
	for _, q := range got.all()[1:] {
		if q.object != "b" || q.data["commit"] != nil {
			t.Errorf("%s", q.body)
		}
	}
}
