// Package form is the form of one resource of the API: its fields, what a person has changed in them, and the edit that
// this becomes.
//
// What it promises. A field that nobody has changed is not sent, whatever has changed in the files since the form was
// shown: each field carries a mark of the value that it began with. A secret is never shown. What a field is, how people
// call it, and what the API sets without it, comes from the catalog; kinds.go adds what one form alone has.
//
// What it needs. The state of the resource from package client, and for origins what the API explains. pasted.go needs
// only a text: it finds the domain that a person pasted into a box, and for an unknown one the names that may be meant.
//
// What it does not do. It asks nothing and decides about no right: package console reads requests, calls the API, and
// renders the fields.
package form

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// A Form edits one resource of the API. Its fields are those of the API, in the same naming.
type Form struct {
	Kind        string
	Project, ID int64  // what is edited; ID 0 for something new
	Key         string // the name of what is edited, where it has that instead of an id; "" for something new
	Title, Note string
	Fields      []Field
	ETag        string // of what the form shows; "" for something new
	Delete      bool   // the form asks whether to delete it
	Back        string
	Presets     []catalog.Preset // of a new key

	of   kind
	verb client.Verb
	now  noun // what the API has; nil for something new
}

// New makes a form of a kind, without values. project is 0 for a new project and for what belongs to none. id is what At
// returns, "" for something new. It returns nil for an unknown kind.
func New(name string, project int64, id string) *Form {
	k, known := kinds[name]
	if !known {
		return nil
	}
	f := &Form{Kind: name, Project: project, Fields: k.controls(), of: k, verb: client.Create}
	if k.byName {
		f.Key = strings.Clone(id)
	} else if n, err := strconv.ParseUint(id, 10, 63); err == nil {
		f.ID = int64(n)
	}
	if k.kind == catalog.KindProject {
		if f.ID = project; f.ID == 0 {
			f.beginProject()
		}
	}
	return f
}

// IsNew reports whether the form makes something new for certain: a project has one of some kinds, which may be there.
func (f *Form) IsNew() bool { return f.ID == 0 && f.Key == "" && !f.of.single }

// At returns the id or the name of what is edited, "" for something new.
func (f *Form) At() string {
	if f.ID != 0 {
		return strconv.FormatInt(f.ID, 10)
	}
	return f.Key
}

// Apart reports whether what is edited belongs to no project.
func (f *Form) Apart() bool { return f.of.apart }

// Single reports whether a project has one of the kind, or none yet.
func (f *Form) Single() bool { return f.of.single }

// Explained reports whether the API explains where the values of the kind come from.
func (f *Form) Explained() bool { return !f.of.byCode && !f.of.apart }

// Exists reports whether the form shows something that the API has.
func (f *Form) Exists() bool { return f.now != nil }

// Object names what the form edits.
func (f *Form) Object() client.Object {
	return client.Object{Kind: f.of.kind, Project: f.Project, ID: f.ID, Key: f.Key}
}

// Called returns the name by which the audit trail knows what is edited, "" where the project has one of the kind.
func (f *Form) Called() string {
	if f.Key != "" {
		return f.Key
	}
	for _, name := range []string{"domain", "code"} {
		if x := f.Field(name); x != nil {
			return x.was
		}
	}
	return ""
}

// A Field is a field of a Form.
type Field struct {
	control
	Text        string // the value
	Placeholder string
	Origin      string // where the value is said
	ReadOnly    string // why it cannot be changed here; "" if it can
	Call        string // that gives a secret in the file, such as env("NAME"); "": none
	Seals       bool   // what the person enters takes the place of Call
	Error       string
	Suggests    string // the name of the field that follows from this one while a person types
	Suggested   string // what follows from the other field

	was     string // what the form shows before a person changes it
	base    string // what the API sets or keeps without the field
	own     bool   // a line of the project's block says it
	touched bool   // the person has changed it
}

// Options lists the choices, with the present value if it is none of them: it is shown and kept.
func (f Field) Options() []Choice {
	if slices.ContainsFunc(f.Choices, func(c Choice) bool { return c.Value == f.Text }) {
		return f.Choices
	}
	return append([]Choice{{f.Text, f.Text}}, f.Choices...)
}

// Has reports whether a permission is in the list.
func (f Field) Has(permission string) bool {
	return slices.Contains(strings.Split(f.Text, ", "), permission)
}

// SuggestSlug gives a new project the slug that follows from its name. A slug other than the one that was suggested
// before is a person's, and stays.
func (f *Form) SuggestSlug(before string) {
	name := f.Field("name")
	if name == nil || name.Suggests == "" {
		return
	}
	slug := f.Field(name.Suggests)
	if slug.Suggested = catalog.SlugOf(name.Text); slug.Text == before {
		slug.Text = slug.Suggested
	}
}

