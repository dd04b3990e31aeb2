package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver/catalog"
)

// readOnlyFields are those that answers have and requests need not leave out, so that a client may send back what it
// read (api/README.md, Requests).
var readOnlyFields = []string{"id", "uuid", "projectId", "createdAt", "updatedAt"}

// A form is a request's body as it is read into nouns. It gathers all that is wrong.
type form struct {
	body     *object
	problems catalog.Problems
	bad      map[string]bool // the fields that have problems
}

// readForm reads the body, which may have the named fields.
func readForm(ctx *fasthttp.RequestCtx, names ...string) (*form, error) {
	body, err := readBody(ctx)
	if err != nil {
		return nil, err
	}
	f := &form{body: body, bad: map[string]bool{}}
	body.unknownFields(&f.problems, &ctx.Request.Header, append(slices.Clone(names), readOnlyFields...)...)
	return f, nil
}

// has reports whether a field is given.
func (f *form) has(name string) bool {
	_, given := f.body.values[name]
	return given
}

// fill sets those of a noun's fields that are named and given. Null clears a nullable one.
func (f *form) fill(fields []catalog.Field, names ...string) {
	for _, field := range fields {
		value, given := f.body.values[field.Name]
		if !given || !slices.Contains(names, field.Name) {
			continue
		}
		f.set(field, value)
	}
}

// fillOptional sets a text that may be absent, which null and "" say.
func (f *form) fillOptional(name string, to *string) {
	value, given := f.body.values[name]
	switch {
	case !given:
	case value == nil:
		*to = ""
	default:
		f.set(catalog.Field{Name: name, Value: to}, value)
	}
}

// again is the form for reading it into another noun: it knows of no problems but those of the body itself.
func (f *form) again() *form {
	return &form{body: f.body, problems: slices.Clone(f.problems), bad: maps.Clone(f.bad)}
}

// fail notes what is wrong with a field, the first thing only.
func (f *form) fail(name, message string) {
	if !f.bad[name] {
		f.bad[name] = true
		f.problems.Addf(name, "%s", message)
	}
}

func (f *form) set(field catalog.Field, value any) {
	switch to := field.Value.(type) {
	case *bool:
		if v, ok := value.(bool); ok {
			*to = v
		} else {
			f.fail(field.Name, "must be true or false")
		}
	case *int:
		n, isNumber := value.(json.Number)
		if v, err := strconv.Atoi(string(n)); isNumber && err == nil {
			*to = v
		} else {
			f.fail(field.Name, "must be a whole number")
		}
	case *string:
		if v, ok := value.(string); ok {
			*to = v
		} else {
			f.fail(field.Name, "must be a string")
		}
	case **string:
		v, ok := value.(string)
		switch {
		case ok:
			*to = &v
		case value == nil:
			*to = nil
		default:
			f.fail(field.Name, "must be a string or null")
		}
	}
}

// require notes a field that is not given.
func (f *form) require(name, message string) {
	if !f.has(name) {
		f.fail(name, message)
	}
}

// validated adds what a noun's rules say of the fields that could be read, and is the error of the whole form.
func (f *form) validated(problems catalog.Problems) error {
	for _, p := range problems {
		if !p.Warning {
			f.fail(p.Path, p.Message)
		}
	}
	if len(f.problems) > 0 {
		return invalid(f.problems...)
	}
	return nil
}
