package resolver_test

import (
	"testing"

	"fingerpost/resolver"
)

// A question that was expected gets what Resolve says, and nothing older than the call.
func TestResolveExpected(t *testing.T) {
	r := open(t, resolver.Options{})
	apply(t, r, file("a.hcl", block("acme", "shop.acme.example", "*.acme.example", "xn--bcher-kva.example")))
	ask := func(raw string, meanwhile func()) *resolver.Answer {
		t.Helper()
		var q resolver.Question
		if !r.Expect(&q, []byte(raw)) {
			t.Fatalf("%q is not expected", raw)
		}
		meanwhile()
		r.Approach(&q)
		a, err := r.ResolveExpected(&q)
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		return a
	}
	for _, raw := range []string{
		"shop.acme.example", "Shop.ACME.example.:8443", "deep.in.acme.example", "acme.example", "unknown.example",
		"xn--bcher-kva.example",
	} {
		for range 3 { // a miss, then hits
			got, want := ask(raw, r.Settle), resolve(t, r, raw, resolver.Nested)
			if got.Code != want.Code || string(got.Data) != string(want.Data) || got.ETag != want.ETag || got.Slug != want.Slug {
				t.Errorf("%q: got %+v, want %+v", raw, got, want)
			}
		}
	}
	moved := ask("shop.acme.example", func() {
		apply(t, r, gone("a.hcl"), file("b.hcl", block("globex", "shop.acme.example")))
	})
	if moved.Slug != "globex" {
		t.Errorf("the answer is from before the change: project %q", moved.Slug)
	}
	for _, raw := range []string{"", "..", "a b", "a.example&form=flat", "a%2Eexample", "a.example#b", "*.a.example", "10.0.0.1"} {
		if r.Expect(new(resolver.Question), []byte(raw)) {
			t.Errorf("%q is expected, though it is no host name", raw)
		}
	}
}

// What the budget has no room for is not kept by the tables before ristretto either.
func TestBudgetHoldsForTheFront(t *testing.T) {
	const budget = 1 << 20
	r := open(t, resolver.Options{CacheBytes: budget})
	names := make([]string, 4000)
	for i := range names {
		names[i] = name4(i) + ".acme.example"
	}
	apply(t, r, file("a.hcl", block("acme", names...)))
	for range 3 {
		for _, name := range names {
			resolve(t, r, name, resolver.Nested)
		}
	}
	r.Settle()
	if m := r.Metrics(); m.Evictions == 0 {
		t.Fatal("nothing was evicted: the names fit")
	}
	// One that is being put into the front while ristretto lets go of it stays for a while.
	if held, strays := r.FrontAnswers(); held == 0 || strays > held/20 {
		t.Errorf("of %d answers in the front ristretto has forgotten %d", held, strays)
	}
}

func name4(i int) string {
	return string([]byte{'a' + byte(i/1000%10), 'a' + byte(i/100%10), 'a' + byte(i/10%10), 'a' + byte(i%10)})
}
