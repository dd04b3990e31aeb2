package console

import (
	"net/http"
	"slices"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// formOf makes the form of a resource that the session's key may change, and fills it with what the API has.
func (c *Console) formOf(r *http.Request, s *session, name, project, id string) (*form, error) {
	if _, known := editable[name]; known && !c.may(s).form(name, idOf(project)) {
		return nil, c.refuseForm(s.Key(), name, idOf(project))
	}
	return c.showing(r, s, name, project, id)
}

// showing is formOf for a form that changes nothing.
func (c *Console) showing(r *http.Request, s *session, name, project, id string) (*form, error) {
	k, known := editable[name]
	f := &form{Kind: name, Project: idOf(project), ID: idOf(id), verb: client.Create}
	if !known || f.Project == 0 && name != "project" && name != "key" || name == "key" && f.ID != 0 {
		return nil, &failure{Status: http.StatusNotFound, Message: "There is no such form."}
	}
	f.Fields, f.Back = k.controls(), projectPage(f.Project)
	switch name {
	case "key":
		f.Back = Prefix + "keys"
		f.limitKey(s.Key())
	case "project":
		if f.ID = f.Project; f.ID == 0 {
			f.Back = Prefix + "projects"
			f.beginProject()
		}
	}
	if f.ID == 0 && !k.single {
		f.begin(&k, nil)
		f.suggest(r)
		f.start(r.URL.Query().Get("preset"))
		f.limit(c.may(s))
		return f, nil
	}
	if err := c.load(r, s, f, &k); err != nil {
		return nil, err
	}
	f.limit(c.may(s))
	return f, nil
}

// limit makes read-only what keys of some projects do not change.
func (f *form) limit(may rights) {
	for _, name := range []string{"slug", "verified"} {
		if x := f.field(name); x != nil && !may.Create {
			x.ReadOnly = "Only a key for every project changes it."
		}
	}
}

// suggest begins a form with the domain that a look-up did not find.
func (f *form) suggest(r *http.Request) {
	for _, name := range []string{"domain", firstDomain} {
		if x := f.field(name); x != nil {
			x.Text = r.FormValue("domain")
		}
	}
}

// load fills a form with what the API has, and with where the files say it.
func (c *Console) load(r *http.Request, s *session, f *form, k *kind) error {
	api := c.api(s)
	state, err := api.State(r.Context(), k.object(f.Project, f.ID))
	isNew := k.single && client.Status(err, http.StatusNotFound)
	if err != nil && !isNew {
		return err
	}
	var values noun
	var origins catalog.Origins
	if !k.byCode {
		// It comes second: what has changed in between does not fit the ETag.
		x, fault := explained(r.Context(), api, f.Project)
		if fault == nil {
			values, origins = x.Part(k.kind, f.ID)
			values = nameFirst(values)
		} else if f.Kind == "project" {
			return fault
		}
	}
	if isNew {
		f.begin(k, values)
		f.places(origins)
		f.propose(values)
		return nil
	}
	f.Title, f.verb, f.ETag = "Edit "+k.title, client.Save, state.ETag
	known := values != nil
	if f.now = values; !known {
		f.now = k.fields()
	}
	if err := state.Fill(f.now); err != nil { // the rest is in the full form only; the ETag covers it
		return err
	}
	f.show(known, state.Shared)
	f.places(origins)
	if state.Shared {
		f.now, f.ETag = nil, ""
		f.Note = "This is a default template, which all projects share. " +
			"Saving makes one of the same code for this project alone."
	}
	return nil
}

// show fills in what the API has, which is known in full or not. Of something that all projects share, the one that is
// made has only what is sent.
func (f *form) show(inFull, shared bool) {
	for i := range f.Fields {
		x := &f.Fields[i]
		if inFull || !x.FileOnly {
			x.begin(textOf(f.now[i]))
		}
		if shared {
			x.base = textOf(x.Field)
		}
		if x.fixed {
			x.ReadOnly = "It cannot be changed: make a new one instead."
		}
	}
}

// begin makes a form for something new. inForce are the values of what stands in for it meanwhile.
func (f *form) begin(k *kind, inForce noun) {
	f.Title = "New " + k.title
	f.Fields = slices.DeleteFunc(f.Fields, func(x field) bool { return x.later })
	for i := range f.Fields {
		x := &f.Fields[i]
		x.begin(textOf(x.Field))
		if x.proposed != "" {
			x.Text, x.was = x.proposed, x.proposed
		}
		if inForce != nil { // what the API keeps of it is not known: everything is sent
			x.base = ""
		}
	}
}

// propose shows the values in force of something that the project has in part: its own ones stay, the inherited ones
// are examples.
func (f *form) propose(inForce noun) {
	for i := range inForce {
		x := &f.Fields[i]
		switch value := textOf(inForce[i]); {
		case x.own:
			x.Text, x.was = value, value
		case !x.yesOrNo():
			x.Placeholder = value
		}
	}
}

// places notes where each value is said, and makes read-only what only the files change.
func (f *form) places(origins catalog.Origins) {
	for i := range f.Fields {
		x := &f.Fields[i]
		o, told := origins[x.Name]
		x.own = o.File != "" && !o.Defaults
		leader := f.field(x.Follows)
		switch {
		case leader != nil && x.own && o == origins[leader.Name]: // it has no line of its own
			x.own, x.Origin = false, "follows "+leader.Label+", "+place(o)
		case o.Defaults:
			x.Origin = inherited("inherited", o)
		case told:
			x.Origin = place(o)
		}
		if x.FileOnly {
			x.ReadOnly = "Only the files change it."
			if x.Type == "password" && o != (catalog.Origin{}) {
				x.Text = "(secret)"
			}
		}
	}
}

// start gives a new key the permissions of a preset, before a person changes them. It does nothing for another name.
func (f *form) start(preset string) {
	for _, p := range f.Presets {
		if p.Name == preset {
			f.field("allow").Text = text(p.Allow.Words())
		}
	}
}

// limitKey leaves the permissions that a key can give.
func (f *form) limitKey(giver Key) {
	allow := f.field("allow")
	allow.Choices = permissionsOf(giver.gives().Words())
	for _, preset := range catalog.Presets {
		if preset.Allow&^giver.gives() == 0 {
			f.Presets = append(f.Presets, preset)
		}
	}
	if end := giver.ExpiresAt; !end.IsZero() {
		f.field("expiresIn").Help = "Such as 720h. Your key ends at " + end.UTC().Format("2006-01-02 15:04:05") + " UTC."
	}
}
