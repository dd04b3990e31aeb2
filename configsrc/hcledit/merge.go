package hcledit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A Conflict says why an edit cannot be made on other content: that content has changed the same.
type Conflict struct {
	Path string
	What []string // such as "acme: name"
}

func (e *Conflict) Error() string {
	return e.Path + ": changed there, too: " + strings.Join(e.What, ", ")
}

// Merge makes the edit that leads from before to after on the content theirs, field by field, and returns the
// result. Nil stands for a file that does not exist. Where theirs has changed the same field, or lacks the object, the
// error is a *Conflict. With force, after wins over a field that theirs has otherwise: for theirs that is older
// than before. It works on bytes alone, and may be called from any goroutine.
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
		return nil, m.conflict("the file")
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
	out, err := m.file(b.Declared, o, t)
	switch {
	case err != nil:
		return nil, err
	case len(m.what) > 0:
		return nil, &Conflict{Path: path, What: m.what}
	}
	if r, diags := hclfile.Decode(path, out, hclfile.Options{}); diags.HasErrors() {
		return nil, fmt.Errorf("%s: the result of a merge has errors: %s", path, diags[0].Summary)
	} else if len(r.Declared.Refs()) == 0 && after == nil {
		return nil, nil
	}
	return out, nil
}

// A merge is one call of Merge. what lists its conflicts.
type merge struct {
	path  string
	force bool
	what  []string
}

func (m *merge) conflict(what string) error {
	return &Conflict{Path: m.path, What: []string{what}}
}

func (m *merge) clash(format string, args ...any) {
	m.what = append(m.what, fmt.Sprintf(format, args...))
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
		case b != nil && o != nil && len(projectWords(b, o)) == 0: // not the edit's
		case b == nil && t == nil:
			text, err := WriteProject(o, nil)
			if err != nil {
				return nil, err
			}
			added = append(added, string(text))
		case b == nil:
			if len(projectWords(o, t)) > 0 {
				m.clash("project %s", o.Project.Slug)
			}
		case o == nil && t == nil:
		case o == nil && !m.force && len(projectWords(b, t)) > 0:
			m.clash("project %s, which is removed here", b.Project.Slug)
		case o == nil:
			if err := draft.RemoveProject(t.Project.Slug); err != nil {
				return nil, err
			}
		case t == nil:
			m.clash("project %s, which is gone there", b.Project.Slug)
		default:
			if want := m.project(b, o, t); len(m.what) == 0 {
				draft.BodyFile = func(code, attr, text string) (string, error) { // the file is an edit of its own
					if path := ours.BodyPath(o.Project.Slug, code, attr); text == textOf(path) {
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
	keys := m.keys(before.Keys, after.Keys, theirs.Declared.Keys)
	if len(m.what) > 0 {
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
	return keys(out)
}

// project returns t with what changes from b to o.
func (m *merge) project(b, o, t *catalog.ProjectConfig) *catalog.ProjectConfig {
	all := catalog.Declared{Projects: []catalog.ProjectConfig{*t}}
	want := &all.Clone().Projects[0]
	slug := t.Project.Slug
	m.value(slug+": slug", &b.Project.Slug, &o.Project.Slug, &want.Project.Slug)
	m.fields(slug, b.Project.Fields(), o.Project.Fields(), want.Project.Fields())
	m.fields(slug+" service_settings", b.Service.Fields(), o.Service.Fields(), want.Service.Fields())
	m.fields(slug+" auth_settings", b.Auth.Fields(), o.Auth.Fields(), want.Auth.Fields())
	switch {
	case b.SMTP == nil && o.SMTP == nil:
	case b.SMTP != nil && o.SMTP != nil && want.SMTP != nil:
		m.fields(slug+" smtp_config", b.SMTP.Fields(), o.SMTP.Fields(), want.SMTP.Fields())
	case b.SMTP != nil && o.SMTP != nil:
		if *b.SMTP != *o.SMTP {
			m.clash("%s: smtp_config, which is gone there", slug)
		}
	case (b.SMTP == nil) == (want.SMTP == nil) && (b.SMTP == nil || m.force || *b.SMTP == *want.SMTP):
		want.SMTP = o.SMTP
	case (o.SMTP == nil) != (want.SMTP == nil) || o.SMTP != nil && *o.SMTP != *want.SMTP:
		m.clash("%s: smtp_config", slug)
	}
	want.Domains = mergeList(m, slug+": domain ", b.Domains, o.Domains, want.Domains,
		func(d *catalog.Domain) string { return d.UUID.String() },
		(*catalog.Domain).AuditFields, func(d *catalog.Domain) string { return d.Name })
	want.Templates = mergeList(m, slug+": template ", b.Templates, o.Templates, want.Templates,
		func(t *catalog.Template) string { return t.Code }, (*catalog.Template).Fields,
		func(t *catalog.Template) string { return t.Code })
	return want
}

// mergeList returns theirs with what changes from before to after. key identifies an element.
func mergeList[T any](m *merge, of string, before, after, theirs []T, key func(*T) string,
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
		switch {
		case b == nil && t == nil:
			theirs = append(theirs, *o)
		case b == nil && !catalog.SameFields(fields(o), fields(t)):
			m.clash("%s%s", of, name(o))
		case b == nil, t == nil && catalog.SameFields(fields(b), fields(o)):
		case t == nil:
			m.clash("%s%s, which is gone there", of, name(o))
		default:
			m.fields(of+name(t), fields(b), fields(o), fields(t))
		}
	}
	for i := range before {
		b := &before[i]
		t := find(theirs, key(b))
		switch {
		case find(after, key(b)) != nil || t == nil:
		case !m.force && !catalog.SameFields(fields(b), fields(t)):
			m.clash("%s%s, which is removed here", of, name(b))
		default:
			theirs = slices.DeleteFunc(theirs, func(x T) bool { return key(&x) == key(b) })
		}
	}
	return theirs
}

func (m *merge) value(of string, b, o, t *string) {
	m.fields(of, []catalog.Field{{Value: b}}, []catalog.Field{{Value: o}}, []catalog.Field{{Value: t}})
}

// fields copies the values that differ between b and o to t.
func (m *merge) fields(of string, b, o, t []catalog.Field) {
	for i := range b {
		switch {
		case b[i].Same(o[i]), o[i].Same(t[i]):
		case m.force, b[i].Same(t[i]):
			t[i].Set(o[i])
		case b[i].Name == "":
			m.clash("%s", of)
		default:
			m.clash("%s: %s", of, catalog.Snake(b[i].Name))
		}
	}
}

// keys returns the step that makes the edit of keys. A key that changes is written anew.
func (m *merge) keys(before, after, theirs []catalog.Key) (step func([]byte) ([]byte, error)) {
	var remove []string
	var add []*catalog.Key
	same := func(a, b *catalog.Key) bool { return len(catalog.FieldChanges(a.AuditFields(), b.AuditFields())) == 0 }
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
		case b != nil && t != nil && (m.force || same(b, t)):
			remove, add = append(remove, o.Name), append(add, o)
		default:
			m.clash("key %s", o.Name)
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
			m.clash("key %s, which is removed here", b.Name)
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
