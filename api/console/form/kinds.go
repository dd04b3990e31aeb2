package form

import (
	"slices"
	"strings"

	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

// A kind describes a resource that has a form. What a field is, how people call it and what the API sets without it come
// from the catalog, which checks requests and files by it.
type kind struct {
	kind   catalog.Kind
	title  string
	single bool           // a project has one
	apart  bool           // it belongs to no project
	byName bool           // it has a name instead of an id
	live   bool           // a change of it cannot be proposed
	byCode bool           // it is saved by its code, so that a default becomes the project's own; origins are not known
	set    func(*control) // adds what a field has in this form alone; nil: nothing
}

// A noun is the fields of one, as the catalog lists them.
type noun = []catalog.Field

// kinds are the resources that have forms.
var kinds = map[string]kind{
	"project": {kind: catalog.KindProject, title: "project",
		set: func(x *control) { x.later = x.Name == "status" || x.Name == "owner" }},
	"domain":           {kind: catalog.KindDomain, title: "domain"},
	"service-settings": {kind: catalog.KindServiceSettings, title: "service settings", single: true},
	"auth-settings":    {kind: catalog.KindAuthSettings, title: "auth settings", single: true},
	"smtp-config": {kind: catalog.KindSMTPConfig, title: "SMTP config", single: true, set: func(x *control) {
		if x.Name == "tlsEnabled" {
			x.proposed = "yes"
		}
	}},
	"template": {kind: catalog.KindTemplate, title: "template", byCode: true,
		set: func(x *control) { x.fixed = x.Name == "code" }},
	"key":     {kind: catalog.KindKey, title: "key", apart: true, live: true, set: (*control).expiry},
	"webhook": {kind: catalog.KindWebhook, title: "webhook", apart: true, byName: true, set: (*control).webhook},
}

// Title is what people call a kind, "" if it is unknown.
func Title(kind string) string { return kinds[kind].title }

// Live reports whether a change of the kind cannot be proposed.
func Live(kind string) bool { return kinds[kind].live }

// fields lists the fields of something new.
func (k *kind) fields() noun {
	switch k.kind {
	case catalog.KindKey:
		return keyFields()
	case catalog.KindWebhook:
		return webhookFields()
	}
	return NameFirst(catalog.NewFields(k.kind))
}

// NameFirst puts a project's name before its slug, which is made of it.
func NameFirst(fields noun) noun {
	if len(fields) > 1 && fields[0].Name == "slug" {
		fields[0], fields[1] = fields[1], fields[0]
	}
	return fields
}

// keyFields lists the fields of a request for a key: those of the key that it chooses, and for how long.
func keyFields() noun {
	asked := []string{"name", "allow", "projects", "owner"}
	return append(slices.DeleteFunc(new(catalog.Key).AllFields(), func(f catalog.Field) bool {
		return !slices.Contains(asked, f.Name)
	}), catalog.Field{Name: "expiresIn", Value: new(string), Label: "Expires"},
		catalog.Field{Name: "expiresAt", Value: new(string), Label: "Day",
			Help: "The key ends with this day, in UTC."})
}

// firstDomain is the field of the form for a new project that names its domains.
const firstDomain = "domains"

// beginProject adds it, and has the slug follow from the name.
func (f *Form) beginProject() {
	f.Field("name").Suggests = "slug"
	f.Fields = append(f.Fields, Field{control: control{Type: "names", Field: catalog.Field{
		Name: firstDomain, Value: []string{}, Label: "First domain",
		Help: "Such as shop.example.com, its primary domain. It can be left empty."}}})
}

// A control is how a field of a kind is shown, the same in each of its forms. Its Value is what the API sets where a
// request does not have the field.
type control struct {
	catalog.Field
	Type     string   // text, textarea, code, number, select, password, labels, slugs, names, permissions
	Choices  []Choice // of a select, or permissions
	Words    []Choice // that a list may hold, where they are known
	proposed string   // what a form for something new begins with; "": its Value
	kept     string   // Help of something that exists; "": Help
	later    bool     // something new has no such field
	fixed    bool     // only something new has a choice
}

// A Choice is an option of a select, or a permission.
type Choice struct{ Value, Text string }

// controls makes the fields of a form.
func (k *kind) controls() []Field {
	var fields []Field
	for _, f := range k.fields() {
		x := Field{control: control{Field: f}}
		if x.choose(); k.set != nil {
			k.set(&x.control)
		}
		fields = append(fields, x)
	}
	return fields
}

// choose decides how the field is shown.
func (x *control) choose() {
	x.Type = "text"
	switch x.Value.(type) {
	case *bool:
		x.Type, x.Choices = "select", choicesOf("yes", "no")
	case **bool:
		x.Type, x.Choices = "select", append([]Choice{{"", x.Unset}}, choicesOf("yes", "no")...)
	case *int:
		x.Type = "number"
	case *catalog.Secret:
		x.Type = "password"
	case *[]catalog.Label:
		x.Type = "labels"
	case *catalog.Locales:
		x.Type = "locales" // never shown, see languages
	case *[]string:
		x.Type = "slugs"
	case []string:
		if x.Type = "slugs"; x.OneOf != nil {
			x.Type, x.Choices = "permissions", PermissionsOf(x.OneOf)
		}
		return
	}
	switch {
	case x.Verbatim:
		x.Type = "code"
	case x.Lines:
		x.Type = "textarea"
	case x.OneOf != nil:
		x.Type, x.Choices = "select", choicesOf(x.OneOf...)
		if x.Unset != "" {
			x.Choices = append([]Choice{{"", x.Unset}}, x.Choices...)
		}
	}
}

// yesOrNo reports whether the texts "yes" and "no" are true and false.
func (x *control) yesOrNo() bool {
	switch x.Value.(type) {
	case *bool, **bool:
		return true
	}
	return false
}

// nullable reports whether no text means null.
func (x *control) nullable() bool {
	switch x.Value.(type) {
	case **bool, **string, *[]string:
		return true
	}
	return false
}

// PermissionsOf makes choices of permissions that say what each is for.
func PermissionsOf(words []string) (choices []Choice) {
	for _, w := range words {
		choices = append(choices, Choice{w, w + ": " + catalog.PermissionHelp[slices.Index(catalog.Permissions, w)]})
	}
	return choices
}

func choicesOf(words ...string) (choices []Choice) {
	for _, w := range words {
		choices = append(choices, Choice{w, w})
	}
	return choices
}

// TextOf returns a field's value as a form shows it. A secret is never shown, and no number of a form may be 0.
func TextOf(f catalog.Field) string {
	switch list := f.Value.(type) {
	case []string:
		return say.Text(list)
	case *[]string:
		if *list != nil && len(*list) == 0 {
			return emptyList
		}
		return strings.Join(*list, "\n")
	}
	switch v := f.Plain().(type) {
	case catalog.Secret:
		return ""
	case catalog.Locales:
		return strings.Join(v.Tags(), ", ")
	case []catalog.Label:
		lines := make([]string, len(v))
		for i, l := range v {
			lines[i] = l.Name + "=" + l.Value
		}
		return strings.Join(lines, "\n")
	case int:
		if v == 0 {
			return ""
		}
		return say.Text(v)
	default:
		return say.Text(v)
	}
}

// named returns the field of a name, nil if there is none.
func named(fields noun, name string) *catalog.Field {
	i := slices.IndexFunc(fields, func(f catalog.Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &fields[i]
}
