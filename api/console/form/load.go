package form

import (
	"slices"
	"strconv"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

// Load shows what the API has. values are those that it explains, nil if they are not known, with their origins.
func (f *Form) Load(state *client.State, values []catalog.Field, origins catalog.Origins) error {
	values = NameFirst(values)
	f.Title, f.verb, f.ETag = "Edit "+f.of.title, client.Save, state.ETag
	known := values != nil
	if f.now = values; !known {
		f.now = f.of.fields()
	}
	if err := state.Fill(f.now); err != nil { // the rest is in the full form only; the ETag covers it
		return err
	}
	f.show(known, state.Shared)
	f.languages(state.Shared)
	f.places(origins)
	if state.Shared {
		f.now, f.ETag = nil, ""
		f.Note = "This is a default template, which all projects share. " +
			"Saving makes one of the same code for this project alone."
	}
	return nil
}

// BeginSingle makes a form for what a project does not have yet. values are those in force meanwhile, nil if they are not
// known, with their origins.
func (f *Form) BeginSingle(values []catalog.Field, origins catalog.Origins) {
	f.begin(values)
	f.places(origins)
	f.propose(values)
}

// Begin makes a form for something new.
func (f *Form) Begin() {
	f.begin(nil)
	f.languages(false)
}

// Limit makes read-only what only a key for every project changes. A new project gets its slug from any key.
func (f *Form) Limit(everything bool) {
	for _, name := range []string{"slug", "verified", "owner"} {
		if x := f.Field(name); x != nil && !everything && !(name == "slug" && f.IsNew()) {
			x.ReadOnly = "Only a key for every project changes it."
		}
	}
}

// Suggest begins a form with the domain that a look-up did not find.
func (f *Form) Suggest(domain string) {
	for _, name := range []string{"domain", firstDomain} {
		if x := f.Field(name); x != nil {
			x.Text = domain
		}
	}
}

// show fills in what the API has, which is known in full or not. Of something that all projects share, the one that is
// made has only what is sent.
func (f *Form) show(inFull, shared bool) {
	for i := range f.Fields {
		x := &f.Fields[i]
		if inFull || !x.FileOnly {
			x.begin(TextOf(f.now[i]))
		}
		if shared {
			x.base = TextOf(x.Field)
		}
		if x.kept != "" {
			x.Help = x.kept
		}
		if x.fixed {
			x.ReadOnly = "It cannot be changed: make a new one instead."
		}
	}
}

// begin is Begin. inForce are the values of what stands in for it meanwhile.
func (f *Form) begin(inForce noun) {
	f.Title = "New " + f.of.title
	f.Fields = slices.DeleteFunc(f.Fields, func(x Field) bool { return x.later })
	for i := range f.Fields {
		x := &f.Fields[i]
		x.begin(TextOf(x.Field))
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
func (f *Form) propose(inForce noun) {
	for i := range inForce {
		x := &f.Fields[i]
		switch value := TextOf(inForce[i]); {
		case x.own:
			x.Text, x.was = value, value
		case !x.yesOrNo():
			x.Placeholder = value
		}
	}
}

// places notes where each value is said, and makes read-only what only the files change.
func (f *Form) places(origins catalog.Origins) {
	for i := range f.Fields {
		x := &f.Fields[i]
		o, told := origins[x.Name]
		x.own = o.File != "" && !o.Defaults
		leader := f.Field(x.Follows)
		switch {
		case leader != nil && x.own && o == origins[leader.Name]: // it has no line of its own
			x.own, x.Origin = false, "follows "+leader.Label+", "+Place(o)
		case o.Defaults:
			x.Origin = Inherited("inherited", o)
		case told:
			x.Origin = Place(o)
		}
		if x.FileOnly {
			x.ReadOnly = "Only the files change it."
			if x.Type == "password" && o != (catalog.Origin{}) {
				x.Text = "(secret)"
			}
		}
	}
}

// Start gives a new key the permissions of a preset, before a person changes them. It does nothing for another name.
func (f *Form) Start(preset string) {
	for _, p := range f.Presets {
		if p.Name == preset {
			f.Field("allow").Text = say.Text(p.Allow.Words())
		}
	}
}

// LimitKey leaves the permissions that the giver of a key can give. ends is when the giver's key ends, zero: never.
func (f *Form) LimitKey(gives catalog.Permission, ends time.Time) {
	allow := f.Field("allow")
	allow.Choices = PermissionsOf(gives.Words())
	for _, preset := range catalog.Presets {
		if preset.Allow&^gives == 0 {
			f.Presets = append(f.Presets, preset)
		}
	}
	if !ends.IsZero() {
		f.Field("expiresIn").endBy(ends, time.Now())
	}
}

// Place returns an origin as people read it: a file with its line, or "built in".
func Place(o catalog.Origin) string {
	if o.File == "" {
		return "built in"
	}
	return o.File + ":" + strconv.Itoa(o.Line)
}

// Inherited is Place, with a word for what comes from the defaults block.
func Inherited(word string, o catalog.Origin) string {
	switch {
	case !o.Defaults:
		return Place(o)
	case o.File == "":
		return word
	}
	return word + ", " + Place(o)
}
