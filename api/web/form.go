package web

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"fingerpost/resolver/catalog"
)

// ReadOnlyFields are fields of answers that requests may carry too, because a client may send an answer back.
var ReadOnlyFields = []string{"id", "uuid", "projectId", "createdAt", "updatedAt"}

// A Form reads a request's body into nouns. It collects every problem, not just the first.
type Form struct {
	Body     *Object
	Problems catalog.Problems
	Bad      map[string]bool // fields that have a problem
}

// NewForm makes a Form of a body, with the problems that were found in reading it.
func NewForm(body *Object, problems catalog.Problems) *Form {
	return &Form{Body: body, Problems: problems, Bad: map[string]bool{}}
}

// ReadForm reads the body. fields are those that the call takes; readOnly are further fields of answers, next to those
// that all have.
func (r *Request) ReadForm(fields []string, readOnly ...string) (*Form, error) {
	body, problems, err := r.ReadBody(fields, append(readOnly, ReadOnlyFields...))
	if err != nil {
		return nil, err
	}
	return NewForm(body, problems), nil
}

// Has reports whether the body has a field.
func (f *Form) Has(name string) bool {
	_, given := f.Body.Values[name]
	return given
}

// Fill sets the named fields of a noun that the body has. Null clears a nullable field.
func (f *Form) Fill(fields []catalog.Field, names ...string) {
	for _, field := range fields {
		if slices.Contains(names, field.Name) {
			f.Read(field.Name, field.Value)
		}
	}
}

// Read sets to, a pointer as in catalog.Field, if the body has the field.
func (f *Form) Read(name string, to any) {
	value, given := f.Body.Values[name]
	if !given {
		return
	}
	switch to := to.(type) {
	case *bool:
		if v, ok := value.(bool); ok {
			*to = v
		} else {
			f.Fail(name, "must be true or false")
		}
	case *int:
		n, isNumber := value.(json.Number)
		if v, err := strconv.Atoi(string(n)); isNumber && err == nil {
			*to = v
		} else {
			f.Fail(name, "must be a whole number")
		}
	case *string:
		if v, ok := value.(string); ok {
			*to = v
		} else {
			f.Fail(name, "must be a string")
		}
	case **string:
		v, ok := value.(string)
		switch {
		case ok:
			*to = &v
		case value == nil:
			*to = nil
		default:
			f.Fail(name, "must be a string or null")
		}
	case **bool:
		v, ok := value.(bool)
		switch {
		case ok:
			*to = &v
		case value == nil:
			*to = nil
		default:
			f.Fail(name, "must be true, false or null")
		}
	case *[]catalog.Label:
		f.readLabels(name, value, to)
	case *catalog.Locales:
		f.readLocales(name, value, to)
	case *[]string:
		f.readTexts(name, value, to)
	}
}

// readTexts reads a list of strings. Null and [] clear it.
func (f *Form) readTexts(name string, value any, to *[]string) {
	list, ok := value.([]any)
	if !ok && value != nil {
		f.Fail(name, "must be a list of strings, or null")
		return
	}
	*to = nil
	for _, element := range list {
		text, ok := element.(string)
		if !ok {
			f.Fail(name, "must be a list of strings, or null")
		}
		*to = append(*to, text)
	}
}

// Moment sets to, if the body has the field: a time in the format of answers.
func (f *Form) Moment(name string, to *time.Time) {
	if !f.Has(name) {
		return
	}
	text, _ := f.Body.Values[name].(string)
	var ok bool
	if *to, ok = ParseMoment(text); !ok {
		f.Fail(name, momentRule)
	}
}

// FillOptional is Read for an optional text. Null and "" both clear it.
func (f *Form) FillOptional(name string, to *string) {
	if value, given := f.Body.Values[name]; given && value == nil {
		*to = ""
	} else {
		f.Read(name, to)
	}
}

// Again returns a copy for reading the body into another noun, with the problems found so far.
func (f *Form) Again() *Form {
	return &Form{Body: f.Body, Problems: slices.Clone(f.Problems), Bad: maps.Clone(f.Bad)}
}

// Fail adds a problem of a field, unless the field has one.
func (f *Form) Fail(name, message string) {
	if !f.Bad[name] {
		f.Bad[name] = true
		f.Problems.Addf(name, "%s", message)
	}
}

// Require adds a problem if the body lacks a field.
func (f *Form) Require(name, message string) {
	if !f.Has(name) {
		f.Fail(name, message)
	}
}

// Validated adds the problems that a noun's Validate found, and returns all problems of the form as one error, or nil.
func (f *Form) Validated(problems catalog.Problems) error {
	for _, p := range problems {
		if !p.Warning {
			f.Fail(p.Path, p.Message)
		}
	}
	if len(f.Problems) > 0 {
		return Invalid(f.Problems...)
	}
	return nil
}

// readLabels reads a project's labels, an object of strings that replaces all present ones. Null and {} remove them.
// The names and the length of the values are checked by the project's Validate.
func (f *Form) readLabels(name string, value any, to *[]catalog.Label) {
	if value == nil {
		*to = nil
		return
	}
	object, ok := value.(*Object)
	if !ok {
		f.Fail(name, "must be an object of strings, or null")
		return
	}
	var labels []catalog.Label
	for _, label := range object.Names {
		text, ok := object.Values[label].(string)
		if !ok {
			f.Fail(name+"."+label, "must be a string")
		}
		labels = append(labels, catalog.Label{Name: label, Value: text})
	}
	catalog.SortLabels(labels)
	*to = labels
}

// readLocales reads the locales of a template, an object of objects by tag that replaces all present ones. Null and {}
// remove them. A text that is not there is empty. Tags and texts are checked by package mailer/template.
func (f *Form) readLocales(name string, value any, to *catalog.Locales) {
	if value == nil {
		*to = nil
		return
	}
	object, ok := value.(*Object)
	if !ok {
		f.Fail(name, "must be an object of objects by language, or null")
		return
	}
	var locales catalog.Locales
	for _, tag := range object.Names {
		texts, ok := object.Values[tag].(*Object)
		if !ok {
			f.Fail(name+"."+tag, "must be an object with subjectTemplate, bodyHtml and bodyText")
			continue
		}
		l := catalog.Locale{Tag: tag}
		for _, field := range l.Fields() {
			text, given := texts.Values[field.Name]
			if !given {
				continue
			}
			if s, is := text.(string); is {
				*field.Value.(*string) = s
			} else {
				f.Fail(name+"."+tag+"."+field.Name, "must be a string")
			}
		}
		locales = append(locales, l)
	}
	locales.Sort()
	*to = locales
}
