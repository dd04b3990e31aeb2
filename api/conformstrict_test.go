package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ofHTTP are header fields of the transport, which OpenAPI leaves out.
var ofHTTP = []string{"Connection", "Content-Length", "Content-Type", "Date", "Server", "Transfer-Encoding"}

// ofEveryAnswer are header fields that the document's first text describes for all calls.
var ofEveryAnswer = []string{"Cache-Control", "Vary", "X-Config-Generation", "X-Config-Position", "X-Ignored-Fields"}

// conformNothingElse finds what an answer has and its description does not mention: header fields, and fields of objects.
// A generated client has no name for them.
func (a *asked) conformNothingElse(r docNode) (err error) {
	if r.value == nil {
		return nil
	}
	named := append(r.get("headers").keys(), ofHTTP...)
	for name := range a.answer {
		is := func(other string) bool { return http.CanonicalHeaderKey(other) == name }
		if !slices.ContainsFunc(named, is) && !strings.HasPrefix(name, "X-Label-") &&
			!slices.Contains(ofEveryAnswer, name) {
			err = errors.Join(err, fmt.Errorf("the document does not mention the response header %s: %s", name, a.answer[name]))
		}
	}
	if schema := r.get("content", "application/json", "schema"); schema.value != nil && len(a.answerBody) > 0 {
		value, bad := jsonschema.UnmarshalJSON(bytes.NewReader(a.answerBody))
		if bad != nil {
			return errors.Join(err, bad)
		}
		for _, field := range slices.Compact(unmentioned([]docNode{schema}, value, "")) {
			err = errors.Join(err, fmt.Errorf("the document does not mention the field %s", field))
		}
	}
	return err
}

// unmentioned lists the fields of a value that none of its schemas names.
func unmentioned(schemas []docNode, value any, at string) (found []string) {
	schemas = allParts(schemas)
	switch v := value.(type) {
	case []any:
		var items []docNode
		for _, s := range schemas {
			items = append(items, s.get("items"))
		}
		for _, item := range v {
			found = append(found, unmentioned(items, item, at+"[]")...)
		}
	case map[string]any:
		for name, x := range v {
			under := fieldSchemas(schemas, name)
			if len(under) == 0 {
				found = append(found, at+"."+name)
			}
			found = append(found, unmentioned(under, x, at+"."+name)...)
		}
	}
	slices.Sort(found)
	return found
}

// fieldSchemas returns the schemas of a field of an object.
func fieldSchemas(schemas []docNode, name string) (of []docNode) {
	for _, s := range schemas {
		field, others := s.get("properties", name), s.get("additionalProperties")
		switch {
		case field.value != nil:
			of = append(of, field)
		case others.value != nil && others.value != false, s.takesAll():
			of = append(of, others)
		}
	}
	return of
}

// takesAll reports whether a schema restricts nothing: every value of JSON has it.
func (n docNode) takesAll() bool {
	m, is := n.value.(map[string]any)
	for _, word := range []string{"type", "properties", "enum", "allOf", "oneOf", "anyOf"} {
		is = is && m[word] == nil
	}
	return is
}

// allParts adds the schemas of which others are made.
func allParts(schemas []docNode) (all []docNode) {
	for _, s := range schemas {
		if all = append(all, s); s.value == nil || s.value == true {
			continue
		}
		for _, word := range []string{"allOf", "oneOf", "anyOf"} {
			all = append(all, allParts(s.get(word).items())...)
		}
	}
	return all
}
