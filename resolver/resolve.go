package resolver

import (
	"hash/maphash"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// Resolve returns the project that a domain belongs to. raw is the query's value as sent, percent-decoded; it may
// contain a port and a trailing dot and is not kept. An unknown, inactive or suspended domain is an Answer with a Code.
// The error is a *catalog.Error: VALIDATION_ERROR with a problem on "domain" for an invalid host name, UNAVAILABLE if
// the store cannot be read. A hit does not allocate.
func (r *Resolver) Resolve(raw []byte, form Form) (*Answer, error) {
	var buf [hostname.MaxLen + 3]byte
	host, idn, err := hostname.Append(buf[:0], raw)
	if err != nil {
		return nil, invalidDomain(err)
	}
	hash := maphash.Bytes(r.seed, host)
	// Look up before validating an "xn--" name further: the cache contains only canonical names.
	if a := r.cached(host, hash, form); a != nil {
		return a, nil
	}
	if idn {
		name, err := hostname.FinishIDN(host)
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

// cached returns a fresh answer and counts the hit, or returns nil.
func (r *Resolver) cached(host []byte, hash uint64, form Form) *Answer {
	a := r.find(host, hash, form)
	switch {
	case a == nil:
	case a.Code == catalog.CodeNotFound:
		r.metrics.negativeHits.Add(1)
	default:
		r.metrics.hits.add(hash)
	}
	return a
}

// Cached reports whether the answer for a domain is in the cache, for people who ask why. It counts no hit.
func (r *Resolver) Cached(domain string) bool { return r.holds([]byte(domain), Nested) }

func (r *Resolver) holds(domain []byte, form Form) bool {
	var buf [hostname.MaxLen + 3]byte
	host, _, err := hostname.Append(buf[:0], domain)
	return err == nil && r.find(host, maphash.Bytes(r.seed, host), form) != nil
}

// find returns a fresh answer from ristretto, or nil.
func (r *Resolver) find(host []byte, hash uint64, form Form) *Answer {
	if !form.secret() {
		// Each form of an answer has a key of its own. Keys may collide, hence the comparison of form and host.
		if a, ok := r.known.Get(hash + uint64(form)); ok && a.form == form && a.host == string(host) && r.stamps.fresh(a) {
			return a
		}
	}
	// An unknown name is unknown in every form.
	if a, ok := r.unknown.Get(hash); ok && a.host == string(host) && r.stamps.fresh(a) {
		return a
	}
	return nil
}

// miss builds the answer. Calls for the same name at the same time share one store read (single flight).
func (r *Resolver) miss(host string, hash uint64, form Form) (*Answer, error) {
	r.metrics.misses.Add(1)
	if form.secret() {
		a, _, err := r.build(host, hash, form)
		return a, err
	}
	for range 3 {
		leads := false
		v, err, _ := r.flights.Do(flightKey(host, form), func() (any, error) {
			leads = true
			// Another flight may have ended since this call searched the cache.
			if a := r.find([]byte(host), hash, form); a != nil {
				return a, nil
			}
			return r.buildAndKeep(host, hash, form)
		})
		if err != nil {
			return nil, err
		}
		// The leader of the flight may have read the store before a change that was acknowledged before this call began.
		if a := v.(*Answer); leads || r.stamps.fresh(a) {
			return a, nil
		}
	}
	return r.buildAndKeep(host, hash, form)
}

// flightKey identifies the store read for a host in a form. No host contains the form's byte.
func flightKey(host string, form Form) string { return host + string(rune(form)) }

func (r *Resolver) buildAndKeep(host string, hash uint64, form Form) (*Answer, error) {
	a, keep, err := r.build(host, hash, form)
	if err == nil && keep {
		r.cacheAnswer(a)
	}
	return a, err
}

// cacheAnswer puts an answer into ristretto, which may drop it: then the next call for the name reads the store again.
// Ristretto inserts on a goroutine of its own. cacheAnswer waits for it, so that the calls that come after the flight
// find the answer: on a busy machine a herd of 10,000 calls read the store up to 800 times without that.
func (r *Resolver) cacheAnswer(a *Answer) {
	if a.Code == catalog.CodeNotFound {
		r.unknown.Set(a.hash, a, a.cost())
		r.unknown.Wait()
		return
	}
	if r.known.Set(a.hash+uint64(a.form), a, a.cost()) {
		a.seen.project.holders.Add(1)
	}
	r.known.Wait()
}

// left is called for each answer that leaves ristretto. a is nil where ristretto evicts the same key twice: its sample
// of keys may hold one twice when one answer pushes out several.
func (r *Resolver) left(a *Answer) {
	if a != nil && a.seen.project != nil {
		a.seen.project.holders.Add(-1)
	}
}

func invalidDomain(err error) *catalog.Error {
	e := &catalog.Error{Code: catalog.CodeValidation, Message: "the domain " + err.Error()}
	e.Problems.Addf("domain", "%s", err)
	return e
}
