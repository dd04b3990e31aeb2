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
	var parts []string
	alike := map[string][]string{} // slugs by what differs
	projects := map[catalog.UUID]*catalog.ProjectConfig{}
	for i := range was.Projects {
		projects[was.Projects[i].Project.UUID] = &was.Projects[i]
	}
	for i := range is.Projects {
		p := &is.Projects[i]
		had := projects[p.Project.UUID]
		delete(projects, p.Project.UUID)
		if had == nil {
			parts = append(parts, "+ project "+p.Project.Slug)
		} else if words := strings.Join(projectWords(had, p), ", "); words != "" {
			if alike[words] == nil {
				parts = append(parts, words)
			}
			alike[words] = append(alike[words], had.Project.Slug)
		}
	}
	for i, words := range parts {
		switch slugs := alike[words]; {
		case len(slugs) > maxNamed:
			parts[i] = fmt.Sprintf("%d projects: %s", len(slugs), words)
		case slugs != nil:
			parts[i] = strings.Join(slugs, ", ") + ": " + words
		}
	}
	for i := range was.Projects {
		if p := &was.Projects[i]; projects[p.Project.UUID] != nil {
			parts = append(parts, "- project "+p.Project.Slug)
		}
	}
	parts = append(parts, differing("key", was.Keys, is.Keys, func(k *catalog.Key) (string,
		[]catalog.Field) {
		return k.Name, k.AllFields()
	})...)
	return strings.Join(parts, "; ")
}

// projectWords lists what differs between two states of a project.
func projectWords(had, p *catalog.ProjectConfig) (words []string) {
	for _, c := range catalog.FieldChanges(had.Project.AllFields(), p.Project.AllFields()) {
		words = append(words, catalog.Snake(c.Field))
	}
	words = append(words, differing("domain", had.Domains, p.Domains, func(d *catalog.Domain) (string,
		[]catalog.Field) {
		return d.Name, d.AllFields()
	})...)
	words = append(words, fieldWords("service_settings", "", had.Service.Fields(), p.Service.Fields())...)
	words = append(words, fieldWords("auth_settings", "", had.Auth.Fields(), p.Auth.Fields())...)
	switch {
	case had.SMTP == nil && p.SMTP != nil:
		words = append(words, "+ smtp_config")
	case had.SMTP != nil && p.SMTP == nil:
		words = append(words, "- smtp_config")
	case had.SMTP != nil && *had.SMTP != *p.SMTP:
		words = append(words, fieldWords("smtp_config", "smtp_config ", had.SMTP.Fields(), p.SMTP.Fields())...)
	}
	return append(words, differing("template", had.Templates, p.Templates,
		func(t *catalog.Template) (string, []catalog.Field) { return t.Code, t.AllFields() })...)
}

// maxNamed is how many projects with the same differences are named; of more, the number is told.
const maxNamed = 3

// maxFieldWords is how many fields of a block are named; of more, only the block is.
const maxFieldWords = 3

// fieldWords lists the fields of a block that differ, a switch or a number with its value: "two_factor_required = true".
func fieldWords(block, prefix string, had, is []catalog.Field) (words []string) {
	changes := catalog.FieldChanges(had, is)
	if len(changes) > maxFieldWords {
		return []string{block}
	}
	for _, c := range changes {
		word := prefix + catalog.Snake(c.Field)
		switch c.After.(type) {
		case bool, int64:
			word += fmt.Sprint(" = ", c.After)
		}
		words = append(words, word)
	}
	return words
}

// differing lists the nouns of a kind that were added, changed or removed. of returns a noun's name and fields.
func differing[T any](kind string, was, is []T, of func(*T) (string, []catalog.Field)) (words []string) {
	before := map[string][]catalog.Field{}
	for i := range was {
		name, fields := of(&was[i])
		before[name] = fields
	}
	for i := range is {
		name, fields := of(&is[i])
		had, known := before[name]
		delete(before, name)
		switch {
		case !known:
			words = append(words, fmt.Sprintf("+ %s %s", kind, name))
		case len(catalog.FieldChanges(had, fields)) > 0:
			words = append(words, fmt.Sprintf("~ %s %s", kind, name))
		}
	}
	for i := range was {
		if name, _ := of(&was[i]); before[name] != nil {
			words = append(words, fmt.Sprintf("- %s %s", kind, name))
		}
	}
	return words
}
