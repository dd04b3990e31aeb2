package offline

import (
	"fmt"
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// warnOfSharedTokens warns of projects for which the same tokens are good: those without projectId, where issuer and keys
// are the same, and no audience tells the projects apart (configsrc/tokens.md).
func warnOfSharedTokens(files []File) (ds hclfile.Diagnostics) {
	_, defaults := defaultsOf(files)
	first := map[string]string{} // the slug of the first project, by issuer and key
	for i := range files {
		for j := range files[i].Declared.Projects {
			p := &files[i].Declared.Projects[j]
			_, auth := defaults.InForce(p)
			r := &auth.Rules
			if r.Audience != nil || !r.Asymmetric() || !auth.OwnRules() {
				continue
			}
			other := ""
			for _, key := range slices.Concat(r.Keys, keySet(r)) {
				same := *r.Issuer + "\x00" + strings.TrimSpace(key)
				if slug, known := first[same]; known && slug != p.Project.Slug {
					other = slug
				} else {
					first[same] = p.Project.Slug
				}
			}
			if other != "" {
				ref := catalog.Ref{Kind: catalog.KindAuthSettings, ProjectID: p.Project.ID}
				ds = append(ds, files[i].positions().Diagnose(ref, hclfile.Warning,
					fmt.Sprintf("tokens without projectId are good for project %q and for project %q: they have the same issuer "+
						"and keys, and no audience", other, p.Project.Slug),
					"give each a jwt_audience of its own"))
			}
		}
	}
	return ds
}

func keySet(r *catalog.TokenRules) []string {
	if r.KeySetURL == nil {
		return nil
	}
	return []string{*r.KeySetURL}
}
