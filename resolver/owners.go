package resolver

import (
	"maps"
	"slices"
	"sync/atomic"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// owners knows which projects each owner has (api/README.md, Keys with an owner), once a key with an owner is declared.
// Readers take no lock: a key is checked on every request. A change of one project costs a copy of its owner's ids, of
// 8 bytes each.
type owners struct {
	table atomic.Pointer[map[string][]int64] // ids ascend; replaced, never changed; nil: no key has an owner
}

// has reports whether the project is one of the owner's.
func (o *owners) has(owner string, project int64) bool {
	_, found := slices.BinarySearch(o.ids(owner), project)
	return found
}

// ids returns the ascending ids of an owner's projects. The caller must not change them.
func (o *owners) ids(owner string) []int64 {
	if t := o.table.Load(); t != nil {
		return (*t)[owner]
	}
	return nil
}

// prepare reads all projects of a store if one of the keys has an owner and nobody has read them yet. The caller holds
// Resolver.applying.
func (o *owners) prepare(st *store.Store, keys *KeySet) error {
	owned := slices.ContainsFunc(keys.All(), func(k *Key) bool { return k.Owner != "" })
	switch {
	case !owned:
		o.table.Store(nil)
		return nil
	case o.table.Load() != nil:
		return nil
	}
	return o.build(st)
}

func (o *owners) build(st *store.Store) error {
	t := map[string][]int64{}
	err := st.EachProject(func(p *catalog.Project) bool {
		if p.Owner != nil {
			t[*p.Owner] = append(t[*p.Owner], p.ID)
		}
		return true
	})
	if err == nil {
		o.table.Store(&t)
	}
	return err
}

// noteEffect follows a change that st has committed. After an error no key has an owner's projects before prepare has
// read them. The caller holds Resolver.applying.
func (o *owners) noteEffect(st *store.Store, e *store.Effect) error {
	was := o.table.Load()
	switch {
	case was == nil:
		return nil
	case e.Many:
		o.forget()
		return o.build(st)
	}
	if !slices.ContainsFunc(e.Projects, func(p store.ProjectEffect) bool { return p.Owner != "" || p.Owned != "" }) {
		return nil
	}
	t := maps.Clone(*was)
	for i := range e.Projects {
		p := &e.Projects[i]
		if p.Owned != "" && (p.Gone || p.Owned != p.Owner) {
			t[p.Owned] = withID(t[p.Owned], p.ID, false)
		}
		if p.Owner != "" && !p.Gone {
			t[p.Owner] = withID(t[p.Owner], p.ID, true)
		}
	}
	o.table.Store(&t)
	return nil
}

// forget drops the table: another store is read now. The caller holds Resolver.applying.
func (o *owners) forget() { o.table.Store(nil) }

// withID returns ascending ids with or without one. It does not change ids.
func withID(ids []int64, id int64, with bool) []int64 {
	at, there := slices.BinarySearch(ids, id)
	switch {
	case with == there:
		return ids
	case with:
		return slices.Insert(slices.Clone(ids), at, id)
	}
	return slices.Delete(slices.Clone(ids), at, at+1)
}
