package transfer

import (
	"maps"
	"slices"
	"strings"
	"time"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// A view says what of an object can be compared. The zero view compares what every service with the API returns.
type view struct {
	store bool // all: it is not a server that is compared with
	own   bool // what an answer with view=full has
	flat  bool // what the flat form of resolve has
	ids   bool // uuid and id, too
	// untold are the fields that the server does not return of its templates.
	untold client.Untold
}

// everything is the view of a store.
var everything = view{store: true, ids: true}

// seenBy returns the view that a server has of a project.
func seenBy(f *client.Project, ids bool) view { return view{ids: ids, flat: f.Flat} }

// compares reports whether a field can be compared. isNew: the object is not there yet; a server takes OwnFields, also
// where its lists do not tell them.
func (v *view) compares(o *catalog.Object, f *catalog.Field, isNew bool) bool {
	secret := isSecret(f)
	switch {
	case f.Heading:
		return !isNew
	case v.store:
		return true
	case secret:
		return false
	case f.Own:
		return v.own || isNew && !f.FileOnly // only the files change what is FileOnly
	case f.FileOnly:
		return v.flat && o.Kind.Lasts()
	}
	list, _, _ := strings.Cut(f.Name, ".") // such as locales
	return !slices.Contains(v.untold[o.Name], list)
}

func isSecret(f *catalog.Field) bool {
	switch f.Value.(type) {
	case *catalog.Secret, []catalog.Secret:
		return true
	}
	return false
}

// compareProject returns the changes that turn have into want; one of them may be nil. renumbered counts the objects
// whose uuid or id differ if v does not compare them.
func compareProject(have *client.Project, want *catalog.ProjectConfig, v view) (changes []Change, renumbered int) {
	c := comparison{view: v}
	var was *catalog.ProjectConfig
	if have != nil {
		was = &have.ProjectConfig
		c.slug, c.untold, c.mailless = was.Project.Slug, have.Untold, !have.Mail
	}
	c.own = v.own || have == nil || have.Full
	if want != nil {
		c.slug = want.Project.Slug
		if !v.store && !want.SMTP.HasServer() { // APIs have no config without a host
			own := *want
			own.SMTP, want = nil, &own
		}
	}
	c.add(catalog.ProjectChanges(was, want))
	first := slices.IndexFunc(c.changes, isDomain)
	if first < 0 {
		return c.changes, c.renumbered
	}
	end := first
	for end < len(c.changes) && isDomain(c.changes[end]) {
		end++
	}
	slices.SortFunc(c.changes[first:end], func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return c.changes, c.renumbered
}

func isDomain(c Change) bool { return c.Kind == catalog.KindDomain }

// compareRest returns the changes of what belongs to no project.
func compareRest(have, want *catalog.Declared, v view) (changes []Change, renumbered int) {
	c := comparison{view: v}
	c.add(catalog.Changes(have, want))
	return c.changes, c.renumbered
}

// A comparison puts the differences of two sets of declarations into the words of a plan.
type comparison struct {
	view
	slug       string
	mailless   bool // the server does not return SMTP config and templates
	changes    []Change
	renumbered int
}

func (c *comparison) add(list []catalog.ObjectChange) {
	for i := range list {
		c.object(&list[i])
	}
}

func (c *comparison) object(d *catalog.ObjectChange) {
	o := d.Object()
	if c.mailless && (o.Kind == catalog.KindSMTPConfig || o.Kind == catalog.KindTemplate) {
		return
	}
	change := Change{Action: Changed, Kind: o.Kind, Project: c.slug, Name: o.Name, Fields: []FieldChange{}}
	switch {
	case d.Is == nil:
		if o.Kind.Lasts() {
			return // goes with its project
		}
		change.Action, change.id = Removed, o.ID
	case d.Was == nil:
		change.Action = Added
		fields := d.Fields
		if o.Kind != catalog.KindDefaults { // each of its lines sets a value
			fields = catalog.FieldChanges(catalog.NewFields(o.Kind), o.Fields())
		}
		change.Fields = c.fields(o, fields, true)
		if o.Kind.Lasts() && len(change.Fields) == 0 {
			return
		}
	default:
		change.id = d.Was.ID
		change.Fields = append(c.fields(o, d.Fields, false), c.identity(d)...)
		if len(change.Fields) == 0 {
			return
		}
	}
	c.changes = append(c.changes, change)
}

// identity lists the differing uuid and id. A uuid that the server does not return is not compared.
func (c *comparison) identity(d *catalog.ObjectChange) (fields []FieldChange) {
	for _, f := range d.Identity {
		if f.Field == "id" || f.Field == "uuid" && d.Was.UUID != (catalog.UUID{}) {
			fields = append(fields, FieldChange{Field: f.Field, Old: f.Before, New: f.After})
		}
	}
	if !c.ids && len(fields) > 0 {
		c.renumbered++
		return nil
	}
	return fields
}

// fields lists the changes of the fields that can be compared, by their names in the files. Those of something new have
// no old value.
func (c *comparison) fields(o *catalog.Object, changes []catalog.FieldChange, isNew bool) []FieldChange {
	out := []FieldChange{}
	for _, x := range changes {
		f := catalog.FieldOf(o.Kind, x.Field)
		if !c.compares(o, f, isNew) {
			continue
		}
		if isNew {
			x.Before = nil
		}
		if f.Elements {
			out = append(out, diffElements(f.Attribute(), x.Before, x.After)...)
			continue
		}
		if !isNew {
			x.Before = planned(o, f, x.Before)
		}
		x.After = planned(o, f, x.After)
		_, labels := f.Value.(*[]catalog.Label)
		switch {
		case labels:
			out = append(out, diffLabels(x.Before, x.After)...)
		case f.Private || isSecret(f):
			out = append(out, FieldChange{Field: f.Attribute(), Secret: true})
		default:
			out = append(out, FieldChange{Field: f.Attribute(), Old: x.Before, New: x.After})
		}
	}
	return out
}

// planned returns a value in the form of a plan: text that is empty is "", unless its block is absent.
func planned(o *catalog.Object, f *catalog.Field, v any) any {
	switch v := v.(type) {
	case nil:
		if _, text := f.Value.(*string); text && o.Kind != catalog.KindDefaults {
			return ""
		}
	case []string:
		return strings.Join(v, ", ")
	case string:
		if _, moment := f.Value.(time.Time); moment {
			at, _ := catalog.ParseMoment(v)
			return catalog.FileMoment(at)
		}
	}
	return v
}

// diffElements lists the elements of two lists that only one of them has. Lists that differ in their order alone are one
// change.
func diffElements(field string, have, want any) (out []FieldChange) {
	was, _ := have.([]string)
	is, _ := want.([]string)
	left := slices.Clone(is)
	for _, text := range was {
		if i := slices.Index(left, text); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else {
			out = append(out, FieldChange{Field: field, Old: text, whole: true})
		}
	}
	for _, text := range left {
		out = append(out, FieldChange{Field: field, New: text, whole: true})
	}
	if out == nil {
		out = append(out, FieldChange{Field: field, Old: strings.Join(was, "; "), New: strings.Join(is, "; "), whole: true})
	}
	return out
}

// diffLabels lists the labels whose values differ, each as a field "labels.<name>", sorted by name.
func diffLabels(have, want any) (out []FieldChange) {
	was, _ := have.(map[string]string)
	is, _ := want.(map[string]string)
	names := map[string]bool{}
	for _, labels := range []map[string]string{was, is} {
		for name := range labels {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := FieldChange{Field: "labels." + name}
		old, had := was[name]
		value, has := is[name]
		if had {
			f.Old = old
		}
		if has {
			f.New = value
		}
		if had != has || old != value {
			out = append(out, f)
		}
	}
	return out
}
