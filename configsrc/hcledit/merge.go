package hcledit

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A Conflict says why an edit cannot be made on other content: that content has changed the same.
type Conflict struct {
	Path string
	What []string        // such as "acme: name"
	All  []catalog.Clash // the same field by field: the edit's before is Was, its after Proposed, and the content's Live
}

func (e *Conflict) Error() string {
	return e.Path + ": changed there, too: " + strings.Join(e.What, ", ")
}

// Clashes returns All, for callers that know the interface alone.
func (e *Conflict) Clashes() []catalog.Clash { return e.All }

// Merge makes the edit that leads from before to after on the content theirs, field by field, and returns the
// result. Nil stands for a file that does not exist. Where theirs has changed the same field, or lacks the object, the
// error is a *Conflict. With force, after wins over a field that theirs has otherwise, and an object that theirs lacks
// alone is a conflict. It works on bytes alone, and may be called from any goroutine.
func Merge(path string, before, after, theirs []byte, force bool) ([]byte, error) {
	same := func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
	switch {
	case same(theirs, before):
		return after, nil
	case same(theirs, after), same(before, after):
		return theirs, nil
	}
	m := &merge{path: path, force: force}
	if !folder.IsConfigName(path[strings.LastIndexByte(path, '/')+1:]) { // text that a template takes by file()
		if force && theirs != nil {
			return after, nil
		}
		m.clash([]catalog.Clash{{Kind: catalog.KindFile, Object: path, Secret: true, Field: contentOf(theirs),
			Removes: after == nil}}, "the file")
		return nil, m.conflict()
	}
	var b, o, t *hclfile.Result
	for _, f := range []struct {
		to  **hclfile.Result
		src []byte
	}{{&b, before}, {&o, after}, {&t, theirs}} {
		r, diags := hclfile.Decode(path, f.src, hclfile.Options{ReadFile: func(p string) ([]byte,
			error) {
			return []byte(textOf(p)), nil
		}})
		if diags.HasErrors() {
			return nil, fmt.Errorf("%s has errors: %s", path, diags[0].Summary)
		}
		*f.to = r
	}
	if !sameRest(b.Declared, o.Declared) {
		return nil, fmt.Errorf("%s: more than projects, keys, webhooks, logins and inbound blocks differs, which is "+
			"not merged field by field", path)
	}
	out, err := m.file(b.Declared, o, t)
	switch {
	case err != nil:
		return nil, err
	case len(m.what) > 0:
		return nil, m.conflict()
	case m.plain != "":
		return nil, fmt.Errorf("%s: %s: a secret in clear text is not written", path, m.plain)
	}
	if r, diags := hclfile.Decode(path, out, hclfile.Options{}); diags.HasErrors() {
		return nil, fmt.Errorf("%s: the result of a merge has errors: %s", path, diags[0].Summary)
	} else if len(r.Declared.Refs()) == 0 && after == nil {
		return nil, nil
	}
	return out, nil
}

// sameRest reports whether two states of a file declare the same but for what is merged field by field.
func sameRest(a, b *catalog.Declared) bool {
	return reflect.DeepEqual(a.Templates, b.Templates) && reflect.DeepEqual(a.Edges, b.Edges) &&
		reflect.DeepEqual(a.Defaults, b.Defaults) && reflect.DeepEqual(a.Sealing, b.Sealing)
}

// A merge is one call of Merge. what and clashes list its conflicts.
type merge struct {
	path    string
	force   bool
	what    []string
	clashes []catalog.Clash
	plain   string // what would get a secret in clear text, which a person has written; "": nothing
}

// stuck reports whether nothing will be written.
func (m *merge) stuck() bool { return len(m.what) > 0 || m.plain != "" }

// writes notes that values are to be written.
func (m *merge) writes(of string, fields ...catalog.Field) {
	for _, f := range fields {
		if s, is := f.Value.(*catalog.Secret); is && s.Source == catalog.SecretPlain {
			m.plain = of + ": " + catalog.Snake(f.Name)
		}
	}
}

func (m *merge) conflict() error { return &Conflict{Path: m.path, What: m.what, All: m.clashes} }

// clash adds a conflict in words and field by field.
func (m *merge) clash(fields []catalog.Clash, format string, args ...any) {
	m.what = append(m.what, fmt.Sprintf(format, args...))
	m.clashes = append(m.clashes, fields...)
}

// contentOf names the field of a file that is no config file; "": the file is gone.
func contentOf(theirs []byte) string {
	if theirs == nil {
		return ""
	}
	return "content"
}

// textOf stands for the text of a file that file() names.
func textOf(path string) string { return "content of " + path }

