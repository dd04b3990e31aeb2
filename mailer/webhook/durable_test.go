package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// firsts lists the objects of a project in the order in which they came first.
func firsts(all []request, project int64) (list []string) {
	for _, q := range all {
		if q.project == project && !slices.Contains(list, q.object) {
			list = append(list, q.object)
		}
	}
	return list
}

// TestKills: whatever is lost of what an Engine would have stored, each event is delivered at least once, in the order of
// its project, to receivers that answer, refuse and lie.
func TestKills(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fickle := newReceiver(t, func(_ request, w http.ResponseWriter, n int) {
		switch n % 4 {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 1:
			panic(http.ErrAbortHandler) // it has the event, and says nothing
		}
	})
	steady := newReceiver(t, nil)
	hooks := []webhook.Hook{hook("fickle", fickle.URL), hook("steady", steady.URL)}
	r.start(hooks...)
	const projects = 5
	want := map[int64][]string{}
	n := 0
	write := func(times int) {
		for range times {
			n++
			project, object := rand.Int64N(projects), fmt.Sprint("o", n)
			want[project] = append(want[project], object)
			r.entry(project, object)
		}
	}
	for range testrig.Size(t, 300, 25) {
		write(1 + rand.IntN(20))
		if rand.IntN(3) == 0 {
			r.clock.Advance(time.Minute)
		}
		if rand.IntN(3) == 0 {
			r.end()
		} else {
			r.kill()
		}
		write(rand.IntN(5)) // while it is down
		r.start(hooks...)
	}
	r.idle("steady")
	r.until("the fickle one has everything", func() bool {
		r.clock.Advance(time.Hour)
		s := r.status("fickle")
		return s.Waiting == 0 && s.Behind == 0
	})
	for _, to := range []*receiver{fickle, steady} {
		all := to.all()
		ids := map[string]string{}
		for _, q := range all {
			if was, there := ids[q.id]; there && was != string(q.body) {
				t.Fatalf("%s has two bodies", q.id)
			}
			ids[q.id] = string(q.body)
		}
		if len(ids) != n {
			t.Errorf("%d events, and %d ids", n, len(ids))
		}
		for project := range int64(projects) {
			if got := firsts(all, project); !slices.Equal(got, want[project]) {
				t.Errorf("project %d:\n%v\nwant\n%v", project, got, want[project])
			}
		}
	}
}

// TestReplayOutlivesKills: a replay sends each of its events again, in order, whatever is lost of what an Engine would have
// stored.
func TestReplayOutlivesKills(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, func(_ request, w http.ResponseWriter, n int) {
		switch n % 5 {
		case 0:
			w.WriteHeader(http.StatusBadGateway)
		case 1:
			panic(http.ErrAbortHandler) // it has the event, and says nothing
		}
	})
	n := testrig.Size(t, 300, 40)
	r.start(hook("crm", got.URL))
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint("o", i))
		r.entry(int64(i%3), want[i])
	}
	done := func() bool {
		r.clock.Advance(time.Hour)
		s := r.status("crm")
		return s.Waiting == 0 && s.Behind == 0 && s.OnWire == 0
	}
	r.until("everything is delivered", done)
	if count, err := r.Replay(t.Context(), "crm", webhook.Replay{}); count != n || err != nil {
		t.Fatal(count, err)
	}
	again := func() (list []string) {
		for _, q := range got.all() {
			if strings.Contains(q.id, ".r") && !slices.Contains(list, q.object) {
				list = append(list, q.object)
			}
		}
		return list
	}
	kills := 0
	for was := 0; was < n; was = len(again()) {
		r.until("the replay goes on", func() bool { r.clock.Advance(time.Minute); return len(again()) > was })
		r.kill()
		kills++
		r.start(hook("crm", got.URL))
	}
	r.until("everything is delivered again", done)
	if list := again(); !slices.Equal(list, want) {
		t.Errorf("got again %q", list)
	}
	testrig.Figure(t, "%d events again, with %d kills", n, kills)
}

