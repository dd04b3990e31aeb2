package resolver

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// maxPrepared is how many answers are made ready before a large change: 180 MiB for as long as it takes, and more than nine
// in ten questions of a usual day.
const maxPrepared = 128 << 10

// prepare builds the answers that are asked for most as a large change is going to make them, so that the moment in which
// it makes all of them stale is not one in which all of them are missing. They are not served before place.
func (r *Resolver) prepare(next *store.Preview) (prepared []*Answer) {
	b := &building{r: r}
	for i, had := range r.front.busiest(maxPrepared) {
		if i%4 == 3 {
			next.Rest()
		}
		b.host, b.form = had.host, had.form
		// All wildcards are tried, since the change may bring the first one. What cannot be built now is built when it is asked for.
		if b.read(next, true, r.settledDefaults) != nil || b.err != nil || !b.found {
			continue
		}
		a := b.answer
		a.hash, a.form = had.hash, had.form
		a.byName, a.ProjectID = !b.domain.Wildcard(), b.project.Project.ID
		prepared = append(prepared, a)
	}
	return prepared
}

// place puts prepared answers into the cache. The change that they were made for has been committed and has raised its
// stamps, and no other has begun since (the caller holds applying): that they read the stamps only now, after the store,
// makes no difference.
func (r *Resolver) place(prepared []*Answer) {
	for _, a := range prepared {
		s := r.stamps.see(a.hash)
		r.stamps.seeProject(&s, a.ProjectID)
		a.seen = s
		a.confirmed.Store(s.epoch)
		r.keep(a)
		r.front.put(cacheKey(a.hash, a.form), a)
	}
}

// keep puts an answer about a project into ristretto.
func (r *Resolver) keep(a *Answer) {
	if r.known.Set(cacheKey(a.hash, a.form), a, a.cost()) && a.seen.project != nil {
		a.seen.project.holders.Add(1)
	}
}

// busiest returns up to n answers, those that are asked for most first. They may be stale.
func (f *front) busiest(n int) (all []*Answer) {
	there := make(map[*Answer]bool, n)
	add := func(a *Answer) {
		if a != nil && a.Code != catalog.CodeNotFound && len(all) < n && !there[a] {
			there[a] = true
			all = append(all, a)
		}
	}
	for i := range f.near {
		add(f.near[i].answer.Load())
	}
	for i := range f.far {
		if len(all) == n {
			break
		}
		add(f.far[i].Load())
	}
	return all
}