func (m *merge) file(before *catalog.Declared, edited, theirs *hclfile.Result) ([]byte, error) {
	after, ours, draft := edited.Declared, NewDraft(edited), NewDraft(theirs)
	project := func(d *catalog.Declared, uuid catalog.UUID) *catalog.ProjectConfig {
		for i := range d.Projects {
			if d.Projects[i].Project.UUID == uuid {
				return &d.Projects[i]
			}
		}
		return nil
	}
	var added []string
	var uuids []catalog.UUID
	for _, d := range []*catalog.Declared{before, after} {
		for i := range d.Projects {
			if uuid := d.Projects[i].Project.UUID; !slices.Contains(uuids, uuid) {
				uuids = append(uuids, uuid)
			}
		}
	}
	for _, uuid := range uuids {
		b, o, t := project(before, uuid), project(after, uuid), project(theirs.Declared, uuid)
		switch {
		case b != nil && o != nil && catalog.SameValues(b, o): // not the edit's
		case b == nil && t == nil:
			m.writes("project "+o.Project.Slug, o.Auth.Fields()...)
			if o.SMTP != nil {
				m.writes("project "+o.Project.Slug, o.SMTP.Fields()...)
			}
			if m.stuck() {
				continue
			}
			text, err := WriteProject(o, nil)
			if err != nil {
				return nil, err
			}
			added = append(added, string(text))
		case b == nil:
			if !catalog.SameValues(o, t) {
				m.clash(catalog.ClashesOf(ofProject(o, catalog.KindProject), nil, t.Project.AllFields(),
					o.Project.AllFields()), "project %s", o.Project.Slug)
			}
		case o == nil && t == nil:
		case o == nil && !m.force && !catalog.SameValues(b, t):
			m.clash(removedHere(ofProject(b, catalog.KindProject), b.Project.AllFields(), t.Project.AllFields()),
				"project %s, which is removed here", b.Project.Slug)
		case o == nil:
			if err := draft.RemoveProject(t.Project.Slug); err != nil {
				return nil, err
			}
		case t == nil:
			m.clash([]catalog.Clash{ofProject(b, catalog.KindProject)}, "project %s, which is gone there", b.Project.Slug)
		default:
			if want := m.project(b, o, t); !m.stuck() {
				draft.BodyFile = func(at TextPlace, text string) (string, error) { // the file is an edit of its own
					if path := ours.BodyPath(o.Project.Slug, at); text == textOf(path) {
						return path, nil
					}
					return "", nil
				}
				if err := draft.RewriteProject(t, want); err != nil {
					return nil, err
				}
			}
		}
	}
	keys := mergeNamed(m, &mergedKeys, before.Keys, after.Keys, theirs.Declared.Keys)
	webhooks := mergeNamed(m, &mergedWebhooks, before.Webhooks, after.Webhooks, theirs.Declared.Webhooks)
	logins := mergeNamed(m, &mergedLogins, before.Logins, after.Logins, theirs.Declared.Logins)
	inbounds := mergeNamed(m, &mergedInbounds, before.Inbounds, after.Inbounds, theirs.Declared.Inbounds)
	if m.stuck() {
		return nil, nil
	}
	out, err := draft.Bytes()
	if err != nil {
		return nil, err
	}
	for _, text := range added {
		if out, err = AppendBlock(out, text); err != nil {
			return nil, err
		}
	}
	for _, named := range []func([]byte) ([]byte, error){keys, webhooks, logins, inbounds} {
		if out, err = named(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ofProject returns a Clash without a field, of a project or of what belongs to it once.
func ofProject(p *catalog.ProjectConfig, kind catalog.Kind) catalog.Clash {
	return catalog.Clash{Kind: kind, ProjectID: p.Project.ID, Project: p.Project.Slug, Object: p.Project.Slug}
}

// removedHere lists the fields of an object that have changed there and that the edit removes with it; if all that has
// changed is below the object, the object alone.
func removedHere(of catalog.Clash, was, live []catalog.Field) []catalog.Clash {
	of.Removes = true
	if list := catalog.ClashesOf(of, was, live, nil); len(list) > 0 {
		return list
	}
	return []catalog.Clash{of}
}

// project returns t with what changes from b to o.
func (m *merge) project(b, o, t *catalog.ProjectConfig) *catalog.ProjectConfig {
	all := catalog.Declared{Projects: []catalog.ProjectConfig{*t}}
	want := &all.Clone().Projects[0]
	slug := t.Project.Slug
	of := func(kind catalog.Kind) catalog.Clash { return ofProject(t, kind) }
	m.fields(of(catalog.KindProject), slug, b.Project.AllFields(), o.Project.AllFields(), want.Project.AllFields())
	m.fields(of(catalog.KindServiceSettings), slug+" service_settings", b.Service.Fields(), o.Service.Fields(),
		want.Service.Fields())
	m.fields(of(catalog.KindAuthSettings), slug+" auth_settings", b.Auth.Fields(), o.Auth.Fields(), want.Auth.Fields())
	m.smtp(of(catalog.KindSMTPConfig), b.SMTP, o.SMTP, &want.SMTP)
	want.Domains = mergeList(m, of(catalog.KindDomain), slug+": domain ", b.Domains, o.Domains, want.Domains,
		func(d *catalog.Domain) string { return d.UUID.String() },
		(*catalog.Domain).AllFields, func(d *catalog.Domain) string { return d.Name })
	want.Templates = mergeList(m, of(catalog.KindTemplate), slug+": template ", b.Templates, o.Templates, want.Templates,
		func(t *catalog.Template) string { return t.Code }, (*catalog.Template).Fields,
		func(t *catalog.Template) string { return t.Code })
	return want
}

// smtp makes the edit from b to o, nil for none, on the SMTP configuration of a project.
func (m *merge) smtp(of catalog.Clash, b, o *catalog.SMTPConfig, want **catalog.SMTPConfig) {
	t := *want
	name := of.Project + " smtp_config"
	switch {
	case b == nil && o == nil, o == nil && t == nil:
	case b != nil && o != nil && catalog.SameFields(b.Fields(), o.Fields()):
	case o == nil && !m.force && !catalog.SameFields(b.Fields(), t.Fields()):
		m.clash(removedHere(of, b.Fields(), t.Fields()), "%s: smtp_config", of.Project)
	case o == nil:
		*want = nil
	case b == nil && t == nil:
		m.writes(name, o.Fields()...)
		*want = o
	case t == nil:
		m.clash([]catalog.Clash{of}, "%s: smtp_config, which is gone there", of.Project)
	case b == nil:
		m.fields(of, name, nil, o.Fields(), t.Fields())
	default:
		m.fields(of, name, b.Fields(), o.Fields(), t.Fields())
	}
}

// mergeList returns theirs with what changes from before to after. key identifies an element.
func mergeList[T any](m *merge, at catalog.Clash, of string, before, after, theirs []T, key func(*T) string,
	fields func(*T) []catalog.Field, name func(*T) string) []T {
	find := func(list []T, k string) *T {
		for i := range list {
			if key(&list[i]) == k {
				return &list[i]
			}
		}
		return nil
	}
	for i := range after {
		o := &after[i]
		b, t := find(before, key(o)), find(theirs, key(o))
		switch at.Object = name(o); {
		case b == nil && t == nil:
			theirs = append(theirs, *o)
		case b == nil:
			m.fields(at, of+name(o), nil, fields(o), fields(t))
		case t == nil && catalog.SameFields(fields(b), fields(o)):
		case t == nil:
			m.clash([]catalog.Clash{at}, "%s%s, which is gone there", of, name(o))
		default:
			at.Object = name(t)
			m.fields(at, of+name(t), fields(b), fields(o), fields(t))
		}
	}
	for i := range before {
		b := &before[i]
		t := find(theirs, key(b))
		switch {
		case find(after, key(b)) != nil || t == nil:
		case !m.force && !catalog.SameFields(fields(b), fields(t)):
			at.Object = name(t)
			m.clash(removedHere(at, fields(b), fields(t)), "%s%s, which is removed here", of, name(b))
		default:
			theirs = slices.DeleteFunc(theirs, func(x T) bool { return key(&x) == key(b) })
		}
	}
	return theirs
}

// fields copies the values that differ between b and o to t. A nil b stands for an object that both have added.
func (m *merge) fields(at catalog.Clash, of string, b, o, t []catalog.Field) {
	for i := range o {
		was := catalog.Field{}
		if b != nil {
			was = b[i]
		}
		switch {
		case b != nil && was.Same(o[i]), o[i].Same(t[i]):
		case b != nil && m.locales(at, b[i:i+1], o[i:i+1], t[i:i+1]):
		case m.force, b != nil && was.Same(t[i]):
			m.writes(of, o[i])
			t[i].Set(o[i])
		case b == nil:
			m.clash(catalog.ClashesOf(at, nil, t, o), "%s", of)
			return
		default:
			m.clash(catalog.ClashesOf(at, b[i:i+1], t[i:i+1], o[i:i+1]), "%s: %s", of, catalog.Snake(o[i].Name))
		}
	}
}
