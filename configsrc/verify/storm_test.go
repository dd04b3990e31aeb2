package verify_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"fingerpost/configsrc/verify"
	"fingerpost/resolver/catalog"
)

// TestStorm: many domains at once are checked a few at a time, without a busy loop, and their notes are stored in a batch a
// second. Those that somebody waits for come first, and those that are settled are not left behind for ever.
func TestStorm(t *testing.T) {
	t.Parallel()
	const domains = 20_000
	w := newWorld()
	w.takes = 4 * time.Second // two a second
	w.policy.Require = catalog.RequireAll
	for i := range domains {
		verified := "1999-12-01"
		if i%2 == 0 {
			verified = ""
		}
		w.put(fmt.Sprintf("%d.example", i), verified)
	}
	during(t, w, func(t *testing.T, s *verify.Service) {
		began := time.Now()
		w.put("new.example", catalog.VerifiedPending)
		after(time.Minute)
		if n := len(w.taken("new.example", began)); n < 2 {
			t.Errorf("a new domain was checked %d times within a minute", n)
		}
		w.mu.Lock()
		w.checks, w.asked, w.batches = nil, 0, 0
		w.mu.Unlock()
		after(2 * time.Hour)
		w.mu.Lock()
		defer w.mu.Unlock()
		settled := 0
		for _, c := range w.checks {
			var i int
			if _, err := fmt.Sscanf(c.name, "%d.example", &i); err == nil && i%2 == 1 {
				settled++
			}
		}
		checks := len(w.checks)
		if w.most > 8 || checks < 14_000 || settled < checks/20 {
			t.Errorf("%d checks, %d of settled domains, at most %d at a time", checks, settled, w.most)
		}
		if w.asked > 2*checks+10_000 || w.batches > 7300 {
			t.Errorf("%d rounds and %d batches for %d checks", w.asked, w.batches, checks)
		}
	})
}

// BenchmarkSchedule measures the start with 100,000 domains and their notes, and what stays in memory of each.
func BenchmarkSchedule(b *testing.B) {
	const domains = 100_000
	w := newWorld()
	for i := range domains {
		w.put(fmt.Sprintf("shop-%06d.customers.example", i), "1999-12-01")
	}
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := verify.New(verify.Options{Domains: w, Changes: w, Ledger: w, Trail: w, Checker: w, Writer: w,
			Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx)
		}()
		for s.Status() == nil || s.Status().Domains < domains {
			runtime.Gosched()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/domains, "B/domain")
		cancel()
		<-ended
	}
}
