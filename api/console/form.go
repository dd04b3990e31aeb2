package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// A form edits one resource of the API. Its fields are those of the API, in the same naming.
type form struct {
	Kind        string
	Project, ID int64 // what is edited; ID 0 for something new
	Title, Note string
	Fields      []field
	ETag        string // of what the form shows; "" for something new
	Delete      bool   // the form asks whether to delete it
	Back        string
	Presets     []catalog.Preset // of a new key

	verb client.Verb
	now  noun // what the API has; nil for something new
}

// A field is a field of a form.
type field struct {
	control
	Text        string // the value
	Placeholder string
	Origin      string // where the value is said
	ReadOnly    string // why it cannot be changed here; "" if it can
	Error       string
	Now         string // in a conflict: what the API has by now
	Suggests    string // the name of the field that follows from this one while a person types
	Suggested   string // what follows from the other field

	was     string // what the form shows before a person changes it
	base    string // what the API sets or keeps without the field
	own     bool   // a line of the project's block says it
	touched bool   // the person has changed it
}

// Options lists the choices, with the present value if it is none of them: it is shown and kept.
func (f field) Options() []choice {
	if slices.ContainsFunc(f.Choices, func(c choice) bool { return c.Value == f.Text }) {
		return f.Choices
	}
	return append([]choice{{f.Text, f.Text}}, f.Choices...)
}

// Has reports whether a permission is in the list.
func (f field) Has(permission string) bool {
	return slices.Contains(strings.Split(f.Text, ", "), permission)
}

// suggestSlug gives a new project the slug that follows from its name. A slug other than the one that was suggested
// before is a person's, and stays.
func (f *form) suggestSlug(before string) {
	name := f.field("name")
	if name == nil || name.Suggests == "" {
		return
	}
	slug := f.field(name.Suggests)
	if slug.Suggested = catalog.SlugOf(name.Text); slug.Text == before {
		slug.Text = slug.Suggested
	}
}

// begin shows a value.
func (f *field) begin(value string) { f.Text, f.was, f.base = value, value, value }

// Wrong lists the fields with something wrong.
func (f *form) Wrong() (list []field) {
	for _, x := range f.Fields {
		if x.Error != "" {
			list = append(list, x)
		}
	}
	return list
}

