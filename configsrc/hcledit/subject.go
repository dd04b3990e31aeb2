package hcledit

import (
	"fmt"
	"strings"

	"fingerpost/resolver/catalog"
)

// Subject says in one line what differs between two states of a file, as the plan does: "acme: name,
// two_factor_required = true, + domain new.acme.example". Projects in which the same differs are told together: "acme,
// globex: status", or "12 projects: status". It is empty if nothing differs.
func Subject(was, is *catalog.Declared) string {
	var s subject
	changes := catalog.Changes(was, is)
	for len(changes) > 0 {
		n := 1
		if id := changes[0].Object().ProjectID; id != 0 {
			for n < len(changes) && changes[n].Object().ProjectID == id {
				n++
			}
		}
		s.add(changes[:n])
		changes = changes[n:]
	}
	return s.String()
}

// maxNamed is how many projects with the same differences are named; of more, the number is told.
const maxNamed = 3

// maxFieldWords is how many fields of a block are named; of more, only the block is.
const maxFieldWords = 3

// A subject collects the parts of a Subject.
type subject struct {
	parts []string            // the words of projects that changed, and whole parts
	alike map[string][]string // the slugs of projects by their words
	last  []string            // the parts that come after those of all projects which are still there
}

// add adds the changes of one project, or one of what belongs to no project.
func (s *subject) add(changes []catalog.ObjectChange) {
	first := &changes[0]
	o := first.Object()
	switch {
	case o.ProjectID == 0:
		s.last = append(s.last, objectWords(first)...)
	case o.Kind == catalog.KindProject && first.Was == nil:
		s.parts = append(s.parts, "+ project "+o.Slug)
	case o.Kind == catalog.KindProject && first.Is == nil:
		s.last = append(s.last, "- project "+o.Slug)
	default:
		slug := o.Slug
		if o.Kind == catalog.KindProject {
			slug = first.Was.Slug
		}
		var words []string
		for i := range changes {
			words = append(words, objectWords(&changes[i])...)
		}
		text := strings.Join(words, ", ")
		if text == "" {
			return
		}
		if s.alike == nil {
			s.alike = map[string][]string{}
		}
		if s.alike[text] == nil {
			s.parts = append(s.parts, text)
		}
		s.alike[text] = append(s.alike[text], slug)
	}
}

func (s *subject) String() string {
	for i, words := range s.parts {
		switch slugs := s.alike[words]; {
		case len(slugs) > maxNamed:
			s.parts[i] = fmt.Sprintf("%d projects: %s", len(slugs), words)
		case slugs != nil:
			s.parts[i] = strings.Join(slugs, ", ") + ": " + words
		}
	}
	return strings.Join(append(s.parts, s.last...), "; ")
}

// objectWords says what differs in an object: the fields of a project and of its blocks, of all else that it does.
func objectWords(c *catalog.ObjectChange) []string {
	o := c.Object()
	name := strings.TrimSpace(string(o.Kind) + " " + o.Name)
	switch {
	case c.Was == nil:
		return []string{"+ " + name}
	case c.Is == nil:
		return []string{"- " + name}
	case len(c.Fields) == 0:
		return nil
	case o.Kind == catalog.KindProject:
		var words []string
		for _, f := range c.Fields {
			words = append(words, catalog.Snake(f.Field))
		}
		return words
	case o.Kind == catalog.KindSMTPConfig:
		return fieldWords(c, name+" ")
	case o.Kind.Lasts():
		return fieldWords(c, "")
	case c.Was.Name != o.Name:
		return []string{"+ " + name, "- " + string(o.Kind) + " " + c.Was.Name}
	}
	return []string{"~ " + name}
}

// fieldWords lists the fields of a block that differ, a switch or a number with its value: "two_factor_required = true".
func fieldWords(c *catalog.ObjectChange, prefix string) (words []string) {
	if len(c.Fields) > maxFieldWords {
		return []string{string(c.Is.Kind)}
	}
	for _, f := range c.Fields {
		word := prefix + catalog.Snake(f.Field)
		switch f.After.(type) {
		case bool, int64:
			word += fmt.Sprint(" = ", f.After)
		}
		words = append(words, word)
	}
	return words
}
