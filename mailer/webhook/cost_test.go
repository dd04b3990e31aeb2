package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// BenchmarkWrite appends an entry durably, with so many webhooks that look at it and do not want it.
func BenchmarkWrite(b *testing.B) {
	for _, hooks := range []int{0, 1, 100} {
		b.Run(fmt.Sprint("webhooks=", hooks), func(b *testing.B) {
			l, err := ledger.Open(b.TempDir(), ledger.Options{Logger: quiet})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			var d declared
			var list []webhook.Hook
			for i := range hooks {
				h := hook(fmt.Sprint("h", i), "http://127.0.0.1:9")
				h.Wants = func(event string) bool { return event == "key.create" }
				list = append(list, h)
			}
			d.set(list...)
			e := webhook.New(webhook.Options{Hooks: &d, Ledger: &book{Ledger: l}, Logger: quiet})
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				e.Run(ctx)
			}()
			if _, _, err := e.Status(ctx); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				entry := catalog.AuditEntry{Action: "domain.update", ProjectID: 1, Slug: "p1", Door: catalog.DoorAPI}
				if _, err := l.AppendAudit([]catalog.AuditEntry{entry}, 0, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			cancel()
			<-done
		})
	}
}

// TestHangingCostsNothing compares, by turns, how long 90 webhooks wait for events next to ten that answer, and next to ten
// that hang. The quietest round of each decides, so that a busy machine does not.
func TestHangingCostsNothing(t *testing.T) {
	testrig.Campaign(t)
	const count, bad, rounds, events = 100, 10, 7, 40
	release := make(chan struct{})
	defer close(release)
	hang := newReceiver(t, func(request, http.ResponseWriter, int) { <-release })
	side := func(other string) (round func() (p99 time.Duration)) {
		r := newRig(t)
		var mu sync.Mutex
		came := map[string][]time.Duration{}
		sent := map[string]time.Time{}
		good := newReceiver(t, func(q request, w http.ResponseWriter, _ int) {
			w.WriteHeader(http.StatusNoContent)
			mu.Lock()
			defer mu.Unlock()
			if name := q.id[strings.LastIndex(q.id, ".")+1:]; name >= "h10" {
				came[q.object] = append(came[q.object], time.Since(sent[q.object]))
			}
		})
		var hooks []webhook.Hook
		for i := range count {
			h := hook(fmt.Sprintf("h%02d", i), good.URL)
			if i < bad && other != "" {
				h.URL = other
			}
			hooks = append(hooks, h)
		}
		r.start(hooks...)
		n := 0
		return func() time.Duration {
			var all []time.Duration
			for range events {
				n++
				object := fmt.Sprint("o", n)
				mu.Lock()
				sent[object] = time.Now()
				mu.Unlock()
				r.entry(int64(n%8), object)
				r.until("the others have it", func() bool {
					mu.Lock()
					defer mu.Unlock()
					return len(came[object]) == count-bad
				})
				all = append(all, came[object]...)
			}
			slices.Sort(all)
			return all[len(all)*99/100]
		}
	}
	without, with := side(""), side(hang.URL)
	least := [2]time.Duration{time.Hour, time.Hour}
	for range rounds {
		least[0], least[1] = min(least[0], without()), min(least[1], with())
	}
	testrig.Figure(t, "p99 of %d webhooks: %v next to %d that answer, %v next to %d that hang", count-bad, least[0], bad, least[1], bad)
	if least[1] > 2*least[0]+20*time.Millisecond {
		t.Errorf("p99 is %v next to webhooks that hang, and %v without", least[1], least[0])
	}
}
