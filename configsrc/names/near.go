package names

import (
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// Near returns the option that got was probably meant to be, "" if none is near.
func Near(got string, options []string) string { return hclfile.Nearest(got, options) }

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
