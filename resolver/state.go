package resolver

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// A State reads what the files declare: the live state, which is a Resolver's, or that of an Overlay. Its lookups report
// a missing object as a *catalog.Error NOT_FOUND, and an unreadable store as UNAVAILABLE; what they return is the
// caller's.
type State struct{ of source }

// A source is where a State reads.
type source interface {
	reads() *store.State  // what answers come from
	newest() *store.State // what the next change follows; while a new store is being filled, that one
	projectIDs() ([]int64, error)
	indexes() (*indexes, error)
	// bring is called before a project is shown. changed: it may be another one now.
	bring(project catalog.UUID) (changed bool, err error)
}

// live is the source of a Resolver.
type live struct{ *Resolver }

func (l live) reads() *store.State              { return &l.stores.Reads().State }
func (l live) newest() *store.State             { return &l.stores.Writes().State }
func (l live) projectIDs() ([]int64, error)     { return l.ids.all(&l.State) }
func (l live) indexes() (*indexes, error)       { return l.finder.indexes(&l.State) }
func (l live) bring(catalog.UUID) (bool, error) { return false, nil }
