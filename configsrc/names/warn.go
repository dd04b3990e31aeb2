package names

import (
	"fmt"
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A Lower is a name below a wildcard of another project.
type Lower struct{ Name, Slug, File string }

// maxLower is how many names one warning lists: /status, the log and each reload carry its text.
const maxLower = 100

// Overlap makes the warning in the wildcard's file. It sorts lower.
func Overlap(in *hclfile.Result, wildcard string, project int64, lower []Lower) hclfile.Diagnostic {
	slices.SortFunc(lower, func(a, b Lower) int { return strings.Compare(a.Name, b.Name) })
	var list []string
	for _, n := range lower[:min(len(lower), maxLower)] {
		list = append(list, fmt.Sprintf("%q of project %q, in %s", n.Name, n.Slug, n.File))
	}
	if more := len(lower) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	hint := "the longer name answers for its own project; if that is not meant, take one of the two out"
	if len(lower) > 1 {
		hint = "the longer names answer for their own projects; if that is not meant, take them or the wildcard out"
	}
	return in.Diagnose(catalog.Ref{Kind: catalog.KindDomain, Name: wildcard, ProjectID: project}, hclfile.Warning,
		fmt.Sprintf("wildcard %q lies above %s", wildcard, strings.Join(list, "; ")), hint)
}

// UnknownSlug makes the warning about a slug in a list of the file r. there reports whether a project has a slug.
func UnknownSlug(r *hclfile.Result, u catalog.UnknownSlug, there func(slug string) bool) hclfile.Diagnostic {
	hint := "put the project's present slug in its place, or take it out"
	if near := NearSlug(u.Slug, there); near != "" {
		hint = "did you mean `" + near + "`?"
	}
	return r.DiagnoseSlug(u, fmt.Sprintf("%s %q names the project %q, which no file declares", u.Kind, u.Name, u.Slug),
		hint)
}

// Foresee returns the warnings about wildcards and names of different projects that new domains of a project would
// bring, for its file.
func Foresee(names Declared, path string, project int64, domains []string) (ds hclfile.Diagnostics, err error) {
	warn := func(wildcard, lower string) {
		ds = append(ds, hclfile.Diagnostic{Severity: hclfile.Warning, File: path,
			Summary: fmt.Sprintf("wildcard %q would lie above %q of another project", wildcard, lower),
			Detail:  "the longer name answers for its own project; if that is not meant, choose another name"})
	}
	for _, name := range domains {
		for wildcard := range Above(name) {
			if upper, err := names.DomainNamed(wildcard); err == nil && upper.ProjectID != project {
				warn(wildcard, name)
			}
		}
		suffix, wildcard := strings.CutPrefix(name, "*.")
		if !wildcard {
			continue
		}
		lower := ""
		err := names.DomainsBelow(suffix, func(d *catalog.Domain) bool {
			if d.ProjectID != project {
				lower = strings.Clone(d.Name)
			}
			return lower == ""
		})
		if err != nil {
			return nil, err
		}
		if lower != "" {
			warn(name, lower)
		}
	}
	return ds, nil
}
