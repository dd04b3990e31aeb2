package transfer

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// compareNamed returns the changes that turn one list of a kind into the other; objects with the same name are the same.
func compareNamed[T any](kind catalog.Kind, have, want []T, name func(*T) string,
	diff func(have, want *T) []FieldChange) []Change {
	var c comparison
	byName := map[string]*T{}
	for i := range have {
		byName[name(&have[i])] = &have[i]
	}
	for i := range want {
		w := &want[i]
		if h := byName[name(w)]; h != nil {
			c.note(Changed, kind, name(w), diff(h, w))
		} else {
			c.note(Added, kind, name(w), diff(new(T), w))
		}
		delete(byName, name(w))
	}
	for i := range have {
		if byName[name(&have[i])] != nil {
			c.note(Removed, kind, name(&have[i]), nil)
		}
	}
	return c.changes
}

// compareKeys returns the changes that turn the keys of a store into those of the files. A hash counts as a secret.
func compareKeys(have, want []catalog.Key) []Change {
	return compareNamed(catalog.KindKey, have, want, func(k *catalog.Key) string { return k.Name }, keyFields)
}

func keyFields(have, want *catalog.Key) (fields []FieldChange) {
	add := func(name string, old, now any) {
		if !reflect.DeepEqual(old, now) {
			fields = append(fields, FieldChange{Field: name, Old: old, New: now})
		}
	}
	add("id", have.ID, want.ID)
	if have.Hash != want.Hash {
		fields = append(fields, FieldChange{Field: "hash", Secret: true})
	}
	add("allow", strings.Join(have.Allow.Words(), ", "), strings.Join(want.Allow.Words(), ", "))
	add("owner", textOrNil(have.Owner), textOrNil(want.Owner))
	add("projects", slugList(have.Projects), slugList(want.Projects))
	add("expires_at", moment(have.ExpiresAt), moment(want.ExpiresAt))
	return fields
}

// compareEdges returns the changes that turn the edges of a store into those of the files.
func compareEdges(have, want []catalog.Edge) []Change {
	return compareNamed(catalog.KindEdge, have, want, func(e *catalog.Edge) string { return e.Name }, edgeFields)
}

func edgeFields(have, want *catalog.Edge) []FieldChange {
	if have.PublicKey == want.PublicKey {
		return nil
	}
	return []FieldChange{{Field: "public_key", Old: have.PublicKey, New: want.PublicKey}}
}

func textOrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// slugList returns nil for every project.
func slugList(slugs []string) any {
	if slugs == nil {
		return nil
	}
	return strings.Join(slugs, ", ")
}

func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}

// compareDefaults returns the changes of the defaults block. A field that a block does not set is nil.
func compareDefaults(have, want *catalog.Defaults) []Change {
	var fields []FieldChange
	h, w := partsOf(have), partsOf(want)
	for i, part := range w {
		for k := range part.fields {
			f := FieldChange{Field: part.block + "." + catalog.Snake(part.fields[k].Name)}
			hadOne, hasOne := h[i].said.Has(k), part.said.Has(k)
			if !hadOne && !hasOne || hadOne && hasOne && part.fields[k].Same(h[i].fields[k]) {
				continue
			}
			if _, f.Secret = part.fields[k].Value.(*catalog.Secret); !f.Secret {
				if hadOne {
					f.Old = h[i].fields[k].Plain()
				}
				if hasOne {
					f.New = part.fields[k].Plain()
				}
			}
			fields = append(fields, f)
		}
	}
	return single(catalog.KindDefaults, have != nil, want != nil, fields)
}

type settingsPart struct {
	block  string
	fields []catalog.Field
	said   catalog.FieldSet
}

func partsOf(d *catalog.Defaults) [3]settingsPart {
	service, auth := catalog.NewServiceSettings(), catalog.NewAuthSettings()
	plain := catalog.SMTPConfig{Active: true}
	smtp, smtpSaid := plain, catalog.FieldSet(0)
	if d != nil && d.SMTP != nil {
		smtp = *d.SMTP
		smtp.Port = smtp.EffectivePort()
		for i, f := range smtp.Fields() {
			if !f.Same(plain.Fields()[i]) {
				smtpSaid = smtpSaid.With(i)
			}
		}
	}
	if d != nil && d.Service != nil {
		service = *d.Service
	}
	if d != nil && d.Auth != nil {
		auth = *d.Auth
	}
	return [3]settingsPart{
		{string(catalog.KindServiceSettings), service.Fields(), service.Said},
		{string(catalog.KindAuthSettings), auth.Fields(), auth.Said},
		{string(catalog.KindSMTPConfig), smtp.Fields(), smtpSaid},
	}
}

func compareSealing(have, want *catalog.Sealing) []Change {
	h, w := catalog.Sealing{}, catalog.Sealing{}
	if have != nil {
		h = *have
	}
	if want != nil {
		w = *want
	}
	var fields []FieldChange
	if !slices.Equal(h.Recipients, w.Recipients) {
		fields = append(fields, FieldChange{Field: "recipients", Old: strings.Join(h.Recipients, ", "),
			New: strings.Join(w.Recipients, ", ")})
	}
	if h.Require != w.Require {
		fields = append(fields, FieldChange{Field: "require", Old: h.Require, New: w.Require})
	}
	return single(catalog.KindSealing, have != nil, want != nil, fields)
}

// single returns the change of a block that occurs once in all files.
func single(kind catalog.Kind, had, has bool, fields []FieldChange) []Change {
	var c comparison
	switch {
	case had && has:
		c.note(Changed, kind, "", fields)
	case has:
		c.note(Added, kind, "", fields)
	case had:
		c.note(Removed, kind, "", nil)
	}
	return c.changes
}
