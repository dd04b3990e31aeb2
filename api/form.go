package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"fingerpost/resolver/catalog"
)

// readOnlyFields are fields of answers that requests may carry too, because a client may send back what it has read.
var readOnlyFields = []string{"id", "uuid", "projectId", "createdAt", "updatedAt"}

// A form reads a request's body into nouns. It collects every problem, not just the first.
type form struct {
	body     *object
	problems catalog.Problems
	bad      map[string]bool // fields that have a problem
}

// readForm reads the body. fields are those that the call takes; readOnly are further fields of answers, next to those
// that all have.
func (s *Server) readForm(r *request, fields []string, readOnly ...string) (*form, error) {
	body, problems, err := s.readBody(r, fields, append(readOnly, readOnlyFields...))
	if err != nil {
		return nil, err
	}
	return &form{body: body, problems: problems, bad: map[string]bool{}}, nil
}

// has reports whether the body has a field.
func (f *form) has(name string) bool {
	_, given := f.body.values[name]
	return given
}

// fill sets the named fields of a noun that the body has. Null clears a nullable field.
func (f *form) fill(fields []catalog.Field, names ...string) {
	for _, field := range fields {
		if slices.Contains(names, field.Name) {
			f.read(field.Name, field.Value)
		}
	}
}

// read sets to, a pointer as in catalog.Field, if the body has the field.
func (f *form) read(name string, to any) {
	value, given := f.body.values[name]
	if !given {
		return
	}
	switch to := to.(type) {
	case *bool:
		if v, ok := value.(bool); ok {
			*to = v
		} else {
			f.fail(name, "must be true or false")
		}
	case *int:
		n, isNumber := value.(json.Number)
		if v, err := strconv.Atoi(string(n)); isNumber && err == nil {
			*to = v
		} else {
			f.fail(name, "must be a whole number")
		}
	case *string:
		if v, ok := value.(string); ok {
			*to = v
		} else {
			f.fail(name, "must be a string")
		}
	case **string:
		v, ok := value.(string)
		switch {
		case ok:
			*to = &v
		case value == nil:
			*to = nil
		default:
			f.fail(name, "must be a string or null")
		}
	case **bool:
		v, ok := value.(bool)
		switch {
		case ok:
			*to = &v
		case value == nil:
			*to = nil
		default:
			f.fail(name, "must be true, false or null")
		}
	case *[]catalog.Label:
		f.readLabels(name, value, to)
	}
}

// fillOptional is read for an optional text. Null and "" both clear it.
func (f *form) fillOptional(name string, to *string) {
	if value, given := f.body.values[name]; given && value == nil {
		*to = ""
	} else {
		f.read(name, to)
	}
}

// again returns a copy for reading the body into another noun, with the problems found so far.
func (f *form) again() *form {
	return &form{body: f.body, problems: slices.Clone(f.problems), bad: maps.Clone(f.bad)}
}

// fail adds a problem of a field, unless the field has one.
func (f *form) fail(name, message string) {
	if !f.bad[name] {
		f.bad[name] = true
		f.problems.Addf(name, "%s", message)
	}
}

// require adds a problem if the body lacks a field.
func (f *form) require(name, message string) {
	if !f.has(name) {
		f.fail(name, message)
	}
}

// validated adds the problems that a noun's Validate found, and returns all problems of the form as one error, or nil.
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
