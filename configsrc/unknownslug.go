package configsrc

import (
	"crypto/sha256"
	"slices"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// unknownSlugs are the warnings about slugs in the keys of one file that no project has.
type unknownSlugs struct {
	hash  [sha256.Size]byte // of the file
	slugs []catalog.UnknownSlug
	diags hclfile.Diagnostics
}

// noteUnknown updates those warnings from the Sink. They are no reason to refuse a file: the project may come with
// another branch, and the key keeps its other projects.
func (w *warnings) noteUnknown() {
	list := w.o.Sink.UnknownSlugs()
	if len(list) == 0 && len(w.unknown) == 0 {
		return
	}
	byFile := map[string][]catalog.UnknownSlug{}
	for _, u := range list {
		if path, ok := w.fileOf(claimOf("key", u.Key)); ok {
			byFile[path] = append(byFile[path], u)
		}
	}
	now := make(map[string]*unknownSlugs, len(byFile))
	for path, slugs := range byFile {
		was, hash := w.unknown[path], w.table.files[path].stamp.Hash
		if was != nil && was.hash == hash && slices.Equal(was.slugs, slugs) {
			now[path] = was
			continue
		}
		src, _ := w.o.Sink.LastGood(path) // without it, the warning names only the file
		r := positions(w.display(path), src)
		is := &unknownSlugs{hash: hash, slugs: slugs}
		for _, u := range slugs {
			d := names.UnknownSlug(r, u, func(slug string) bool { return w.table.owner(claimOf("slug", slug)) != nil })
			is.diags = append(is.diags, d)
			if was == nil || !slices.Contains(was.slugs, u) {
				w.log(d)
			}
		}
		now[path] = is
	}
	w.unknown = now
}