// TestHanging: ten receivers of a hundred that never answer delay none of the others, with all shared places taken.
func TestHanging(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Timeout = testrig.Patience // the requests hang until the end
	release := make(chan struct{})
	var mu sync.Mutex
	hung := map[string]int{}
	hang := newReceiver(t, func(q request, w http.ResponseWriter, _ int) {
		name := q.id[strings.LastIndex(q.id, ".")+1:]
		mu.Lock()
		hung[name]++
		mu.Unlock()
		<-release
	})
	t.Cleanup(sync.OnceFunc(func() { close(release) }))
	good := newReceiver(t, nil)
	var hooks []webhook.Hook
	const count, bad, events = 100, 30, 40 // thirty: all shared places are taken
	for i := range count {
		h := hook(fmt.Sprintf("h%02d", i), good.URL)
		if i < bad {
			h.URL = hang.URL
		}
		hooks = append(hooks, h)
	}
	r.start(hooks...)
	for i := range bad { // four projects each: what it may have on the wire
		r.entry(int64(i%4), "first")
	}
	r.until("the shared places are taken", func() bool {
		mu.Lock()
		defer mu.Unlock()
		sum := 0
		for _, n := range hung {
			sum += n
		}
		return sum >= bad+64*3/4
	})
	for i := range events {
		r.entry(int64(i), fmt.Sprint("o", i))
	}
	r.until("all others have everything", func() bool { return len(good.all()) == (count-bad)*(events+bad) })
	mu.Lock()
	defer mu.Unlock()
	for name, n := range hung {
		if n > 4 {
			t.Errorf("%s has %d requests on the wire", name, n)
		}
	}
	if len(hung) != bad {
		t.Errorf("%d of %d hang", len(hung), bad)
	}
}

// TestOneAfterTimeout: after a time-out a receiver has one request at a time, until one succeeds.
func TestOneAfterTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Timeout = 300 * time.Millisecond
	var mu sync.Mutex
	running, most := 0, 0
	release := make(chan struct{})
	slow := newReceiver(t, func(_ request, w http.ResponseWriter, n int) {
		if n <= 4 {
			<-release
			return
		}
		mu.Lock()
		running++
		if n <= 12 {
			most = max(most, running)
			w.WriteHeader(http.StatusInternalServerError)
		}
		mu.Unlock()
		mu.Lock()
		running--
		mu.Unlock()
	})
	t.Cleanup(func() { close(release) })
	r.start(hook("crm", slow.URL))
	for project := range int64(10) {
		r.entry(project, "o")
	}
	r.until("everything is delivered", func() bool {
		r.clock.Advance(time.Minute)
		return r.status("crm").Waiting == 0 && len(slow.all()) > 12
	})
	if list := r.deliveries("crm"); len(list) != 10 || most != 1 {
		t.Errorf("%d at a time; %q", most, list)
	}
}

// TestRotation: each delivery verifies with the old or the new secret, and with both while both are declared.
func TestRotation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	older, newer := []byte("the older secret of the webhook"), []byte("the newer secret of the webhook")
	got := newReceiver(t, nil)
	h := hook("crm", got.URL)
	rotate := func(version string, secrets ...[]byte) {
		h.Version, h.Secrets = version, secrets
		r.hooks.set(h)
	}
	h.Secrets = [][]byte{older}
	r.start(h)
	n := 0
	write := func() {
		for range 20 {
			n++
			r.entry(int64(n%3), fmt.Sprint("o", n))
		}
	}
	write()
	rotate("2", newer, older)
	write()
	rotate("3", newer)
	write()
	r.idle("crm")
	r.entry(1, "last")
	r.idle("crm")
	both := 0
	for _, q := range got.all() {
		a, b := verify(q, older, r.clock.Now()), verify(q, newer, r.clock.Now())
		if a != nil && b != nil {
			t.Errorf("%s: %v", q.object, b)
		}
		if a == nil && b == nil {
			both++
			if list := strings.Fields(q.header.Get("webhook-signature")); len(list) != 2 {
				t.Errorf("%q", list)
			}
		}
		if q.object == "last" && (a == nil || b != nil) {
			t.Error("the last one is not signed with the newer secret alone")
		}
	}
	if len(got.all()) != 61 {
		t.Errorf("%d requests", len(got.all()))
	}
}

