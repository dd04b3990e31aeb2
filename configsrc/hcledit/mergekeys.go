package hcledit

import (
	"slices"

	"fingerpost/resolver/catalog"
)

// keyClashes lists the fields of a key that both have changed. If they have changed different ones, it lists those that
// differ: a key changes as a whole.
func keyClashes(of catalog.Clash, was, live, proposed *catalog.Key) []catalog.Clash {
	if list := catalog.ClashesOf(of, was.AllFields(), live.AllFields(), proposed.AllFields()); len(list) > 0 {
		return list
	}
	return catalog.ClashesOf(of, nil, live.AllFields(), proposed.AllFields())
}

// keys returns the step that makes the edit of keys. A key that changes is removed and added.
func (m *merge) keys(before, after, theirs []catalog.Key) (step func([]byte) ([]byte, error)) {
	var remove []string
	var add []*catalog.Key
	of := func(k *catalog.Key) catalog.Clash { return catalog.Clash{Kind: catalog.KindKey, Object: k.Name} }
	same := func(a, b *catalog.Key) bool { return len(catalog.FieldChanges(a.AllFields(), b.AllFields())) == 0 }
	at := func(list []catalog.Key, name string) *catalog.Key {
		if i := slices.IndexFunc(list, func(k catalog.Key) bool { return k.Name == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	for i := range after {
		o := &after[i]
		b, t := at(before, o.Name), at(theirs, o.Name)
		switch {
		case b != nil && same(b, o), t != nil && same(t, o):
		case b == nil && t == nil:
			add = append(add, o)
		case t == nil:
			m.clash([]catalog.Clash{of(o)}, "key %s, which is gone there", o.Name)
		case m.force || b != nil && same(b, t):
			remove, add = append(remove, o.Name), append(add, mergedKey(b, o, t))
		case b == nil:
			m.clash(catalog.ClashesOf(of(o), nil, t.AllFields(), o.AllFields()), "key %s", o.Name)
		default:
			m.clash(keyClashes(of(o), b, t, o), "key %s", o.Name)
		}
	}
	for i := range before {
		b := &before[i]
		t := at(theirs, b.Name)
		switch {
		case at(after, b.Name) != nil || t == nil:
		case m.force || same(b, t):
			remove = append(remove, b.Name)
		default:
			m.clash(removedHere(of(b), b.AllFields(), t.AllFields()), "key %s, which is removed here", b.Name)
		}
	}
	return func(src []byte) ([]byte, error) {
		var err error
		for _, name := range remove {
			if src, err = RemoveKey(src, name); err != nil {
				return nil, err
			}
		}
		for _, k := range add {
			if src, err = AddKey(src, k); err != nil {
				return nil, err
			}
		}
		return src, nil
	}
}

// mergedKey returns t with what changes from b to o; o, if both have added the key. Otherwise a key that was rotated since
// would get its former text again.
func mergedKey(b, o, t *catalog.Key) *catalog.Key {
	if b == nil {
		return o
	}
	want := *t
	if b.ID != o.ID || b.Hash != o.Hash { // two halves of one text
		want.ID, want.Hash = o.ID, o.Hash
	}
	if b.Allow != o.Allow {
		want.Allow = o.Allow
	}
	if b.Owner != o.Owner || (b.Projects == nil) != (o.Projects == nil) || !slices.Equal(b.Projects, o.Projects) {
		want.Owner, want.Projects = o.Owner, o.Projects // what the key covers: with an owner, the list means another thing
	}
	if !b.ExpiresAt.Equal(o.ExpiresAt) {
		want.ExpiresAt = o.ExpiresAt
	}
	return &want
}
