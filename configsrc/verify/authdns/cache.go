package authdns

import "time"

// cacheSize is the number of entries from which on a cache starts again from nothing.
const cacheSize = 10_000

// A cache keeps values of names for a while. The zero cache is empty.
type cache[V any] struct {
	entries map[string]cached[V]
}

type cached[V any] struct {
	value V
	until time.Time
}

func (c *cache[V]) lookup(name string) (V, bool) {
	e, ok := c.entries[name]
	return e.value, ok && time.Now().Before(e.until)
}

func (c *cache[V]) keep(name string, value V, during time.Duration) {
	if c.entries == nil || len(c.entries) >= cacheSize {
		c.entries = map[string]cached[V]{}
	}
	c.entries[name] = cached[V]{value, time.Now().Add(during)}
}
