package trail

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// ahead is what the trail says of objects whose last change the store may not have: it lost its last commits in a
// crash, or a commit failed. A change of such an object is told from what the trail says, not from what the store has:
// then a change that the trail has already gives no second entry.
type ahead map[key]*audited

// A key identifies an object of the trail.
type key struct {
	noun    string // the first part of the action
	project int64
	object  string // "" where there is one
}

// An audited is what the trail says of one object.
type audited struct {
	object string // of the last entry
	exists bool
	whole  bool           // fields has all fields with a value
	fields map[string]any // the last values
	// The times of the object: of the entry that made it, zero if that is not among these, and of the last one.
	created, updated time.Time
}

// aSecret is the value of a secret in audited: it is not known.
type aSecret struct{}

func keyOf(e *catalog.AuditEntry) key {
	noun, _, _ := strings.Cut(e.Action, ".")
	of := key{noun: noun, project: e.ProjectID}
	if catalog.KindOfNoun(noun).Named() {
		of.object = e.Object
	}
	return of
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.project, o.project), cmp.Compare(k.noun, o.noun), cmp.Compare(k.object, o.object))
}

func (a ahead) keys() []key {
	return slices.SortedFunc(maps.Keys(a), key.compare)
}

// add takes in an entry that follows those before.
func (a *ahead) add(e *catalog.AuditEntry) {
	of := keyOf(e)
	_, verb, _ := strings.Cut(e.Action, ".")
	if verb != "create" && verb != "update" && verb != "delete" && !catalog.IsRefinedUpdate(e.Action) {
		return
	}
	if *a == nil {
		*a = ahead{}
	}
	known := (*a)[of]
	switch {
	case verb == "create":
		known = &audited{exists: true, whole: true, fields: map[string]any{}, created: e.Time}
	case verb == "delete":
		known = &audited{}
	default:
		for _, c := range e.Changes {
			if was, is := c.Before.(string); is && (c.Field == "domain" || c.Field == "code") && of.object != "" {
				old := of
				old.object = was
				known = (*a)[old]
				delete(*a, old)
			}
		}
		if known == nil || !known.exists {
			known = &audited{exists: true, fields: map[string]any{}}
		}
	}
	for _, c := range e.Changes {
		switch {
		case verb == "delete", c.Field == catalog.AuditReason:
		case c.Secret:
			known.fields[c.Field] = aSecret{}
		default:
			known.fields[c.Field] = c.After
		}
	}
	known.object, known.updated = e.Object, e.Time
	(*a)[of] = known
}

// same reports whether an object is what the trail says, as far as that is known: not the values of secrets.
func (s *audited) same(is []catalog.Field) bool {
	if !s.exists {
		return false
	}
	left := maps.Clone(s.fields)
	for _, c := range catalog.AuditChanges(nil, is) {
		told, known := left[c.Field]
		delete(left, c.Field)
		if _, secret := told.(aSecret); known && !secret && !reflect.DeepEqual(told, c.After) || !known && s.whole {
			return false
		}
	}
	for _, told := range left { // fields without a value
		if _, secret := told.(aSecret); told != nil && !secret {
			return false
		}
	}
	return true
}

// rebase makes an entry, which tells of a change from what the store has, one that tells of the change from what the
// trail says. It returns false if nothing is left to tell. after has the object's fields now, nil if it is gone.
func (s *audited) rebase(e *catalog.AuditEntry, after func() []catalog.Field) bool {
	var is []catalog.FieldChange
	if after != nil {
		is = catalog.AuditChanges(nil, after())
	}
	noun, verb, _ := strings.Cut(e.Action, ".")
	switch gone := after == nil; {
	case catalog.KindOfNoun(noun).Single():
	case !s.exists && gone:
		return false
	case !s.exists:
		verb = "create"
	case gone:
		verb = "delete"
	case !catalog.IsRefinedUpdate(e.Action):
		verb = "update"
	}
	reason := slices.IndexFunc(e.Changes, func(c catalog.FieldChange) bool { return c.Field == catalog.AuditReason })
	told := e.Changes
	if reason >= 0 {
		told = slices.Delete(slices.Clone(told), reason, reason+1)
	}
	if told = s.changes(told, is); reason >= 0 && len(told) > 0 {
		told = append(told, e.Changes[reason])
	}
	e.Changes = told
	e.Action = noun + "." + verb
	return len(e.Changes) > 0 || verb != "update" && !catalog.IsRefinedUpdate(e.Action)
}

// changes lists the fields whose values differ between what the trail says and is, the values now. told has the changes
// from what the store has.
func (s *audited) changes(told, is []catalog.FieldChange) (changes []catalog.FieldChange) {
	was := map[string]catalog.FieldChange{} // by field: Before and Secret count
	if s.exists && !s.whole {
		for _, c := range is {
			was[c.Field] = catalog.FieldChange{Before: c.After, Secret: c.Secret}
		}
		for _, c := range told {
			was[c.Field] = c
		}
	}
	secretsTold := map[string]bool{}
	for field, v := range s.fields {
		if _, secret := v.(aSecret); secret {
			secretsTold[field] = true
			continue
		}
		was[field] = catalog.FieldChange{Before: v}
	}
	tells := func(field string) *catalog.FieldChange {
		i := slices.IndexFunc(told, func(c catalog.FieldChange) bool { return c.Field == field })
		if i < 0 {
			return nil
		}
		return &told[i]
	}
	add := func(field string, after any, secret bool) {
		before := was[field]
		delete(was, field)
		switch c := tells(field); {
		case secretsTold[field]: // that it has changed is all that an entry could tell
		case secret || before.Secret:
			if c != nil || s.whole {
				changes = append(changes, catalog.FieldChange{Field: field, Secret: true})
			}
		case !reflect.DeepEqual(before.Before, after):
			changes = append(changes, catalog.FieldChange{Field: field, Before: before.Before, After: after})
		}
	}
	for _, c := range is {
		add(c.Field, c.After, c.Secret)
	}
	for _, field := range slices.Sorted(maps.Keys(was)) {
		add(field, nil, false)
	}
	return changes
}
