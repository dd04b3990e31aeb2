package hcledit

import (
	"fmt"
	"reflect"
	"slices"

	"fingerpost/resolver/catalog"
)

// A namedKind is how objects with a name and no project, such as keys, are merged.
type namedKind[T any] struct {
	kind   catalog.Kind
	name   func(*T) string
	fields func(*T) []catalog.Field
	// clashes lists the fields of an object that has changed on both sides, and that cannot be merged.
	clashes func(of catalog.Clash, was, live, proposed *T) []catalog.Clash
	merged  func(b, o, t *T) *T // t with what changes from b to o; b may be nil
	add     func(src []byte, o *T) ([]byte, error)
	change  func(src []byte, was, is *T) ([]byte, error)
	remove  func(src []byte, name string) ([]byte, error)
}

var mergedKeys = namedKind[catalog.Key]{kind: catalog.KindKey,
	name: func(k *catalog.Key) string { return k.Name }, fields: (*catalog.Key).AllFields,
	clashes: keyClashes, merged: mergedKey, add: AddKey,
	change: func(src []byte, was, is *catalog.Key) ([]byte, error) {
		src, err := RemoveKey(src, was.Name)
		if err != nil {
			return nil, err
		}
		return AddKey(src, is)
	}, remove: RemoveKey}

var mergedWebhooks = namedKind[catalog.Webhook]{kind: catalog.KindWebhook,
	name: func(w *catalog.Webhook) string { return w.Name }, fields: (*catalog.Webhook).AllFields,
	clashes: func(of catalog.Clash, was, live, proposed *catalog.Webhook) []catalog.Clash {
		return catalog.ClashesOf(of, was.AllFields(), live.AllFields(), proposed.AllFields())
	}, merged: mergedWebhook, add: AddWebhook, change: ChangeWebhook, remove: RemoveWebhook}

var mergedLogins = namedKind[catalog.Login]{kind: catalog.KindLogin,
	name: func(l *catalog.Login) string { return l.Name }, fields: (*catalog.Login).AllFields,
	clashes: loginClashes, merged: mergedLogin, add: AddLogin, change: ChangeLogin, remove: RemoveLogin}

var mergedInbounds = namedKind[catalog.Inbound]{kind: catalog.KindInbound,
	name: func(b *catalog.Inbound) string { return b.Name }, fields: (*catalog.Inbound).AllFields,
	clashes: func(of catalog.Clash, was, live, proposed *catalog.Inbound) []catalog.Clash {
		return catalog.ClashesOf(of, was.AllFields(), live.AllFields(), proposed.AllFields())
	}, merged: mergedInbound, add: AddInbound, change: ChangeInbound, remove: RemoveInbound}

// keyClashes lists the fields of a key that both have changed. If they have changed different ones, it lists those that
// differ: a key changes as a whole.
func keyClashes(of catalog.Clash, was, live, proposed *catalog.Key) []catalog.Clash {
	if list := catalog.ClashesOf(of, was.AllFields(), live.AllFields(), proposed.AllFields()); len(list) > 0 {
		return list
	}
	return catalog.ClashesOf(of, nil, live.AllFields(), proposed.AllFields())
}

// mergeNamed returns the step that makes the edit of the objects of a namedKind.
func mergeNamed[T any](m *merge, of *namedKind[T], before, after, theirs []T) (step func([]byte) ([]byte, error)) {
	var steps []func(src []byte) ([]byte, error)
	clash := func(o *T) catalog.Clash { return catalog.Clash{Kind: of.kind, Object: of.name(o)} }
	same := func(a, b *T) bool { return len(catalog.FieldChanges(of.fields(a), of.fields(b))) == 0 }
	at := func(list []T, name string) *T {
		if i := slices.IndexFunc(list, func(o T) bool { return of.name(&o) == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	change := func(t, want *T) {
		m.writesSecrets(string(of.kind)+" "+of.name(want), of.fields(t), of.fields(want))
		steps = append(steps, func(src []byte) ([]byte, error) { return of.change(src, t, want) })
	}
	for i := range after {
		o := &after[i]
		name := of.name(o)
		b, t := at(before, name), at(theirs, name)
		switch {
		case b != nil && same(b, o), t != nil && same(t, o):
		case b == nil && t == nil:
			m.writesSecrets(string(of.kind)+" "+name, nil, of.fields(o))
			steps = append(steps, func(src []byte) ([]byte, error) { return of.add(src, o) })
		case t == nil:
			m.clash([]catalog.Clash{clash(o)}, "%s %s, which is gone there", of.kind, name)
		case m.force || b != nil && same(b, t):
			change(t, of.merged(b, o, t))
		case b == nil:
			m.clash(catalog.ClashesOf(clash(o), nil, of.fields(t), of.fields(o)), "%s %s", of.kind, name)
		default:
			if list := of.clashes(clash(o), b, t, o); len(list) > 0 {
				m.clash(list, "%s %s", of.kind, name)
			} else {
				change(t, of.merged(b, o, t))
			}
		}
	}
	for i := range before {
		b := &before[i]
		name := of.name(b)
		t := at(theirs, name)
		switch {
		case at(after, name) != nil || t == nil:
		case m.force || same(b, t):
			steps = append(steps, func(src []byte) ([]byte, error) { return of.remove(src, name) })
		default:
			m.clash(removedHere(clash(b), of.fields(b), of.fields(t)), "%s %s, which is removed here", of.kind, name)
		}
	}
	return func(src []byte) (_ []byte, err error) {
		for _, step := range steps {
			if src, err = step(src); err != nil {
				return nil, fmt.Errorf("%s: %w", of.kind, err)
			}
		}
		return src, nil
	}
}

// writesSecrets notes that fields are to be written in the place of others, for the sake of those in clear text.
func (m *merge) writesSecrets(of string, was, is []catalog.Field) {
	for i, f := range is {
		if was != nil && reflect.DeepEqual(was[i].Value, f.Value) {
			continue
		}
		switch v := f.Value.(type) {
		case *catalog.Secret:
			m.writes(of, f)
		case []catalog.Secret:
			for j := range v {
				m.writes(of, catalog.Field{Name: f.Name, Value: &v[j]})
			}
		}
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

// takeChange sets to to proposed where a proposal has changed what was there before.
func takeChange[T any](to *T, before, proposed T) {
	if !reflect.DeepEqual(before, proposed) {
		*to = proposed
	}
}

// mergedWebhook returns t with what changes from b to o; o, if both have added the webhook.
func mergedWebhook(b, o, t *catalog.Webhook) *catalog.Webhook {
	if b == nil {
		return o
	}
	want := t.Clone()
	takeChange(&want.URL, b.URL, o.URL)
	takeChange(&want.Secrets, b.Secrets, o.Secrets)
	takeChange(&want.Events, b.Events, o.Events)
	takeChange(&want.Projects, b.Projects, o.Projects)
	takeChange(&want.Active, b.Active, o.Active)
	return &want
}
