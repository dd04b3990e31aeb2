package resolver

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// ResolveTraced is Resolve for a traced request: the span shows how the cache did, and a read of the store is a step of
// its own. Resolve itself knows nothing of spans, so that a hit costs nothing for them.
func (r *Resolver) ResolveTraced(span *trace.Span, raw []byte, form Form) (*Answer, error) {
	hit := r.holds(raw, form)
	if !hit {
		defer span.Child("store.miss").End()
	}
	a, err := r.Resolve(raw, form)
	switch {
	case err != nil:
	case !hit:
		span.Set("fingerpost.cache", "miss")
	case a.Code == catalog.CodeNotFound:
		span.Set("fingerpost.cache", "negative_hit")
	default:
		span.Set("fingerpost.cache", "hit")
	}
	return a, err
}
