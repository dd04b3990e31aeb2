package web

import (
	"fmt"
	"strconv"
	"time"

	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// unknownHints bounds the search for slugs that may have been meant.
const unknownHints = 3

// Meant ends the text of a problem with the word that may have been meant, "" for none.
func Meant(word string) string {
	if word == "" {
		return ""
	}
	return ": did you mean " + word + "?"
}

// Element names an element of a list in problems.
func Element(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// Words reads a list of strings without repetitions, nil if the body has none; of says of what, for the problem of another
// value. An element that is wrong is "".
func (f *Form) Words(name, of string) []string {
	value, given := f.Body.Values[name]
	if !given {
		return nil
	}
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		f.Fail(name, "must be a list of "+of)
		return nil
	}
	words, seen := make([]string, len(list)), map[string]bool{}
	for i, v := range list {
		word, ok := v.(string)
		switch {
		case !ok:
			f.Fail(Element(name, i), "must be a string")
		case seen[word]:
			f.Fail(Element(name, i), "is in the list twice")
		default:
			words[i], seen[word] = word, true
		}
	}
	return words
}

// Slugs reads a list of projects, which is not null. Unlike a person, who may prepare a key or webhook for a project that
// comes with another branch, a request must name projects that exist. The error is of find.
func (f *Form) Slugs(name string, find func(slug string) (*catalog.Project, error)) ([]string, error) {
	slugs, unknown := f.Words(name, "slugs, or null for every project"), 0
	there := func(slug string) bool {
		_, err := find(slug)
		return err == nil
	}
	for i, slug := range slugs {
		at := Element(name, i)
		if f.Bad[at] {
			continue
		}
		if msg := catalog.CheckSlug(slug); msg != "" {
			f.Fail(at, "is no slug: it "+msg)
			continue
		}
		switch _, err := find(slug); {
		case err == nil:
		case !catalog.IsNotFound(err):
			return nil, err
		default:
			hint := ""
			if unknown++; unknown <= unknownHints {
				hint = Meant(names.NearSlug(slug, there))
			}
			f.Fail(at, "no project has this slug"+hint)
		}
	}
	return slugs, nil
}

// The overlap of a rotation.
const (
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 720 * time.Hour
)

// ReadOverlap reads from the body of a rotation how long what it replaces stays good. The body may be left out.
func (r *Request) ReadOverlap() (overlap time.Duration, err error) {
	if !r.Conn.HasBody() {
		return defaultOverlap, nil
	}
	f, err := r.ReadForm([]string{"overlap"})
	if err != nil {
		return 0, err
	}
	if !f.Has("overlap") {
		return defaultOverlap, f.Validated(nil)
	}
	var text string
	if f.Read("overlap", &text); !f.Bad["overlap"] {
		if overlap, err = catalog.ParseSpan(text); err != nil || overlap > maxOverlap {
			f.Fail("overlap", fmt.Sprintf(`must be a length of time from "0s" to "%dh", such as 24h or 7d`, int(maxOverlap.Hours())))
		}
	}
	return overlap, f.Validated(nil)
}
