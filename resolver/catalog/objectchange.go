package catalog

import "slices"

// An ObjectChange is what differs between two states of one object.
type ObjectChange struct {
	Was, Is *Object // nil: there was none, or there is none any more
	// Fields are the fields that differ, in the order of the kind's table. Of an object that comes or goes they are those
	// with a value.
	Fields []FieldChange
	// Identity is what differs besides: "uuid", "id", and "said", which is the set of the lines that a block of settings
	// has. The audit trail does not tell it.
	Identity []FieldChange
}

// Changes lists what differs between two sets of declarations. It is the one description of a change: the audit trail,
// plans, commit subjects, the permission for a proposal and the report of an import are made from it. Projects are
// paired by UUID, what they hold by its name, a renamed domain by its id. The order is that of is; what is gone comes
// after its kin.
func Changes(was, is *Declared) (list []ObjectChange) {
	before := map[UUID]*ProjectConfig{}
	for i := range was.Projects {
		before[was.Projects[i].Project.UUID] = &was.Projects[i]
	}
	for i := range is.Projects {
		p := &is.Projects[i]
		list = append(list, ProjectChanges(before[p.Project.UUID], p)...)
		delete(before, p.Project.UUID)
	}
	for i := range was.Projects {
		if p := &was.Projects[i]; before[p.Project.UUID] == p {
			list = append(list, ProjectChanges(p, nil)...)
		}
	}
	return append(list, pairChanges(was.others(), is.others())...)
}

// ProjectChanges lists what differs between two states of a project, of which one may be nil.
func ProjectChanges(was, is *ProjectConfig) (list []ObjectChange) {
	object := func(p *ProjectConfig) *Object {
		if p == nil {
			return nil
		}
		o := p.Project.Object()
		return &o
	}
	if c := ChangeOf(object(was), object(is)); c.differs() {
		list = append(list, c)
	}
	return append(list, pairChanges(was.parts(), is.parts())...)
}

// SameValues reports whether two states of a project have the same fields, whatever their identities.
func SameValues(a, b *ProjectConfig) bool {
	return !slices.ContainsFunc(ProjectChanges(a, b), func(c ObjectChange) bool {
		return c.Was == nil || c.Is == nil || len(c.Fields) > 0
	})
}

// An objectKey tells the objects of a project, or those of none, apart.
type objectKey struct {
	kind Kind
	name string
	nth  int // of several with this name, which no accepted file has
}

func keysOf(objects []*Object) []objectKey {
	keys := make([]objectKey, len(objects))
	seen := map[objectKey]int{}
	for i, o := range objects {
		k := objectKey{kind: o.Kind, name: o.Name}
		keys[i] = objectKey{o.Kind, o.Name, seen[k]}
		seen[k]++
	}
	return keys
}

// pairChanges pairs objects by name, and domains that are left by their ids: they were renamed.
func pairChanges(was, is []*Object) (list []ObjectChange) {
	left := map[objectKey]*Object{}
	for i, k := range keysOf(was) {
		left[k] = was[i]
	}
	before := make([]*Object, len(is))
	for i, k := range keysOf(is) {
		before[i] = left[k]
		delete(left, k)
	}
	renamed := map[int64]objectKey{}
	for k, o := range left {
		if k.kind == KindDomain {
			renamed[o.ID] = k
		}
	}
	for i, o := range is {
		if k, found := renamed[o.ID]; found && before[i] == nil && o.Kind == KindDomain {
			before[i] = left[k]
			delete(left, k)
			delete(renamed, o.ID)
		}
		if c := ChangeOf(before[i], o); c.differs() {
			list = append(list, c)
		}
	}
	for i, k := range keysOf(was) {
		if left[k] != nil {
			list = append(list, ChangeOf(was[i], nil))
		}
	}
	slices.SortStableFunc(list, func(a, b ObjectChange) int {
		return slices.Index(partKinds, a.Object().Kind) - slices.Index(partKinds, b.Object().Kind)
	})
	return list
}

// partKinds are the kinds of pairChanges, in the order of their changes.
var partKinds = []Kind{KindDomain, KindServiceSettings, KindAuthSettings, KindSMTPConfig, KindTemplate, KindDefaults,
	KindKey, KindEdge, KindWebhook, KindLogin, KindSealing}

// ChangeOf returns what differs between two states of one object, of which one may be nil.
func ChangeOf(was, is *Object) ObjectChange {
	c := ObjectChange{Was: was, Is: is}
	var before, after []Field
	if was != nil {
		before = was.Fields()
	}
	if is != nil {
		after = is.Fields()
	}
	c.Fields = FieldChanges(before, after)
	if was == nil || is == nil {
		return c
	}
	if was.UUID != is.UUID {
		c.Identity = append(c.Identity, FieldChange{Field: "uuid", Before: was.UUID.String(), After: is.UUID.String()})
	}
	if was.ID != is.ID {
		c.Identity = append(c.Identity, FieldChange{Field: "id", Before: was.ID, After: is.ID})
	}
	if was.Said != is.Said {
		c.Identity = append(c.Identity, FieldChange{Field: "said", Before: int64(was.Said), After: int64(is.Said)})
	}
	return c
}

func (c *ObjectChange) differs() bool {
	return c.Was == nil || c.Is == nil || len(c.Fields)+len(c.Identity) > 0
}

// Object returns the object as it is now, or was if it is gone.
func (c *ObjectChange) Object() *Object {
	if c.Is != nil {
		return c.Is
	}
	return c.Was
}

// Verb returns the last part of the change's action in the audit trail.
func (c *ObjectChange) Verb() string {
	switch o := c.Object(); {
	case o.Kind.Single() || o.Kind.Lasts():
		return "update"
	case c.Was == nil:
		return "create"
	case c.Is == nil:
		return "delete"
	case o.Kind == KindKey && slices.ContainsFunc(c.Fields, func(f FieldChange) bool { return f.Field == "id" }):
		return "rotate"
	case o.Kind == KindWebhook && newestSecret(c.Was) != newestSecret(c.Is):
		return "rotate"
	}
	return "update"
}

// Audited lists the changes of fields as the audit trail keeps them: of a long text the beginning.
func (c *ObjectChange) Audited() []FieldChange { return cutChanges(c.Fields) }
