package resolver

import (
	"errors"
	"hash/maphash"

	"fingerpost/resolver/catalog"
)

// Resolve answers which project a domain belongs to. raw is the query's value as it was sent, percent-decoded; it may
// carry a port and a trailing dot and is not kept. An unknown, inactive or suspended domain is an Answer with a Code.
// The error is a *catalog.Error: VALIDATION_ERROR with a problem on "domain" for what is no host name, UNAVAILABLE where
// the store cannot be read. A hit does not allocate.
func (r *Resolver) Resolve(raw []byte, form Form) (*Answer, error) {
	var buf [catalog.MaxHostLen + 3]byte
	host, idn, err := catalog.AppendHost(buf[:0], raw)
	if err != nil {
		return nil, invalidDomain(err)
	}
	hash := maphash.Bytes(r.seed, host)
	// Asked before an "xn--" name is checked any further: only canonical names are ever put in.
	if a := r.cached(host, hash, form); a != nil {
		return a, nil
	}
	if idn {
		name, err := catalog.FinishIDN(host)
		if err != nil {
			return nil, invalidDomain(err)
		}
		if string(host) != name {
			host = []byte(name)
			hash = maphash.Bytes(r.seed, host)
			if a := r.cached(host, hash, form); a != nil {
				return a, nil
			}
		}
	}
	return r.miss(string(host), hash, form)
}

func (r *Resolver) hashName(name string) uint64 { return maphash.String(r.seed, name) }

// cacheKey tells the forms of a name apart. Names are compared in full on a hit, so it need not be unique.
func cacheKey(hash uint64, form Form) uint64 { return hash + uint64(form)*0x9e3779b97f4a7c15 }

// cached returns a fresh answer, or nil.
func (r *Resolver) cached(host []byte, hash uint64, form Form) *Answer {
	if form != FlatSecrets {
		key := cacheKey(hash, form)
		first := r.front.get(key, host, form, &r.stamps)
		if first != nil && !seldom() {
			r.metrics.hits.add(hash)
			return first
		}
		if a, ok := r.known.Get(key); ok && a.is(host, form) && r.stamps.fresh(a) {
			r.front.put(key, a)
			r.metrics.hits.add(hash)
			return a
		}
		if first != nil { // it is on its way into ristretto, or ristretto has lost it
			r.keepSoon(first)
			r.metrics.hits.add(hash)
			return first
		}
	}
	// A name that is not there is not there in any form.
	if a, ok := r.unknown.Get(hash); ok && a.host == string(host) && r.stamps.fresh(a) {
		r.metrics.negativeHits.Add(1)
		return a
	}
	return nil
}

// miss builds the answer, once for all who ask for the same name at the same time.
func (r *Resolver) miss(host string, hash uint64, form Form) (*Answer, error) {
	r.metrics.misses.Add(1)
	if form == FlatSecrets {
		a, _, err := r.build(host, hash, form)
		return a, err
	}
	for range 3 {
		f, leader := r.flights.join(flightKey{host, form})
		if leader {
			defer r.flights.leave(flightKey{host, form}, f)
			// The flight before may have ended since this call looked into the cache.
			if a := r.recent.get(host, hash, form); a != nil && r.stamps.fresh(a) {
				if seldom() && a.Code != catalog.CodeNotFound {
					r.keepSoon(a) // ristretto may have lost it
				}
				f.answer = a
				return a, nil
			}
			f.answer, f.err = r.buildAndKeep(host, hash, form)
			return f.answer, f.err
		}
		f.done.Wait()
		if f.err != nil {
			return nil, f.err
		}
		// The leader may have read the store before a change that was acknowledged before this call began.
		if r.stamps.fresh(f.answer) {
			return f.answer, nil
		}
	}
	return r.buildAndKeep(host, hash, form)
}

func (r *Resolver) buildAndKeep(host string, hash uint64, form Form) (*Answer, error) {
	a, keep, err := r.build(host, hash, form)
	if err != nil || !keep {
		return a, err
	}
	r.recent.put(a)
	if a.Code == catalog.CodeNotFound {
		r.unknown.Set(hash, a, a.cost())
	} else {
		r.keepSoon(a)
	}
	return a, nil
}

// keep puts an answer about a project into ristretto.
func (r *Resolver) keep(a *Answer) {
	if !r.known.Set(cacheKey(a.hash, a.form), a, a.cost()) {
		r.front.drop(a)
	} else if a.seen.project != nil {
		a.seen.project.holders.Add(1)
	}
}

// left is called with each answer that leaves ristretto.
func (r *Resolver) left(a *Answer) {
	r.front.drop(a)
	if a.seen.project != nil {
		a.seen.project.holders.Add(-1)
	}
}

func invalidDomain(err error) *catalog.Error {
	e := &catalog.Error{Code: catalog.CodeValidation, Message: "the domain " + err.Error()}
	e.Problems.Addf("domain", "%s", err)
	return e
}

// readError hides what happened to the store from callers; the log and Degraded tell it.
func readError(err error) error {
	var ce *catalog.Error
	if errors.As(err, &ce) {
		return ce
	}
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: "the store cannot be read at the moment"}
}
