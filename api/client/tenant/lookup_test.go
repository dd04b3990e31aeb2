package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api/client/tenant"
	"fingerpost/cmd/testrig"
)

func TestMain(m *testing.M) { testrig.Main(m) }

// word names an error of Lookup.
func word(err error) string {
	for _, is := range []struct {
		err  error
		word string
	}{
		{tenant.ErrUnknown, "unknown"}, {tenant.ErrInvalid, "invalid"}, {tenant.ErrNotVerified, "notVerified"},
		{tenant.ErrSuspended, "suspended"}, {tenant.ErrForbidden, "forbidden"}, {tenant.ErrUnauthorized, "unauthorized"},
		{tenant.ErrUnavailable, "unavailable"}, {context.Canceled, "canceled"}, {context.DeadlineExceeded, "deadline"},
	} {
		if errors.Is(err, is.err) {
			return is.word
		}
	}
	return err.Error()
}

func TestLookup(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.refusals["off.example"] = "403 DOMAIN_NOT_VERIFIED"
	f.refusals["gone.example"] = "403 PROJECT_SUSPENDED"
	f.refusals["theirs.example"] = "403 FORBIDDEN"
	f.refusals["bad.example"] = "400 VALIDATION_ERROR"
	f.projects["xn--bcher-kva.example"] = "Books"
	d := open(t, f, nil)
	got, err := d.Lookup(t.Context(), "Shop.Example.:8443")
	if err != nil {
		t.Fatal(err)
	}
	want := tenant.Tenant{ID: 7, UUID: "u", Slug: "s", Name: "Shop", Status: "ACTIVE", Domain: "shop.example",
		Labels: map[string]string{"plan": "gold"}, Auth: tenant.Auth{RegistrationMode: "OPEN"}, Services: tenant.Services{MailEnabled: true},
		ETag: `"tag-Shop"`, AsOf: got.AsOf}
	if !reflect.DeepEqual(*got, want) || time.Since(got.AsOf) > time.Minute {
		t.Errorf("%+v", got)
	}
	for host, want := range map[string]string{"off.example": "notVerified", "gone.example": "suspended", "theirs.example": "forbidden",
		"bad.example": "invalid", "nobody.example": "unknown", "BÜCHER.example": "Books", "bücher。example": "Books"} {
		d.want(host, want)
		d.want(host, want)
	}
	if asked := f.questions(); strings.Count(asked, ",") != 6 || strings.Count(asked, "xn--") != 1 {
		t.Errorf("asked %s", asked)
	}
	for _, host := range []string{"", "a/b", "127.0.0.1", "[::1]:80", "*.x.example", "a..b", "shop.example:99999", strings.Repeat("a", 2000), "\xff.example"} {
		d.want(host, "invalid")
	}
	if asked := f.questions(); asked != "" {
		t.Errorf("asked %s", asked)
	}
	if s := d.Status(); s.Entries != 2 || s.Negatives != 5 || !s.Connected || s.LastError != nil || s.OldestAsOf.After(got.AsOf) ||
		s.LastContact.Before(got.AsOf) || s.Position != epoch+".1" {
		t.Errorf("%+v", s)
	}
}

// TestOneQuestion: all lookups of a name wait for one question.
func TestOneQuestion(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	hold := make(chan struct{})
	f.set(func() {
		f.mangle = func(http.ResponseWriter, *http.Request) bool { <-hold; return false }
	})
	var lookups sync.WaitGroup
	for range 100 {
		lookups.Go(func() { d.want("shop.example", "Shop") })
	}
	d.eventually("a question", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.asked) > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Lookup(ctx, "shop.example"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	lookups.Go(func() {
		if _, err := d.Lookup(context.Background(), "shop.example"); err != nil && err != context.DeadlineExceeded {
			t.Error(err)
		}
	})
	close(hold)
	lookups.Wait()
	if asked := f.questions(); asked != "shop.example" {
		t.Errorf("asked %s", asked)
	}
}

// TestLimit: a lookup without a deadline ends after 2 s; the question goes on and fills the cache.
func TestLimit(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, nil)
	hold := make(chan struct{})
	f.set(func() {
		f.mangle = func(http.ResponseWriter, *http.Request) bool { <-hold; return false }
	})
	result := make(chan string)
	go func() { result <- d.get("shop.example") }()
	d.eventually("a question", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.asked) > 0 })
	d.eventually("the limit", func() bool {
		d.time.Advance(100 * time.Millisecond)
		select {
		case got := <-result:
			if got != "deadline" {
				t.Errorf("it ends with %s", got)
			}
			return true
		default:
			return false
		}
	})
	close(hold)
	d.eventually("the answer", func() bool { return d.Status().Entries == 1 })
	d.want("shop.example", "Shop")
	if asked := f.questions(); asked != "shop.example" {
		t.Errorf("asked %s", asked)
	}
}