// TestGap: what retention has removed behind a webhook that was off is told once, next to what is still there.
func TestGap(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, nil)
	h := hook("crm", got.URL)
	r.start(h)
	old := func(object string) {
		r.append(catalog.AuditEntry{Action: "domain.update", ProjectID: 1, Object: object, Time: r.clock.Now().Add(-48 * time.Hour)})
	}
	old("a")
	r.idle("crm")
	r.end()
	for i := range 5 {
		old(fmt.Sprint("old", i))
	}
	r.append(catalog.AuditEntry{Action: "domain.update", ProjectID: 2, Object: "kept"})
	if err := r.book.PruneAudit(t.Context(), r.clock.Now(), func(int64) int { return 1 }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.start(h)
		r.idle("crm")
		r.end()
	}
	r.start(h)
	if r.status("crm").GapAt.IsZero() {
		t.Error("the status has no gap")
	}
	var gaps []string
	for _, q := range got.all() {
		if q.event == "gap" {
			gaps = append(gaps, fmt.Sprintf("%s %v", q.id[strings.Index(q.id, "."):], q.data))
		}
	}
	if !slices.Equal(gaps, []string{".g6-0.crm map[from:2 to:6]"}) {
		t.Errorf("%q", gaps)
	}
	if !strings.Contains(got.objects(), "kept") || strings.Contains(got.objects(), "old") {
		t.Errorf("got %s", got.objects())
	}
}

// TestLoss: after a takeover each webhook is told once that events may have been lost, and goes on with this ledger.
func TestLoss(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got, refuses := newReceiver(t, nil), newReceiver(t, status(http.StatusInternalServerError))
	hooks := []webhook.Hook{hook("crm", got.URL), hook("down", refuses.URL)}
	r.entry(1, "before")
	r.start(hooks...)
	r.NoteLoss()
	r.until("both are told", func() bool { return len(got.all()) == 1 && len(refuses.all()) == 1 })
	r.entry(1, "after")
	r.idle("crm")
	r.kill()
	r.start(hooks...)
	refuses.set(nil)
	r.clock.Advance(time.Minute)
	for _, name := range []string{"crm", "down"} {
		r.idle(name)
		if r.status(name).GapAt.IsZero() {
			t.Errorf("the status of %s has no gap", name)
		}
	}
	for _, to := range []*receiver{got, refuses} {
		var list []string
		for _, q := range to.all() {
			if what := strings.TrimSpace(fmt.Sprint(q.event, " ", q.object)); !slices.Contains(list, what) {
				list = append(list, what)
			}
			if from, is := q.data["from"]; q.event == "gap" && (!is || from != nil || q.data["to"] != nil || !strings.Contains(q.id, ".g1-0.")) {
				t.Errorf("%s: %s", q.id, q.body)
			}
		}
		if slices.Sort(list); !slices.Equal(list, []string{"domain.update after", "gap"}) {
			t.Errorf("%q", list)
		}
	}
}

// TestMails: the end of a mail is an event in the order of its project, also while the project waits.
func TestMails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, status(http.StatusInternalServerError))
	none := newReceiver(t, nil)
	deaf := hook("deaf", none.URL)
	deaf.Wants = func(event string) bool { return !strings.HasPrefix(event, "mail.") }
	r.start(hook("crm", got.URL), deaf)
	end := func(project, id int64, status catalog.MailStatus, code catalog.Code) {
		t.Helper()
		log := &catalog.MailLog{ID: id, ProjectID: project, ToEmail: fmt.Sprint("u", id, "@to.example"), TemplateCode: "HELLO",
			Status: catalog.MailPending, Subject: "hush", CreatedAt: time.Unix(1_800_000_000, 0).UTC()}
		mail := &catalog.QueuedMail{LogID: id, ProjectID: project, To: log.ToEmail, Message: []byte("hush")}
		if _, err := r.book.AcceptMail(log, mail, nil, r.clock.Now()); err != nil {
			t.Fatal(err)
		}
		log.Status, log.ErrorCode = status, code
		if err := r.book.UpdateMail(log); err != nil {
			t.Fatal(err)
		}
	}
	id := (int64(1_800_000_000) - time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Unix()) * 1_000_000
	r.entry(1, "a")
	r.until("it waits", func() bool { return r.status("crm").Failing == 1 })
	end(1, id+1, catalog.MailSent, "")
	end(2, id+2, catalog.MailFailed, "SMTP_AUTH_FAILED")
	end(1, id+3, catalog.MailExpired, "")
	r.entry(1, "b")
	r.until("both projects wait", func() bool { return r.status("crm").Failing == 2 })
	got.set(nil)
	r.clock.Advance(7 * time.Second)
	r.idle("crm")
	r.idle("deaf")
	var list []string
	for _, q := range got.all()[2:] {
		if q.project == 1 {
			list = append(list, strings.TrimSpace(q.event+" "+q.object))
		}
		if q.event == "mail.failed" {
			want := fmt.Sprintf(`"data":{"logId":%d,"projectId":2,"toEmail":"u%d@to.example","templateCode":"HELLO","status":"FAILED","errorCode":"SMTP_AUTH_FAILED"}}`, id+2, id+2)
			if !strings.HasSuffix(string(q.body), want) || !strings.HasSuffix(q.id, ".m2.crm") {
				t.Errorf("%s: %s", q.id, q.body)
			}
		}
	}
	if got := strings.Join(list, ", "); got != "domain.update a, mail.sent, mail.expired, domain.update b" {
		t.Error(got)
	}
	if got := none.objects(); got != "a b" {
		t.Errorf("the webhook without mails got %s", got)
	}
}

