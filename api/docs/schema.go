package docs

import (
	"bytes"
	"encoding/json"
	"html/template"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// nothing stands for what a document does not have, so that steps below it need no check.
var nothing = &yaml.Node{}

// resolveReference returns what a reference within the document leads to.
func (r *reference) resolveReference(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.MappingNode {
		ref := own(n, "$ref")
		if ref == nothing {
			break
		}
		n = r.at(r.root, strings.Split(strings.TrimPrefix(ref.Value, "#/"), "/")...)
	}
	return n
}

// own returns the value of a key that a mapping has itself.
func own(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nothing
}

// at goes down by keys.
func (r *reference) at(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		if said := own(n, key); said != nothing { // next to a reference
			n = said
		} else {
			n = own(r.resolveReference(n), key)
		}
	}
	return r.resolveReference(n)
}

func (r *reference) str(n *yaml.Node, key string) string { return r.at(n, key).Value }

// prose returns the description of a node. Most of them stand in many calls.
func (r *reference) prose(n *yaml.Node) template.HTML {
	said := r.str(n, "description")
	made, known := r.made[said]
	if !known {
		made = r.text.fragment(said)
		r.made[said] = made
	}
	return made
}

// pairs returns the keys and values of a mapping in the document's order.
func (r *reference) pairs(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	n = r.resolveReference(n)
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

// A field is a parameter, a header, or a value of a body.
type field struct {
	Name, In, Type, Example string
	Required                bool
	Text                    template.HTML
}

func (r *reference) field(name string, schema *yaml.Node, required bool) field {
	return field{Name: name, Type: r.kind(schema), Required: required, Text: r.prose(schema)}
}

// maxDepth is how deep fields in fields are listed: plans of plans have no end.
const maxDepth = 5

// fields lists the values of an object, those in them as "outer.inner" and "list[].inner".
func (r *reference) fields(schema *yaml.Node, prefix string, depth int) (all []field) {
	if depth > maxDepth {
		return nil
	}
	required := r.at(schema, "required")
	for name, property := range r.pairs(r.at(schema, "properties")) {
		must := slices.ContainsFunc(required.Content, func(n *yaml.Node) bool { return n.Value == name })
		all = append(all, r.field(prefix+name, property, must))
		all = append(all, r.fields(property, prefix+name+".", depth+1)...)
	}
	for _, part := range r.at(schema, "allOf").Content {
		all = append(all, r.fields(part, prefix, depth)...)
	}
	for _, either := range []string{"anyOf", "oneOf"} {
		for _, part := range r.at(schema, either).Content { // the first that has fields: the others are for special cases
			if found := r.fields(part, prefix, depth); len(found) > 0 {
				all = append(all, found...)
				break
			}
		}
	}
	if items := r.at(schema, "items"); items.Kind != 0 {
		all = append(all, r.fields(items, strings.TrimSuffix(prefix, ".")+"[].", depth+1)...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(f field) bool { // parts of allOf say more of the same fields
		was := seen[f.Name]
		seen[f.Name] = true
		return was
	})
}

// kind says in words what a value may be.
func (r *reference) kind(schema *yaml.Node) string {
	said := r.str(schema, "type")
	if said == "array" {
		said = strings.TrimSuffix("list of "+r.kind(r.at(schema, "items")), " of ")
	}
	var choices []string
	for _, choice := range r.at(schema, "enum").Content {
		choices = append(choices, choice.Value)
	}
	for _, parts := range []string{"allOf", "anyOf", "oneOf"} {
		for _, part := range r.at(schema, parts).Content {
			if kind := r.kind(part); said == "" && kind != "" && !slices.Contains(choices, kind) {
				choices = append(choices, kind)
			}
		}
	}
	if len(choices) > 12 {
		choices = append(choices[:12], "…")
	}
	if len(choices) > 0 {
		said = strings.Join(choices, " or ")
	}
	if r.str(schema, "nullable") == "true" {
		said += " or null"
	}
	for _, bound := range []struct{ key, before, after string }{
		{"minimum", ", from ", ""}, {"maximum", " to ", ""}, {"maxLength", ", at most ", " characters"},
		{"maxItems", ", at most ", ""}, {"default", ", default ", ""},
	} {
		if value := r.str(schema, bound.key); value != "" {
			said += bound.before + value + bound.after
		}
	}
	return said
}

// shown returns an example as a person reads it: what is no text itself is JSON.
func shown(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	var b strings.Builder
	writeJSON(&b, n, "\n")
	return b.String()
}

// writeJSON writes a node as JSON, in its own order. newline is what begins a line at this depth.
func writeJSON(b *strings.Builder, n *yaml.Node, newline string) {
	open, end, step := "[", "]", 1
	switch n.Kind {
	case yaml.MappingNode:
		open, end, step = "{", "}", 2
	case yaml.SequenceNode:
	default:
		if slices.Contains([]string{"!!int", "!!float", "!!bool", "!!null"}, n.Tag) {
			b.WriteString(n.Value)
			return
		}
		var quoted bytes.Buffer
		e := json.NewEncoder(&quoted)
		e.SetEscapeHTML(false)
		_ = e.Encode(n.Value)
		b.Write(bytes.TrimSuffix(quoted.Bytes(), []byte("\n")))
		return
	}
	b.WriteString(open)
	for i := 0; i < len(n.Content); i += step {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(newline + "  ")
		if step == 2 {
			writeJSON(b, &yaml.Node{Kind: yaml.ScalarNode, Value: n.Content[i].Value}, "")
			b.WriteString(": ")
		}
		writeJSON(b, n.Content[i+step-1], newline+"  ")
	}
	if len(n.Content) > 0 {
		b.WriteString(newline)
	}
	b.WriteString(end)
}
