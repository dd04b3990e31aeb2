package resolver_test

import (
	"testing"

	"fingerpost/resolver"
)

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
