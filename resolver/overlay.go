package resolver

import (
	"slices"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// An Overlay is the State of a proposal (api/README.md, Proposals): what is live, with other declarations in some files.
// Nothing of it is live, and resolve never answers from it. It is for one call, and not for concurrent use: what is live
// may change between two reads.
//
// Its files are applied to a batch over the store that is never committed, so that every read of the live state is one
// of the Overlay, too. The cost of one follows the files that are put into it.
type Overlay struct {
	State
	live  *Resolver
	store *store.Overlay

	touched  map[int64]struct{} // projects that the files add, change or remove; nil: too many to name
	defaults *catalog.Defaults
	sealing  *catalog.Sealing
	keys     bool // the files add, change or remove keys
	webhooks bool // likewise
	logins   bool // likewise
	inbounds bool // likewise
	own      map[catalog.UUID]bool

	// Bring, if set, is called before a project is shown that none of the files declares: the branch may have another file
	// of it than is live, see edits.Overlay. It may put files.
	Bring func(project catalog.UUID) error
}

// Overlay returns an Overlay without files, which the caller closes. at is the time of what differs from what is live.
func (r *Resolver) Overlay(at time.Time) (*Overlay, error) {
	st, err := r.stores.Reads().Overlay(at)
	if err != nil {
		return nil, catalog.Unreadable(err)
	}
	o := &Overlay{live: r, store: st, touched: map[int64]struct{}{}, own: map[catalog.UUID]bool{},
		defaults: r.Defaults(), sealing: r.Sealing()}
	o.State = State{of: overlaid{o}}
	return o, nil
}

// Close releases the Overlay.
func (o *Overlay) Close() error { return o.store.Close() }

// Put makes a change of files part of the Overlay. A file without a Row is gone, or cannot be read. The Overlay reads the
// declarations and does not keep them.
func (o *Overlay) Put(files ...catalog.FileChange) error {
	e, err := o.store.Put(files...)
	if err != nil {
		return catalog.Unreadable(err)
	}
	for i := range files {
		if d := files[i].Declared; d != nil {
			for j := range d.Projects {
				o.own[d.Projects[j].Project.UUID] = true
			}
		}
	}
	if o.touched != nil {
		for i := range e.Projects {
			o.touched[e.Projects[i].ID] = struct{}{}
		}
		for i := range e.Domains {
			o.touched[e.Domains[i].Project] = struct{}{}
		}
	}
	if e.Many {
		o.touched = nil
	}
	o.keys, o.webhooks, o.logins = o.keys || e.Keys, o.webhooks || e.Webhooks, o.logins || e.Logins
	o.inbounds = o.inbounds || e.Inbounds
	if e.Defaults {
		o.defaults, err = o.store.Defaults()
	}
	if err == nil && e.Sealing {
		o.sealing, err = o.store.Sealing()
	}
	return storeRead(err)
}

// overlaid is the source of an Overlay.
type overlaid struct{ *Overlay }

func (o overlaid) reads() *store.State  { return &o.store.State }
func (o overlaid) newest() *store.State { return &o.store.State }

// projectIDs reads the ids once for each list: a list of a proposal is rare.
func (o overlaid) projectIDs() ([]int64, error) { return o.readProjectIDs() }

// indexes returns the live indexes with the content that the touched projects have here.
func (o overlaid) indexes() (*indexes, error) {
	if o.touched == nil {
		return buildIndexes(&o.State)
	}
	x, err := o.live.finder.indexes(&o.live.State)
	if err != nil || len(o.touched) == 0 {
		return x, err
	}
	return x.reread(&o.State, o.touched)
}

func (o overlaid) bring(project catalog.UUID) (changed bool, err error) {
	if o.Bring == nil || o.own[project] {
		return false, nil
	}
	o.own[project] = true
	return true, o.Bring(project)
}

// Defaults returns the defaults block, nil if there is none. Sealing is likewise.
func (o *Overlay) Defaults() *catalog.Defaults { return o.defaults }

// Sealing returns the sealing block, nil if there is none.
func (o *Overlay) Sealing() *catalog.Sealing { return o.sealing }

// Named returns what is noted of a domain's name: notes are live.
func (o *Overlay) Named(name string) (value []byte, found bool, err error) { return o.live.Named(name) }

// LastGood returns the content of a file, nil when there is none.
func (o *Overlay) LastGood(path string) ([]byte, error) {
	b, err := o.store.LastGood(path)
	return b, storeRead(err)
}

// KeyNames lists the names of all keys.
func (o *Overlay) KeyNames() (names []string) {
	if !o.keys {
		return o.live.KeyNames()
	}
	o.eachKey(func(k *catalog.Key) { names = append(names, k.Name) })
	return names
}

// ListsNaming lists those whose lists hold the slug.
func (o *Overlay) ListsNaming(slug string) (holders []catalog.ListHolder) {
	if !o.keys && !o.webhooks && !o.logins && !o.inbounds {
		return o.live.ListsNaming(slug)
	}
	o.eachKey(func(k *catalog.Key) {
		if slices.Contains(k.Projects, slug) {
			holders = append(holders, catalog.ListHolder{Kind: catalog.KindKey, Name: k.Name})
		}
	})
	return append(holders, listsNaming(o.lists(), slug)...)
}

// lists returns the objects that have lists of projects, except keys.
func (o *Overlay) lists() *catalog.Declared {
	return &catalog.Declared{Webhooks: o.Webhooks(), Logins: o.Logins(), Inbounds: o.Inbounds()}
}

// Webhooks lists the webhooks by name: those that are live, if the store cannot be read. Logins and Inbounds are likewise.
func (o *Overlay) Webhooks() []catalog.Webhook {
	return overlaidList(o.webhooks, o.store.Webhooks, o.live.Webhooks)
}

// Logins lists the logins by name.
func (o *Overlay) Logins() []catalog.Login {
	return overlaidList(o.logins, o.store.Logins, o.live.Logins)
}

// Inbounds lists the inbound blocks by name.
func (o *Overlay) Inbounds() []catalog.Inbound {
	return overlaidList(o.inbounds, o.store.Inbounds, o.live.Inbounds)
}

// overlaidList returns what the proposal's store has of a kind that the proposal touches, and else what is live.
func overlaidList[T any](touched bool, each func(func(*T) bool) error, live func() []T) (list []T) {
	if touched && each(func(v *T) bool { list = append(list, *v); return true }) == nil {
		return list
	}
	return live()
}

// eachKey calls f with all keys; with those that are live, if the store cannot be read.
func (o *Overlay) eachKey(f func(*catalog.Key)) {
	var keys []*catalog.Key
	err := o.store.Keys(func(k *catalog.Key) bool {
		keys = append(keys, k)
		return true
	})
	if err != nil {
		keys = nil
		for _, k := range o.live.Keys().All() {
			keys = append(keys, &k.Key)
		}
	}
	for _, k := range keys {
		f(k)
	}
}