// field returns the field of a name.
func (f *form) field(name string) *field {
	i := slices.IndexFunc(f.Fields, func(x field) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Fields[i]
}

// asSent returns a text as a browser sends it back if nobody has changed it: a line has no line ends, and those of a
// text area are of one kind. Spaces around a line are no change.
func (f field) asSent(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	text = strings.ReplaceAll(text, "\x00", "\ufffd") // HTML has no NUL
	switch f.Type {
	case "textarea", "code":
		return text
	case "labels", "slugs":
		return strings.Trim(text, "\n")
	}
	return strings.TrimSpace(strings.ReplaceAll(text, "\n", ""))
}

// Mark names the value that the form shows. The form carries it, so that what a person has changed is told from what
// has changed in the files since.
func (f field) Mark() string {
	sum := sha256.Sum256([]byte(f.asSent(f.was)))
	return hex.EncodeToString(sum[:8])
}

// markPrefix begins the names of the fields with the marks.
const markPrefix = "was."

// fill takes the values that a person has sent. A field that was not sent is untouched.
func (f *form) fill(sent url.Values) {
	for i := range f.Fields {
		x := &f.Fields[i]
		values, given := sent[x.Name]
		if x.Type == "permissions" { // of check boxes only the set ones are sent
			values, given = []string{strings.Join(values, ", ")}, true
		}
		if !given || x.ReadOnly != "" {
			continue
		}
		value := x.asSent(values[0])
		was := x.Mark()
		if mark := sent.Get(markPrefix + x.Name); mark != "" {
			was = mark
		}
		if x.touched = (field{control: x.control, was: value}).Mark() != was; !x.touched {
			continue
		}
		crlf := strings.Count(x.was, "\r\n")
		if x.Text = value; x.Verbatim && crlf > 0 && crlf == strings.Count(x.was, "\n") {
			x.Text = strings.ReplaceAll(value, "\n", "\r\n") // the other lines stay as they are
		}
	}
}

// sends reports whether the API gets a field: it was touched, or the API would change it otherwise.
func (f *form) sends(x *field) bool {
	switch {
	case x.ReadOnly != "":
		return false
	case x.touched:
		return true
	case f.now == nil:
		return x.Text != x.base
	}
	leader := f.field(x.Follows)
	return leader != nil && leader.touched && x.own
}

// touched reports whether the person has changed a field.
func (f *form) touched() bool {
	return slices.ContainsFunc(f.Fields, func(x field) bool { return x.touched })
}

// body returns what the person has changed, nil for nothing, so that nothing else is touched. ok is false if a field is
// not what it should be.
func (f *form) body() (body map[string]any, ok bool) {
	if !f.touched() {
		return nil, true
	}
	body, ok = map[string]any{}, true
	for i := range f.Fields {
		if x := &f.Fields[i]; f.sends(x) {
			if body[x.Name], x.Error = x.sent(f.now); x.Error != "" {
				ok = false
			}
		}
	}
	if editable[f.Kind].byCode {
		body["code"] = f.field("code").Text
	}
	return body, ok
}

// whole returns all fields that have a value, for a call that uses nothing stored.
func (f *form) whole() (body map[string]any, ok bool) {
	body, ok = map[string]any{}, true
	for i := range f.Fields {
		if x := &f.Fields[i]; x.ReadOnly == "" && !x.FileOnly && x.Text != "" {
			if body[x.Name], x.Error = x.sent(nil); x.Error != "" {
				ok = false
			}
		}
	}
	return body, ok
}

// sent returns a field's value for the API, and what is wrong with it. now is what the API has.
func (f *field) sent(now noun) (value any, bad string) {
	switch {
	case f.nullable() && f.Text == "":
		return nil, ""
	case f.yesOrNo() && (f.Text == "yes" || f.Text == "no"):
		return f.Text == "yes", ""
	}
	switch f.Type {
	case "number":
		if f.Text == "" || strings.Trim(f.Text, "0123456789") != "" {
			return nil, "must be a number"
		}
		return json.Number(f.Text), ""
	case "labels":
		return f.labels(named(now, f.Name))
	case "permissions":
		return strings.Split(f.Text, ", "), ""
	case "slugs", "names":
		return strings.Fields(strings.ReplaceAll(f.Text, ",", " ")), ""
	}
	return f.Text, ""
}

// labels reads the lines of labels. The value of a label whose line is as it was shown stays exactly as it is.
func (f *field) labels(now *catalog.Field) (labels map[string]string, bad string) {
	had := map[string]string{}
	if now != nil {
		for _, l := range *now.Value.(*[]catalog.Label) {
			had[l.Name] = l.Value
		}
	}
	labels = map[string]string{}
	for l := range strings.Lines(f.Text) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		name, value, named := strings.Cut(l, "=")
		if !named {
			return nil, "each line must be name=value"
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		labels[name] = value
		if had, has := had[name]; has && strings.TrimSpace(had) == value {
			labels[name] = had
		}
	}
	return labels, ""
}

// edit returns what a save does, without its fields: only if what the form shows is still there, or still is not.
func (f *form) edit(etag string) client.Edit {
	k := editable[f.Kind]
	e := client.Edit{Object: k.object(f.Project, f.ID), Verb: f.verb, IfMatch: etag}
	if k.byCode {
		e.ID = 0
	}
	// Without an ETag the calls of the mail API change what exists.
	e.IfNew = etag == "" && f.now == nil && (k.kind == catalog.KindSMTPConfig || k.kind == catalog.KindTemplate)
	return e
}
