package resolver

import (
	"maps"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// A Key is a declared API key with its projects resolved.
type Key struct {
	catalog.Key
	// projects are the ids of the projects that the key's slugs named when the KeySet was made; nil: every project. A
	// request that holds a Key while a slug moves to another project keeps its project.
	projects map[int64]struct{}
	owners   *owners    // knows the projects of the key's owner, as they are now
	person   *personKey // nil: it has its permissions on all of its projects
}

// Covers reports whether the key is valid for the project with that id.
func (k *Key) Covers(project int64) bool {
	if k.projects == nil {
		return true
	}
	_, listed := k.projects[project]
	return listed || k.Owner != "" && k.owners.has(k.Owner, project)
}

// Names reports whether the key is for every project or lists the slug.
func (k *Key) Names(slug string) bool { return k.projects == nil || slices.Contains(k.Projects, slug) }

// EveryProject reports whether the key is not bound to projects.
func (k *Key) EveryProject() bool { return k.projects == nil }

// ProjectIDs lists the projects that the key is bound to, ascending; nil means every project.
func (k *Key) ProjectIDs() []int64 {
	if k.projects == nil {
		return nil
	}
	var owned []int64
	if k.Owner != "" {
		owned = k.owners.ids(k.Owner)
	}
	ids := slices.AppendSeq(make([]int64, 0, len(k.projects)+len(owned)), maps.Keys(k.projects))
	ids = append(ids, owned...)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// SameReach reports whether both keys cover the same projects, whatever their owner has.
func (k *Key) SameReach(o *Key) bool {
	return k.EveryProject() == o.EveryProject() && k.Owner == o.Owner && maps.Equal(k.projects, o.projects)
}

// A KeySet is all keys at one moment. It is immutable.
type KeySet struct {
	byID    map[string]*Key
	guests  map[string]*Key  // found by Lookup alone, see AddGuestKey and AddPersonKey
	logins  []catalog.Login  // whose rules decide what persons may do
	slugs   map[string]int64 // every slug that a ListHolder lists → the project that has it, 0 for none
	unknown []catalog.UnknownSlug
	ends    []time.Time // of the keys that have one, in order
}

// newKeySet binds the keys to the projects that their slugs name. idOf returns 0 for an unused slug.
func newKeySet(keys []*catalog.Key, o *owners, idOf func(slug string) (int64, error)) (*KeySet, error) {
	set := &KeySet{byID: make(map[string]*Key, len(keys)), slugs: map[string]int64{}}
	for _, k := range keys {
		key := &Key{Key: *k, owners: o}
		if k.Projects != nil {
			key.projects = make(map[int64]struct{}, len(k.Projects))
		}
		err := set.bind(k.Projects, catalog.ListHolder{Kind: catalog.KindKey, Name: k.Name}, idOf,
			func(project int64) { key.projects[project] = struct{}{} })
		if err != nil {
			return nil, err
		}
		set.byID[k.ID] = key
		if !k.ExpiresAt.IsZero() {
			set.ends = append(set.ends, k.ExpiresAt)
		}
	}
	slices.SortFunc(set.ends, time.Time.Compare)
	return set, nil
}

// bind calls found with the projects that a list of slugs names, and notes the slugs that no project has.
func (s *KeySet) bind(list []string, of catalog.ListHolder, idOf func(slug string) (int64, error),
	found func(project int64)) error {
	for _, slug := range slices.Compact(slices.Sorted(slices.Values(list))) {
		id, known := s.slugs[slug]
		if !known {
			var err error
			if id, err = idOf(slug); err != nil {
				return err
			}
			s.slugs[slug] = id
		}
		if id == 0 {
			s.unknown = append(s.unknown, catalog.UnknownSlug{ListHolder: of, Slug: slug})
		} else {
			found(id)
		}
	}
	return nil
}

// bindLists notes the slugs that webhooks, logins and inbound blocks list: those are renamed with their projects, as those
// of keys are.
func (s *KeySet) bindLists(d *catalog.Declared, idOf func(slug string) (int64, error)) error {
	for of, list := range d.Lists() {
		if err := s.bind(list, of, idOf, func(int64) {}); err != nil {
			return err
		}
	}
	return nil
}

// Lookup returns the key with that public id, or nil. It does not allocate.
func (s *KeySet) Lookup(id []byte) *Key {
	if k := s.byID[string(id)]; k != nil {
		return k
	}
	return s.guests[string(id)]
}

// Len returns the number of keys.
func (s *KeySet) Len() int { return len(s.byID) }

// All lists the keys, ordered by name.
func (s *KeySet) All() []*Key {
	return slices.SortedFunc(maps.Values(s.byID), func(a, b *Key) int { return strings.Compare(a.Name, b.Name) })
}

// Named returns the key with that name, or nil.
func (s *KeySet) Named(name string) *Key {
	for _, k := range s.byID {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// rebinds reports whether a change moved or removed a slug that a catalog.ListHolder lists.
func (s *KeySet) rebinds(e *store.Effect) bool {
	if len(s.slugs) == 0 {
		return false
	}
	for i := range e.Projects {
		p := &e.Projects[i]
		_, named := s.slugs[p.Slug]
		_, was := s.slugs[p.Was]
		if (named || was) && (p.Gone || p.Was != p.Slug) {
			return true
		}
	}
	return e.Many
}

// UnknownSlugs lists the slugs that a catalog.ListHolder lists and no project has. The list is shared until it
// changes, and must not be modified.
func (r *Resolver) UnknownSlugs() []catalog.UnknownSlug { return r.settled.Load().keys.unknown }

// NextKeyEnd returns when the first of the keys that are good now ends, zero if none of them has an end.
func (r *Resolver) NextKeyEnd(now time.Time) time.Time {
	ends := r.settled.Load().keys.ends
	if i, _ := slices.BinarySearchFunc(ends, now.Add(1), time.Time.Compare); i < len(ends) {
		return ends[i]
	}
	return time.Time{}
}

// KeyNames lists the names of all keys.
func (r *Resolver) KeyNames() (names []string) {
	for _, k := range r.settled.Load().keys.byID {
		names = append(names, k.Name)
	}
	return names
}

// ListsNaming lists those whose lists hold the slug.
func (r *Resolver) ListsNaming(slug string) (holders []catalog.ListHolder) {
	s := r.settled.Load()
	if _, named := s.keys.slugs[slug]; !named {
		return nil
	}
	for _, k := range s.keys.byID {
		if slices.Contains(k.Projects, slug) {
			holders = append(holders, catalog.ListHolder{Kind: catalog.KindKey, Name: k.Name})
		}
	}
	return append(holders, listsNaming(s.lists(), slug)...)
}

func listsNaming(d *catalog.Declared, slug string) (holders []catalog.ListHolder) {
	for of, list := range d.Lists() {
		if slices.Contains(list, slug) {
			holders = append(holders, of)
		}
	}
	return holders
}

// Webhooks lists the declared webhooks by name. The list is shared: do not change it.
func (r *Resolver) Webhooks() []catalog.Webhook { return r.settled.Load().webhooks }

// Logins lists the declared logins by name. The list is shared: do not change it.
func (r *Resolver) Logins() []catalog.Login { return r.settled.Load().logins }

// Inbounds lists the declared inbound blocks by name. The list is shared: do not change it.
func (r *Resolver) Inbounds() []catalog.Inbound { return r.settled.Load().inbounds }
