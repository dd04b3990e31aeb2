package console

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// formOf makes the form of a resource that the session's key may change, and fills it with what the API has.
func (c *Console) formOf(r *http.Request, s *session, name, project, id string) (*form, error) {
	if _, known := editable[name]; known && !c.may(s).form(name, projectID(project)) {
		return nil, refuseForm
	}
	return c.showing(r, s, name, project, id)
}

// showing is formOf for a form that changes nothing.
func (c *Console) showing(r *http.Request, s *session, name, project, id string) (*form, error) {
	k, known := editable[name]
	project, id = projectID(project), projectID(id)
	if !known || project == "" && name != "project" && name != "key" || name == "key" && id != "" {
		return nil, &failure{Status: http.StatusNotFound, Message: "There is no such form."}
	}
	f := &form{Kind: name, Project: project, ID: id, mail: k.mail, Fields: slices.Clone(k.fields), path: k.list,
		method: http.MethodPost, Back: Prefix + "projects/" + project}
	if strings.Contains(f.path, "%s") {
		f.path = fmt.Sprintf(f.path, project)
	}
	switch {
	case name == "key":
		f.Back = Prefix + "keys"
		f.limitKey(s.Key())
	case name == "project":
		if f.ID = project; project == "" {
			f.Back = Prefix + "projects"
		}
	}
	if f.ID == "" && !k.single {
		f.begin(k, object{})
		return f, nil
	}
	if err := c.load(r, s, f, k); err != nil {
		return nil, err
	}
	if slug := f.field("slug"); slug != nil && !c.may(s).Create {
		slug.ReadOnly = "Only a key for every project changes it."
	}
	return f, nil
}

// load fills a form with what the API has, and with where the files say it.
func (c *Console) load(r *http.Request, s *session, f *form, k kind) error {
	if !k.single {
		f.path += "/" + f.ID
	}
	a, err := c.ask(r.Context(), s, get(f.path))
	full := object{}
	if !k.byCode {
		// It comes second: what has changed in between does not fit the ETag.
		x, fault := c.ask(r.Context(), s, get(projectsPath+"/"+f.Project, "view", "full"))
		if fault != nil && f.Kind == "project" && err == nil {
			return fault
		} else if fault == nil {
			full = x.Object()
		}
	}
	values, origins, defaults := partOf(full, k.part, f.ID)
	if fail, is := errors.AsType[*failure](err); is && fail.Status == http.StatusNotFound && k.single {
		f.begin(k, values)
		f.places(values, origins, defaults)
		f.propose(values)
		return nil
	}
	if err != nil {
		return err
	}
	f.Title, f.method = "Edit "+k.title, http.MethodPut
	f.now, f.ETag = a.Object(), a.Header.Get("ETag")
	for _, x := range f.Fields {
		if x.fullOnly {
			f.now[x.Name] = values[x.Name]
		}
	}
	f.show(values)
	f.places(values, origins, defaults)
	if k.byCode {
		f.path = strings.TrimSuffix(f.path, "/"+f.ID)
	}
	if f.now["defaultTemplate"] == true {
		f.now, f.ETag = nil, ""
		f.Note = "This is a default template, which all projects share. " +
			"Saving makes one of the same code for this project alone."
	}
	return nil
}

// show fills in what the API has, and from values what it has in the full form only.
func (f *form) show(values object) {
	for i := range f.Fields {
		x := &f.Fields[i]
		unset := textOf(x.Field) // what the API sets without the field
		x.begin(shown(*x, f.now))
		if x.FileOnly {
			x.begin(shown(*x, values))
		}
		if f.now["defaultTemplate"] == true {
			x.base = unset
		}
		if x.fixed {
			x.ReadOnly = "It cannot be changed: make a new one instead."
		}
	}
}

// begin makes a form for something new. inForce are the values of what stands in for it meanwhile.
func (f *form) begin(k kind, inForce object) {
	f.Title = "New " + k.title
	f.Fields = slices.DeleteFunc(f.Fields, func(x field) bool { return x.later })
	for i := range f.Fields {
		x := &f.Fields[i]
		x.begin(textOf(x.Field))
		if x.proposed != "" {
			x.Text, x.was = x.proposed, x.proposed
		}
		if len(inForce) > 0 { // what the API keeps of it is not known: everything is sent
			x.base = ""
		}
	}
}

// propose shows the values in force of something that the project has in part: its own ones stay, the inherited ones
// are examples.
func (f *form) propose(inForce object) {
	for i := range f.Fields {
		x := &f.Fields[i]
		switch value := shown(*x, inForce); {
		case x.own:
			x.Text, x.was = value, value
		case !x.yesOrNo():
			x.Placeholder = value
		}
	}
}

// partOf returns the values, their origins and those in the defaults block of a part of an answer with view=full.
func partOf(full object, part, id string) (values, origins, defaults object) {
	origins = asObject(full["origin"])
	switch part {
	case "":
		return full, origins, nil
	case "domains":
		from := asList(origins[part])
		for i, d := range asList(full[part]) {
			if text(d["id"]) == id && i < len(from) {
				return d, from[i], nil
			}
		}
		return nil, nil, nil
	}
	return asObject(full[part]), asObject(origins[part]), asObject(asObject(origins["defaults"])[part])
}

// places notes where each value is said, and makes read-only what only the files change.
func (f *form) places(values, origins, defaults object) {
	for i := range f.Fields {
		x := &f.Fields[i]
		where, kind := place(origins[x.Name])
		x.own = kind == "file"
		leader := f.field(x.Follows)
		if leader != nil && x.own && text(origins[x.Name]) == text(origins[leader.Name]) { // it has no line of its own
			x.own, kind, x.Origin = false, "", "follows "+leader.Label+", "+where
		}
		switch kind {
		case "file":
			x.Origin = where
		case "defaults":
			x.Origin = "inherited"
			if at, kind := place(defaults[x.Name]); kind == "file" {
				x.Origin = "inherited, " + at
			}
		case "built-in":
			x.Origin = where
		}
		if x.FileOnly {
			x.ReadOnly = "Only the files change it."
			if x.Type == "password" && (kind == "file" || kind == "defaults") {
				x.Text = "(secret)"
			}
		}
	}
}

// limitKey leaves the permissions that a key can give.
func (f *form) limitKey(giver Key) {
	allow := f.field("allow")
	allow.Choices = choicesOf(giver.gives().Words()...)
	if end := giver.ExpiresAt; !end.IsZero() {
		f.field("expiresIn").Help = "Such as 720h. Your key ends at " + end.UTC().Format("2006-01-02 15:04:05") + " UTC."
	}
}
