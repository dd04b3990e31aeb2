package resolver

import (
	"crypto/sha256"
	"maps"

	"fingerpost/resolver/catalog"
)

// AddGuestKey makes a key good that no file declares, on every project, until end is called. Only Lookup finds it: it is
// in no list of keys, and no rule counts it.
func (r *Resolver) AddGuestKey(k *catalog.Key) (end func()) { return r.addGuest(k.ID, &Key{Key: *k}) }

// AddPersonKey makes a key for a person who has signed in, until end is called. It is good while a rule of the login
// lets the person in, and until the login names another provider; if none does now, it never is. Like a guest key it is
// in no list. The caller must not change the claims any more.
func (r *Resolver) AddPersonKey(p *Person) (text string, end func()) {
	text, _ = catalog.NewKeyText()
	return text, r.TakePersonKey(p, text)
}

// TakePersonKey is AddPersonKey with the text of a key that another node has made.
func (r *Resolver) TakePersonKey(p *Person, text string) (end func()) {
	id, is := catalog.KeyTextID([]byte(text))
	if !is {
		return func() {}
	}
	k := &Key{projects: map[int64]struct{}{}, person: &personKey{Person: *p, textID: string(id)}}
	k.Hash, k.ID, k.Name = sha256.Sum256([]byte(text)), p.ID(), p.KeyName()
	// With each other set of keys everybody's keys are checked again: a person who matches no rule must not cause that.
	set := r.Keys()
	if l := set.login(p); l == nil || set.bindPerson(k, l) == nil {
		return func() {}
	}
	return r.addGuest(k.person.textID, k)
}

// addGuest makes a key good that Lookup finds by an id.
func (r *Resolver) addGuest(id string, k *Key) (end func()) {
	r.changeGuests(func(guests map[string]*Key) { guests[id] = k })
	return func() { r.changeGuests(func(guests map[string]*Key) { delete(guests, id) }) }
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
	next := *r.settled.Load()
	keys := *next.keys
	next.keys, r.applying.guests = &keys, keys.bindGuests(guests)
	r.settled.Store(&next)
}

// bindGuests takes guests into a set, persons with what the rules of their logins grant now. It returns those that may
// be good in a later set: a person whose login has gone, or names another provider, is not one of them.
func (s *KeySet) bindGuests(guests map[string]*Key) (stay map[string]*Key) {
	s.guests, stay = make(map[string]*Key, len(guests)), make(map[string]*Key, len(guests))
	for id, k := range guests {
		if k.person == nil {
			s.guests[id], stay[id] = k, k
			continue
		}
		l := s.login(&k.person.Person)
		if l == nil {
			continue
		}
		stay[id] = k
		if bound := s.bindPerson(k, l); bound != nil {
			s.guests[id] = bound
		}
	}
	return stay
}
