package judge

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// copyNames are the names that file managers, sync programs and merge tools give to copies.
var copyNames = regexp.MustCompile(`(?i)^(copy|kopie) (of|von) |` + // Google Drive, old Windows
	`( -)?[ _-](copy|kopie)([ _-]?\(?\d+\)?)?\.hcl$|` + // macOS, Windows
	` ?\(\d+\)\.hcl$|` + // browsers
	`\(.*(conflicted copy|case conflict).*\)|` + // Dropbox, Nextcloud
	`\.sync-conflict-|` + // Syncthing
	`[._](local|remote|base|backup)[._]\d+\.hcl$|` + // git mergetool
	`\.orig\.hcl$`)

// LooksLikeCopy reports whether a path has the name of a copy that lies next to the file that it was made from. Such a
// file never gets a name that another file declares, too.
func LooksLikeCopy(p string) bool { return copyNames.MatchString(path.Base(p)) }

// rank sorts the candidates that newly claim the same thing: which of them gets it must be the same on every node, with
// every store. Files that look like copies come last, files named after the project first, and the path decides the rest.
func rank(all []*Candidate, cl Claim) {
	slices.SortFunc(all, func(a, b *Candidate) int {
		if x, y := a.rank(cl), b.rank(cl); x != y {
			return x - y
		}
		return strings.Compare(a.Path, b.Path)
	})
}

func (c *Candidate) rank(cl Claim) int {
	switch {
	case LooksLikeCopy(c.Path):
		return 2
	case c.namedAfter(cl):
		return 0
	}
	return 1
}

// namedAfter reports whether the file is called <slug>.hcl, by the project that claims cl or whose object does.
func (c *Candidate) namedAfter(cl Claim) bool {
	base := path.Base(c.Path)
	i := slices.IndexFunc(c.Refs, func(r catalog.Ref) bool {
		return r.Kind == catalog.KindProject && r.Name+".hcl" == base
	})
	return i >= 0 && slices.ContainsFunc(c.Refs, func(r catalog.Ref) (claims bool) {
		if r == c.Refs[i] || r.Kind != catalog.KindProject && r.ProjectID == c.Refs[i].ID {
			eachClaim(r, func(_ string, x Claim) { claims = claims || x == cl })
		}
		return claims
	})
}