func TestHitAllocatesNothing(t *testing.T) {
	f := newFake(t)
	d := open(t, f, func(o *tenant.Options) { o.Observe = func(tenant.Event) {} })
	d.want("shop.example", "Shop")
	d.want("nobody.example", "unknown")
	ctx := t.Context()
	for _, host := range []string{"shop.example", "nobody.example"} {
		if n := testing.AllocsPerRun(1000, func() { _, _ = d.Lookup(ctx, host) }); n != 0 && !testrig.Race {
			t.Errorf("%s: %v allocations", host, n)
		}
	}
	f.questions()
}

func TestFull(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, func(o *tenant.Options) { o.MaxEntries, o.MaxNegative = 2, 1 })
	d.want("shop.example", "Shop")
	d.want("a.x.example", "A")
	d.want("n1.example", "unknown")
	d.want("shop.example", "Shop")
	d.want("b.x.example", "B") // a.x.example goes
	d.want("n2.example", "unknown")
	if s := d.Status(); s.Entries != 2 || s.Negatives != 1 {
		t.Errorf("%+v", s)
	}
	f.questions()
	d.want("shop.example", "Shop")
	d.want("b.x.example", "B")
	d.want("n2.example", "unknown")
	d.want("a.x.example", "A") // shop.example goes
	d.want("n1.example", "unknown")
	d.want("b.x.example", "B")
	if asked := f.questions(); asked != "a.x.example, n1.example" {
		t.Errorf("asked %s", asked)
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var mu sync.Mutex
	var seen []string
	d := open(t, f, func(o *tenant.Options) {
		o.Observe = func(e tenant.Event) {
			if e.Duration < 0 {
				t.Error(e.Duration)
			}
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprint(e.Kind, " ", e.Host))
		}
	})
	d.want("shop.example", "Shop")
	d.want("SHOP.example", "Shop")
	d.want("nobody.example", "unknown")
	d.want("a/b", "invalid")
	f.away()
	d.connected(false)
	d.want("new.example", "unavailable")
	d.time.Advance(time.Minute)
	d.want("shop.example", "Shop stale")
	want := "miss shop.example, hit SHOP.example, negative nobody.example, negative a/b, error new.example, stale shop.example"
	d.eventually("six events", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) >= 6 })
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWrongOptions(t *testing.T) {
	t.Setenv("FINGERPOST_KEY", "")
	for want, o := range map[string]tenant.Options{
		"URL is missing":                    {Key: "k"},
		"Key is missing":                    {URL: "http://a"},
		"Key holds a blank":                 {URL: "http://a", Key: "secret\n"},
		"URL must be an address":            {URL: "a:80", Key: "k"},
		"URL must have no user":             {URL: "http://u:secret@a", Key: "k"},
		"query or fragment":                 {URL: "http://a?secret=1", Key: "k"},
		"Fresh and MaxStale must":           {URL: "http://a", Key: "k", Fresh: -1},
		"MaxEntries and MaxNegative must":   {URL: "http://a", Key: "k", MaxNegative: -1},
		"URL is missing: the address of fi": {},
	} {
		_, err := tenant.Open(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	t.Setenv("FINGERPOST_KEY", fakeKey)
	f := newFake(t)
	d := open(t, f, func(o *tenant.Options) { o.Key, o.URL = "", f.url+"/" })
	d.want("shop.example", "Shop")
}
