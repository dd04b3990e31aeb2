package resolver

import "fingerpost/resolver/catalog"

// A Key is a declared API key, ready to be asked.
type Key struct {
	catalog.Key
	slugs map[string]struct{} // nil: every project
}

// Covers reports whether the key is good for the project of that slug.
func (k *Key) Covers(slug string) bool {
	if k.slugs == nil {
		return true
	}
	_, ok := k.slugs[slug]
	return ok
}

// EveryProject reports whether the key is not bound to some projects.
func (k *Key) EveryProject() bool { return k.slugs == nil }

// A KeySet is all keys of one moment. It never changes.
type KeySet struct{ byID map[string]*Key }

func newKeySet(keys []*catalog.Key) *KeySet {
	set := &KeySet{byID: make(map[string]*Key, len(keys))}
	for _, k := range keys {
		key := &Key{Key: *k}
		if k.Projects != nil {
			key.slugs = make(map[string]struct{}, len(k.Projects))
			for _, slug := range k.Projects {
				key.slugs[slug] = struct{}{}
			}
		}
		set.byID[k.ID] = key
	}
	return set
}

// Lookup returns the key with that public id, or nil. It does not allocate.
func (s *KeySet) Lookup(id []byte) *Key { return s.byID[string(id)] }

// Len is the number of keys.
func (s *KeySet) Len() int { return len(s.byID) }
