package names

import (
	"crypto/sha256"
	"slices"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// unknownSlugs are the warnings about slugs in the lists of one file that no project has.
type unknownSlugs struct {
	hash  [sha256.Size]byte // of the file
	slugs []catalog.UnknownSlug
	diags hclfile.Diagnostics
}

// noteUnknown updates those warnings from the Sink. They are no reason to refuse a file: the project may come with
// another branch, and the list keeps its other projects.
func (w *Warnings) noteUnknown() {
	list := w.store.UnknownSlugs()
	if len(list) == 0 && len(w.unknown) == 0 {
		return
	}
	byFile, hashes := map[string][]catalog.UnknownSlug{}, map[string][sha256.Size]byte{}
	for _, u := range list {
		if path, hash, declared := w.owner(string(u.Kind), u.Name); declared {
			byFile[path], hashes[path] = append(byFile[path], u), hash
		}
	}
	now := make(map[string]*unknownSlugs, len(byFile))
	for path, slugs := range byFile {
		was, hash := w.unknown[path], hashes[path]
		if was != nil && was.hash == hash && slices.Equal(was.slugs, slugs) {
			now[path] = was
			continue
		}
		src, _ := w.store.LastGood(path) // without it, the warning names only the file
		r, _ := hclfile.Decode(w.display(path), src, hclfile.Options{})
		is := &unknownSlugs{hash: hash, slugs: slugs}
		for _, u := range slugs {
			d := UnknownSlug(r, u, func(slug string) bool {
				_, _, declared := w.owner("slug", slug)
				return declared
			})
			is.diags = append(is.diags, d)
			if was == nil || !slices.Contains(was.slugs, u) {
				w.log(d)
			}
		}
		now[path] = is
	}
	w.unknown = now
}
