package console

import (
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// A kind describes a resource: where it is, and its fields.
type kind struct {
	title  string
	mail   bool
	list   string // path of the collection, "%s" is the project
	single bool   // a project has one
	live   bool   // a change of it cannot be proposed
	byCode bool   // it is saved by its code, so that a default becomes the project's own; origins are not known
	part   string // of the answer with view=full that has its values and origins; "": it is the answer itself
	fields []field
}

// A control is how a field of a kind is shown, the same in each of its forms. Its Value is what the API sets where a
// request does not have the field.
type control struct {
	catalog.Field
	Type     string   // text, textarea, code, number, select, password, labels, slugs, permissions
	Choices  []choice // of a select, or permissions
	proposed string   // what a form for something new begins with; "": its Value
	later    bool     // something new has no such field
	fixed    bool     // only something new has a choice
	fullOnly bool     // only view=full shows it; the ETag covers it
}

// A choice is an option of a select, or a permission.
type choice struct{ Value, Text string }

// nullable reports whether no text means null.
func (x *control) nullable() bool {
	switch x.Value.(type) {
	case **bool, **string:
		return true
	}
	return false
}

// yesOrNo reports whether the texts "yes" and "no" are true and false.
func (x *control) yesOrNo() bool {
	switch x.Value.(type) {
	case *bool, **bool:
		return true
	}
	return false
}

// editable are the resources that have forms. What a field is, its name for people and what the API sets without it come
// from the catalog, which checks requests and files by it; below is only what the calls of the API have of their own.
var editable = map[string]kind{
	"project": {title: "project", list: projectsPath, fields: fieldsOf(projectFields(), func(x *control) {
		x.later, x.fullOnly = x.Name == "status", x.Name == "labels"
	})},
	"domain": {title: "domain", list: projectsPath + "/%s/domains", part: "domains",
		fields: fieldsOf((&catalog.Domain{Active: true}).AuditFields(), nil)},
	"service-settings": {title: "service settings", list: projectsPath + "/%s/service-settings", single: true,
		part: "serviceSettings", fields: fieldsOf(new(catalog.ServiceSettings).Fields(), nil)},
	"auth-settings": {title: "auth settings", list: projectsPath + "/%s/auth-settings", single: true,
		part: "authSettings", fields: fieldsOf(new(catalog.AuthSettings).Fields(), nil)},
	"smtp-config": {title: "SMTP config", list: mailPath("%s", "/smtp-config"), mail: true, single: true,
		part: "smtpConfig", fields: fieldsOf((&catalog.SMTPConfig{Active: true}).Fields(), func(x *control) {
			if x.Name == "tlsEnabled" {
				x.proposed = "yes"
			}
		})},
	"template": {title: "template", list: mailPath("%s", "/templates"), mail: true, byCode: true,
		fields: fieldsOf((&catalog.Template{Active: true}).AuditFields(), func(x *control) {
			x.fixed = x.Name == "code"
		})},
	"key": {title: "key", list: keysPath, live: true, fields: fieldsOf(keyFields(), nil)},
}

// projectFields lists the fields of a project: the slug, which is made from the name, follows it.
func projectFields() []catalog.Field {
	fields := new(catalog.Project).AuditFields()
	fields[0], fields[1] = fields[1], fields[0]
	return fields
}

// keyFields lists the fields of a request for a key: those of the key that it chooses, and for how long.
func keyFields() []catalog.Field {
	asked := []string{"name", "allow", "projects"}
	return append(slices.DeleteFunc(new(catalog.Key).AuditFields(), func(f catalog.Field) bool {
		return !slices.Contains(asked, f.Name)
	}), catalog.Field{Name: "expiresIn", Value: new(string), Label: "Expires in",
		Help: "Such as 720h. Left empty, never."})
}

// fieldsOf makes the fields of a form from those of the noun. set may add what is particular to a field; nil: nothing.
func fieldsOf(noun []catalog.Field, set func(*control)) []field {
	fields := make([]field, len(noun))
	for i, f := range noun {
		x := &fields[i].control
		x.Field = f
		if x.typed(); set != nil {
			set(x)
		}
	}
	return fields
}

// typed chooses how the field is shown.
func (x *control) typed() {
	x.Type = "text"
	switch x.Value.(type) {
	case *bool:
		x.Type, x.Choices = "select", choicesOf("yes", "no")
	case **bool:
		x.Type, x.Choices = "select", append([]choice{{"", x.Unset}}, choicesOf("yes", "no")...)
	case *int:
		x.Type = "number"
	case *catalog.Secret:
		x.Type = "password"
	case *[]catalog.Label:
		x.Type = "labels"
	case []string:
		if x.Type = "slugs"; x.OneOf != nil {
			x.Type, x.Choices = "permissions", choicesOf(x.OneOf...)
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
	}
}

func choicesOf(words ...string) (choices []choice) {
	for _, w := range words {
		choices = append(choices, choice{w, w})
	}
	return choices
}

// textOf returns a field's value as a form shows it. A secret is never shown, and no number of a form may be 0.
func textOf(f catalog.Field) string {
	if list, is := f.Value.([]string); is {
		return strings.Join(list, ", ")
	}
	switch v := f.Plain().(type) {
	case catalog.Secret:
		return ""
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
		return text(v)
	default:
		return text(v)
	}
}
