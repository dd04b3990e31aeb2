package resolver

import (
	"maps"

	"fingerpost/resolver/catalog"
)

// AddGuestKey makes a key good that no file declares, on every project, until end is called. Only Lookup finds it: it is
// in no list of keys, and no rule counts it.
func (r *Resolver) AddGuestKey(k *catalog.Key) (end func()) {
	key := &Key{Key: *k}
	r.changeGuests(func(guests map[string]*Key) { guests[k.ID] = key })
	return func() { r.changeGuests(func(guests map[string]*Key) { delete(guests, k.ID) }) }
}

// changeGuests publishes a KeySet with other guests. A KeySet does not change, and those who hold one see that it is
// another.
func (r *Resolver) changeGuests(change func(guests map[string]*Key)) {
	r.applying.Lock()
	defer r.applying.Unlock()
	guests := maps.Clone(r.applying.guests)
	if guests == nil {
		guests = map[string]*Key{}
	}
	change(guests)
	r.applying.guests = guests
	next := *r.settled.Load()
	keys := *next.keys
	keys.guests, next.keys = guests, &keys
	r.settled.Store(&next)
}