// TestReplay: a delivery, or the events of a time, are sent again with ids of their own, past what waits.
func TestReplay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, nil)
	r.start(hook("crm", got.URL))
	began := r.clock.Now()
	for i := range 3 {
		r.entry(1, fmt.Sprint("o", i))
		r.clock.Advance(time.Minute)
	}
	r.idle("crm")
	rows, _, err := r.Deliveries("crm", records.HookQuery{Page: 1, Limit: 9})
	if err != nil || len(rows) != 3 {
		t.Fatal(rows, err)
	}
	// The receiver refuses the project's next event, which holds back no replay.
	got.set(func(q request, w http.ResponseWriter, _ int) {
		if q.object == "waits" || strings.Contains(q.id, ".r") && q.object == "o2" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	r.entry(1, "waits")
	r.until("it waits", func() bool { return r.status("crm").Failing == 1 })
	replay := func(q webhook.Replay, want int) {
		t.Helper()
		if n, err := r.Replay(t.Context(), "crm", q); n != want || err != nil {
			t.Errorf("%+v: %d, %v", q, n, err)
		}
	}
	replay(webhook.Replay{ID: rows[2].ID}, 1)
	r.until("it came again", func() bool { return strings.HasSuffix(got.objects(), "o0") || strings.Count(got.objects(), "o0") == 2 })
	r.until("the replay has ended", func() bool { return r.status("crm").Waiting == 1 })
	replay(webhook.Replay{From: began.Add(30 * time.Second), To: began.Add(150 * time.Second)}, 2)
	r.until("its last one fails", func() bool { return strings.Count(got.objects(), "o2") >= 2 })
	if _, err := r.Replay(t.Context(), "crm", webhook.Replay{ID: rows[0].ID}); err == nil || !strings.Contains(err.Error(), "at work") {
		t.Errorf("a second replay: %v", err)
	}
	r.kill()
	got.set(nil)
	r.start(hook("crm", got.URL)) // a replay goes on
	r.clock.Advance(time.Hour)
	r.idle("crm")
	var ids []string
	for _, q := range got.all() {
		if _, n, is := strings.Cut(q.id, ".r"); is && !slices.Contains(ids, q.object+" r"+n) {
			ids = append(ids, q.object+" r"+n)
		}
	}
	if len(ids) != 3 || !strings.HasPrefix(ids[0], "o0 r") || !strings.HasPrefix(ids[1], "o1 r") || !strings.HasPrefix(ids[2], "o2 r") {
		t.Errorf("%q", ids)
	}
	for _, id := range []string{"unknown", ""} {
		if _, err := r.Replay(t.Context(), "none", webhook.Replay{ID: id}); !catalog.IsNotFound(err) {
			t.Error(err)
		}
	}
	if _, err := r.Replay(t.Context(), "crm", webhook.Replay{ID: "unknown"}); !catalog.IsNotFound(err) {
		t.Error(err)
	}
	replay(webhook.Replay{From: r.clock.Now()}, 0)
}

// TestNotStored: what a person asks for is taken once it is stored, and refused where it cannot be.
func TestNotStored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := newReceiver(t, nil)
	r.start(hook("crm", got.URL))
	r.entry(1, "o")
	r.idle("crm")
	rows, _, err := r.Deliveries("crm", records.HookQuery{Page: 1, Limit: 1})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	replay := func() (int, error) { return r.Replay(t.Context(), "crm", webhook.Replay{ID: rows[0].ID}) }
	r.book.cut.Store(true)
	if n, err := replay(); !unavailable(err) {
		t.Errorf("a replay that is not stored: %d, %v", n, err)
	}
	r.book.cut.Store(false)
	r.until("one is stored", func() bool {
		r.clock.Advance(10 * time.Second)
		n, err := replay()
		return n == 1 && err == nil
	})
	r.idle("crm")
	if last, found, err := r.LastDelivery("crm"); !found || err != nil || last.ID != rows[0].ID+".r2" || got.objects() != "o o" {
		t.Errorf("%v, %v, %v: %s", last, found, err, got.objects())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Replay(ended, "crm", webhook.Replay{From: time.Unix(1, 0)}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that is gone: %v", err)
	}
	r.idle("crm")
	if last, _, err := r.LastDelivery("crm"); err != nil || last.Number != 2 {
		t.Errorf("a caller that is gone has sent %v, %v", last, err)
	}
	r.end()
	_, tested := r.Test(t.Context(), "crm")
	_, replayed := replay()
	for _, err := range []error{tested, replayed, r.Resume(t.Context(), "crm")} {
		if !unavailable(err) {
			t.Errorf("after the end: %v", err)
		}
	}
}

func unavailable(err error) bool {
	e, is := errors.AsType[*catalog.Error](err)
	return is && e.Code == catalog.CodeUnavailable
}

// TestManyTests: tests share the places of requests, and one that gets none, or whose caller is gone, has no outcome.
func TestManyTests(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := newRig(t)
	r.o.Timeout = time.Hour
	release := make(chan struct{})
	hang := newReceiver(t, func(_ request, w http.ResponseWriter, _ int) { <-release })
	t.Cleanup(sync.OnceFunc(func() { close(release) }))
	crm := hook("crm", hang.URL)
	crm.Active = false
	good := hook("good", newReceiver(t, nil).URL)
	r.start(crm, good)
	ctx, cancel := context.WithCancel(t.Context())
	var tests sync.WaitGroup
	const most = 64 * 3 / 4
	for range most {
		tests.Go(func() {
			if out, err := r.Test(ctx, "crm"); !errors.Is(err, context.Canceled) {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
	r.until("all places that it may have are taken", func() bool { return len(hang.all()) == most })
	if out, err := r.Test(t.Context(), "crm"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a place: %+v, %v", out, err)
	}
	if out, err := r.Test(t.Context(), "good"); !out.Delivered || err != nil {
		t.Errorf("next to them: %+v, %v", out, err)
	}
	cancel()
	tests.Wait()
}

// TestReplayTime: of a long trail the events of a time are found, also where the clock was set back for a while.
func TestReplayTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := hook("crm", newReceiver(t, nil).URL)
	began := r.clock.Now().UTC().Truncate(time.Second)
	var entries []catalog.AuditEntry
	for i := range 1000 {
		at := began.Add(time.Duration(i) * time.Minute)
		if i%100 == 50 {
			at = at.Add(-30 * time.Minute)
		}
		entries = append(entries, catalog.AuditEntry{Time: at, Action: "domain.update", ProjectID: int64(i%7 + 1), Slug: "p", Object: fmt.Sprint(i),
			Door: catalog.DoorFile})
	}
	if _, err := r.book.AppendAudit(entries, 0, nil); err != nil {
		t.Fatal(err)
	}
	r.start(h)
	f := func(from, to int) {
		t.Helper()
		q := webhook.Replay{From: began.Add(time.Duration(from) * time.Minute), To: began.Add(time.Duration(to) * time.Minute)}
		want := 0
		for i := range entries {
			if at := entries[i].Time; !at.Before(q.From) && at.Before(q.To) {
				want++
			}
		}
		var n int
		r.until("the former replay has ended", func() bool {
			var err error
			n, err = r.Replay(t.Context(), "crm", q)
			return err == nil
		})
		if n != want {
			t.Errorf("from %d to %d: %d events, want %d", from, to, n, want)
		}
	}
	f(-10, 0)
	f(-10, 1)
	f(0, 3)
	f(118, 123) // the one that was set back from 150 is in it
	f(120, 121)
	f(150, 151)
	f(998, 1001)
	f(1000, 2000)
	f(-1000, 2000)
}