// begin shows a value.
func (f *Field) begin(value string) { f.Text, f.was, f.base = value, value, value }

// Wrong lists the fields with something wrong.
func (f *Form) Wrong() (list []Field) {
	for _, x := range f.Fields {
		if x.Error != "" {
			list = append(list, x)
		}
	}
	return list
}

// Field returns the field of a name.
func (f *Form) Field(name string) *Field {
	i := slices.IndexFunc(f.Fields, func(x Field) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Fields[i]
}

// asSent returns a text as a browser sends it back if nobody has changed it: a line has no line ends, and those of a
// text area are of one kind. Spaces around a line are no change.
func (f Field) asSent(text string) string {
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
func (f Field) Mark() string {
	sum := sha256.Sum256([]byte(f.asSent(f.was)))
	return hex.EncodeToString(sum[:8])
}

// markPrefix begins the names of the fields with the marks.
const markPrefix = "was."

// sealPrefix begins the names of the check boxes that seal a value in place of the call that gives it.
const sealPrefix = "seal."

// TakeTheirs is the name of the check boxes whose values name fields that stay as they are now, whatever was sent.
const TakeTheirs = "theirs"

// Fill takes the values that a person has sent. A field that was not sent is untouched.
func (f *Form) Fill(sent url.Values) {
	for i := range f.Fields {
		x := &f.Fields[i]
		values, given := sent[x.Name]
		if x.Type == "permissions" { // of check boxes only the set ones are sent
			values, given = []string{strings.Join(values, ", ")}, true
		}
		if !given || x.ReadOnly != "" || slices.Contains(sent[TakeTheirs], x.Name) {
			continue
		}
		x.Seals = x.Call != "" && sent.Get(sealPrefix+x.Name) != ""
		value := x.asSent(values[0])
		was := x.Mark()
		if mark := sent.Get(markPrefix + x.Name); mark != "" {
			was = mark
		}
		if x.touched = (Field{control: x.control, was: value}).Mark() != was; !x.touched {
			continue
		}
		crlf := strings.Count(x.was, "\r\n")
		if x.Text = value; x.Verbatim && crlf > 0 && crlf == strings.Count(x.was, "\n") {
			x.Text = strings.ReplaceAll(value, "\n", "\r\n") // the other lines stay as they are
		}
	}
}

// sends reports whether the API gets a field: it was touched, or the API would change it otherwise.
func (f *Form) sends(x *Field) bool {
	switch {
	case x.ReadOnly != "":
		return false
	case x.touched:
		return true
	case f.now == nil:
		return x.Text != x.base
	}
	leader := f.Field(x.Follows)
	return leader != nil && leader.touched && x.own
}

// Touched reports whether the person has changed a field.
func (f *Form) Touched() bool {
	return slices.ContainsFunc(f.Fields, func(x Field) bool { return x.touched })
}

// Body returns what the person has changed, nil for nothing, so that nothing else is touched. ok is false if a field is
// not what it should be.
func (f *Form) Body() (body map[string]any, ok bool) {
	if body, ok = map[string]any{}, f.sealed(); !ok {
		return nil, false
	}
	if !f.Touched() {
		return nil, true
	}
	for i := range f.Fields {
		x := &f.Fields[i]
		if !f.sends(x) {
			continue
		}
		if isLocale(x.Name) {
			body[localesField] = nil
			continue
		}
		if body[x.Name], x.Error = x.sent(f.now); x.Error != "" {
			ok = false
		}
		if x.Seals {
			body[catalog.SealField(x.Name)] = true
		}
	}
	if _, sends := body[localesField]; sends {
		locales, named := f.locales()
		body[localesField], ok = locales, ok && named
	}
	if f.of.byCode {
		body["code"] = f.Field("code").Text
	}
	return body, f.expires(body) && ok
}

// Whole returns all fields that have a value, for a call that uses nothing stored.
func (f *Form) Whole() (body map[string]any, ok bool) {
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
func (f *Field) sent(now noun) (value any, bad string) {
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
		if f.Text == emptyList {
			return []string{}, ""
		}
		return strings.Fields(strings.ReplaceAll(f.Text, ",", " ")), ""
	}
	return f.Text, ""
}

// labels reads the lines of labels. The value of a label whose line is as it was shown stays exactly as it is.
func (f *Field) labels(now *catalog.Field) (labels map[string]string, bad string) {
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

// Edit returns what a save does, without its fields: only if what the form shows is still there, or still is not.
func (f *Form) Edit(etag string) client.Edit {
	k := f.of
	e := client.Edit{Object: f.Object(), Verb: f.verb, IfMatch: etag}
	if k.byCode {
		e.ID = 0
	}
	// Without an ETag the calls of the mail API change what exists.
	e.IfNew = etag == "" && f.now == nil && (k.kind == catalog.KindSMTPConfig || k.kind == catalog.KindTemplate)
	return e
}
