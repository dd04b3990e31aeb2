package configsrc

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"fingerpost/configsrc/hclfile"
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
			d := unknownSlug(r, u, func(slug string) bool { return w.table.owner(claimOf("slug", slug)) != nil })
			is.diags = append(is.diags, d)
			if was == nil || !slices.Contains(was.slugs, u) {
				w.log(d)
			}
		}
		now[path] = is
	}
	w.unknown = now
}

// unknownSlug makes the warning about a slug in a key of the file r. there reports whether a project has a slug.
func unknownSlug(r *hclfile.Result, u catalog.UnknownSlug, there func(slug string) bool) hclfile.Diagnostic {
	hint := "put the project's present slug in its place, or take it out"
	if near := NearSlug(u.Slug, there); near != "" {
		hint = "did you mean `" + near + "`?"
	}
	return r.DiagnoseKeySlug(u.Key, u.Slug, fmt.Sprintf("key %q names the project %q, which no file declares", u.Key,
		u.Slug), hint)
}

const slugBytes = "abcdefghijklmnopqrstuvwxyz0123456789-"

// NearSlug finds an existing slug that differs in one character: one more, one less, another one, or two neighbours
// swapped. It tries each such slug, because there may be far more existing slugs.
func NearSlug(slug string, there func(slug string) bool) string {
	if len(slug) > catalog.MaxSlugLen {
		return ""
	}
	for i := 0; i <= len(slug); i++ {
		head, tail := slug[:i], slug[i:]
		var tries []string
		if tail != "" {
			tries = append(tries, head+tail[1:])
		}
		if len(tail) > 1 {
			tries = append(tries, head+tail[1:2]+tail[:1]+tail[2:])
		}
		for _, c := range slugBytes {
			tries = append(tries, head+string(c)+tail)
			if tail != "" {
				tries = append(tries, head+string(c)+tail[1:])
			}
		}
		for _, try := range tries {
			if try != slug && there(try) {
				return try
			}
		}
	}
	return ""
}
