package share_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fingerpost/resolver/share"
)

// fill takes all places that a tenant gets without waiting.
func fill(p *share.Places, tenant string) (releases []func()) {
	for {
		release, ok := p.TryTake(tenant)
		if !ok {
			return releases
		}
		releases = append(releases, release)
	}
}

// TestOneTenantNeverTakesTheLastQuarter: alone it gets three quarters, and the next one finds a place at once.
func TestOneTenantNeverTakesTheLastQuarter(t *testing.T) {
	f := func(places, alone, next int) {
		t.Helper()
		p := share.New(places)
		if n := len(fill(p, "greedy")); n != alone {
			t.Errorf("of %d places a tenant alone gets %d, not %d", places, n, alone)
		}
		if n := len(fill(p, "next")); n != next {
			t.Errorf("of %d places the next tenant gets %d, not %d", places, n, next)
		}
	}
	f(0, 1, 0) // which is one place
	f(1, 1, 0)
	f(2, 1, 1)
	f(3, 2, 1)
	f(4, 3, 1)
	f(8, 6, 2)
	f(16, 12, 4)
	f(50, 38, 12)
}

// TestRounds: places that are given back go to the tenants in rounds, however many calls of one came first.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := share.New(4)
		held := fill(p, "a")
		var mu sync.Mutex
		var got []string
		var releases []func()
		wait := func(tenant string) {
			go func() {
				release, err := p.Take(t.Context(), tenant)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					got, releases = append(got, tenant), append(releases, release)
				}
			}()
			synctest.Wait()
		}
		last, _ := p.TryTake("z")
		for range 3 {
			wait("a")
		}
		time.Sleep(time.Second) // on the fake clock
		wait("b")
		wait("b")
		wait("c")
		if w := p.Waiting(); len(w) != 3 || w[0].Tenant != "a" || w[0].Count != 3 || time.Since(w[0].Since) != time.Second ||
			w[1].Tenant != "b" || w[1].Count != 2 || time.Since(w[1].Since) != 0 {
			t.Errorf("waiting: %v", w)
		}
		last()
		last() // does nothing
		synctest.Wait()
		for _, release := range held {
			release()
			synctest.Wait()
		}
		for len(releases) > 0 {
			mu.Lock()
			release := releases[0]
			releases = releases[1:]
			mu.Unlock()
			release()
			synctest.Wait()
		}
		if order := strings.Join(got, ""); order != "bcabaa" {
			t.Errorf("served in the order %q", order)
		}
		if n := p.Taken(); n != 0 || len(p.Waiting()) != 0 {
			t.Errorf("%d places are taken at the end", n)
		}
	})
}

// TestWhileOthersWait: one tenant gets a quarter, and more only when no other waits.
func TestWhileOthersWait(t *testing.T) {
	p := share.New(8)
	quarter := 0
	for {
		if _, ok := p.TryTakeQuarter("a"); !ok {
			break
		}
		quarter++
	}
	if quarter != 2 {
		t.Errorf("a tenant gets %d of 8 places while others wait", quarter)
	}
	if _, ok := p.TryTake("a"); !ok {
		t.Error("a tenant alone gets no more than a quarter")
	}
}

// TestTheEndOfAWait: a tenant alone is served when places are given back, and a call that gives up leaves the queue.
func TestTheEndOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := share.New(4)
		one := fill(p, "a")
		_, _ = p.TryTake("b")
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := p.Take(ctx, "b")
			left <- err
		}()
		synctest.Wait()
		one[0]()
		one[1]() // two places are free: b has its quarter, so one more of them is for others
		if p.Taken() != 3 {
			t.Fatalf("%d places are taken", p.Taken())
		}
		if err := <-left; err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := p.Take(ctx, "b")
			left <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
		if len(p.Waiting()) != 0 {
			t.Errorf("waiting: %v", p.Waiting())
		}
	})
}

// TestPlacesUnderLoad: never more places than there are, none lost, and everybody is served.
func TestPlacesUnderLoad(t *testing.T) {
	p := share.New(5)
	var mu sync.Mutex
	held, most := map[string]int{}, 0
	var all sync.WaitGroup
	for i := range 400 {
		tenant := string('a' + rune(min(i%8, 3))) // d has most of them
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if rand.N(4) == 0 {
				cancel()
			}
			release, err := p.Take(ctx, tenant)
			if err != nil {
				return
			}
			mu.Lock()
			held[tenant]++
			sum := 0
			for _, n := range held {
				sum += n
			}
			most = max(most, sum)
			mu.Unlock()
			mu.Lock()
			held[tenant]--
			mu.Unlock()
			release()
		})
	}
	all.Wait()
	if most > 5 || p.Taken() != 0 || len(p.Waiting()) != 0 {
		t.Errorf("at most %d were held, %d are taken, %v wait", most, p.Taken(), p.Waiting())
	}
}

// TestTurns: the rate holds, and a tenant with one question waits for one round, not for another's thousand.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := share.NewTurns(20)
		begin := time.Now()
		var mu sync.Mutex
		at := map[string][]time.Duration{}
		ask := func(ctx context.Context, tenant string) {
			if turns.Wait(ctx, tenant) == nil {
				mu.Lock()
				defer mu.Unlock()
				at[tenant] = append(at[tenant], time.Since(begin))
			}
		}
		for range 1000 {
			go ask(t.Context(), "greedy")
		}
		time.Sleep(time.Second)
		ask(t.Context(), "one")
		mu.Lock()
		took := at["one"][0]
		mu.Unlock()
		if took > 1100*time.Millisecond {
			t.Errorf("one question got its turn after %s", took)
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		ask(gone, "gone")
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		all := slices.Concat(at["greedy"], at["one"])
		slices.Sort(all)
		for i, when := range all[1:] {
			if when-all[i] < 50*time.Millisecond {
				t.Fatalf("turns at %s and %s", all[i], when)
			}
		}
		if len(all) != 1001 || all[1000] > 51*time.Second || len(at["gone"]) != 0 {
			t.Errorf("%d turns until %s", len(all), all[len(all)-1])
		}
		if err := turns.Wait(gone, "gone"); err == nil {
			t.Error("a call that has ended got a turn")
		}
	})
}

// TestTurnsAfterALeaver: a call that gives up leaves no second timer behind.
func TestTurnsAfterALeaver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := share.NewTurns(1)
		_ = turns.Wait(t.Context(), "a")
		for i := range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if turns.Wait(ctx, fmt.Sprint("leaver ", i)) == nil {
				t.Error("a turn too early")
			}
			cancel()
		}
		begin := time.Now()
		_ = turns.Wait(t.Context(), "a")
		_ = turns.Wait(t.Context(), "b")
		if took := time.Since(begin); took < 1900*time.Millisecond {
			t.Errorf("two turns within %s", took)
		}
	})
}
