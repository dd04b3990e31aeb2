package resolver

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// maxPrepared is how many answers are made ready before a large change: 180 MiB for as long as it takes, and more than nine
// in ten questions of a usual day.
const maxPrepared = 128 << 10

// prepare builds the answers that are asked for most as a large change is going to make them, so that the moment in which
// it makes all of them stale is not one in which all of them are missing. They are not served before getReady.
func (r *Resolver) prepare(next *store.Preview) (prepared []*Answer) {
	b := &building{r: r}
	busiest := r.front.busiest(maxPrepared)
	prepared = make([]*Answer, 0, len(busiest))
	for _, had := range busiest {
		b.host, b.form = had.host, had.form
		// All wildcards are tried, since the change may bring the first one. What cannot be built now is built when it is asked for.
		if b.read(next, true, r.settledDefaults) != nil || !b.found {
			continue
		}
		a := b.answer
		a.hash, a.form = had.hash, had.form
		a.byName, a.ProjectID = !b.domain.Wildcard(), b.project.Project.ID
		prepared = append(prepared, a)
	}
	if len(prepared) == 0 {
		return nil
	}
	return prepared
}

// ready are prepared answers on their way into the cache, by cacheKey.
type ready map[uint64]*Answer

// getReady makes prepared answers ready to be served from the moment at which the change ends. It has been committed and
// has raised its stamps, and no other has begun since (the caller holds applying): that they read the stamps only now,
// after the store, makes no difference.
func (r *Resolver) getReady(prepared []*Answer) {
	if len(prepared) == 0 {
		return
	}
	all := make(ready, len(prepared))
	for _, a := range prepared {
		s := r.stamps.see(a.hash)
		s.epoch = r.stamps.begun.Load()
		r.stamps.seeProject(&s, a.ProjectID)
		a.seen = s
		a.confirmed.Store(s.epoch)
		all[cacheKey(a.hash, a.form)] = a
	}
	r.ready.Store(&all)
}

// place puts what is ready into the cache. That takes a while, so it serves from where it is until then.
func (r *Resolver) place(prepared []*Answer) {
	for _, a := range prepared {
		r.front.put(cacheKey(a.hash, a.form), a)
		r.keep(a)
	}
	r.ready.Store(nil)
}

// isReady returns the prepared answer to host, if there is one and the change that it was made for has ended.
func (r *Resolver) isReady(key uint64, host []byte, form Form) *Answer {
	all := r.ready.Load()
	if all == nil {
		return nil
	}
	a := (*all)[key]
	if a == nil || !a.is(host, form) || a.seen.epoch > r.stamps.epoch.Load() || !r.stamps.fresh(a) {
		return nil
	}
	return a
}

// keep puts an answer about a project into ristretto.
func (r *Resolver) keep(a *Answer) {
	if !r.known.Set(cacheKey(a.hash, a.form), a, a.cost()) {
		r.front.drop(a)
	} else if a.seen.project != nil {
		a.seen.project.holders.Add(1)
	}
}

// busiest returns up to n answers, those that are asked for most first. They may be stale.
func (f *front) busiest(n int) (all []*Answer) {
	add := func(a *Answer) bool {
		if a == nil || a.Code == catalog.CodeNotFound || len(all) == n {
			return false
		}
		all = append(all, a)
		return true
	}
	all = make([]*Answer, 0, min(n, len(f.near)+len(f.far)))
	near := make(map[*Answer]bool, len(f.near)) // nearly all of them are in far, too
	for i := range f.near {
		if a := f.near[i].answer.Load(); add(a) {
			near[a] = true
		}
	}
	for i := range f.far {
		if a := f.far[i].Load(); !near[a] {
			add(a)
		}
	}
	return all
}
