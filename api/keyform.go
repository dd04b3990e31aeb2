package api

import (
	"strconv"
	"strings"
	"time"

	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

var keyNames = []string{"name", "allow", "projects", "expiresAt", "expiresIn"}

// The overlap of a rotation.
const (
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 720 * time.Hour
)

// unknownHints bounds the search for slugs that may have been meant.
const unknownHints = 3

// readKey reads the fields of a new key. expiry is the name of the field that gives its end.
func (s *Server) readKey(f *form, now time.Time) (k *catalog.Key, expiry string, err error) {
	k = new(catalog.Key)
	f.require("name", "is required")
	if f.read("name", &k.Name); !f.bad["name"] {
		if msg := catalog.CheckKeyName(k.Name); msg != "" {
			f.fail("name", msg)
		}
	}
	f.require("allow", "is required: one or more of "+strings.Join(catalog.Permissions, ", "))
	for i, word := range f.words("allow", "permissions: "+strings.Join(catalog.Permissions, ", ")) {
		p, unknown := catalog.ParsePermissions([]string{word})
		if k.Allow |= p; len(unknown) > 0 {
			f.fail(element("allow", i), "must be one of "+strings.Join(catalog.Permissions,
				", ")+meant(configsrc.NearestWord(word, catalog.Permissions)))
		}
	}
	if f.body.values["projects"] != nil {
		if k.Projects, err = s.readSlugs(f); err != nil {
			return nil, "", err
		}
	}
	expiry = f.readExpiry(k, now)
	return k, expiry, f.validated(nil)
}

func meant(word string) string {
	if word == "" {
		return ""
	}
	return ": did you mean " + word + "?"
}

func element(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// words reads a list of strings without repetitions. An element that is wrong is "".
func (f *form) words(name, of string) []string {
	value, given := f.body.values[name]
	if !given {
		return nil
	}
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		f.fail(name, "must be a list of "+of)
		return nil
	}
	words, seen := make([]string, len(list)), map[string]bool{}
	for i, v := range list {
		word, ok := v.(string)
		switch {
		case !ok:
			f.fail(element(name, i), "must be a string")
		case seen[word]:
			f.fail(element(name, i), "is in the list twice")
		default:
			words[i], seen[word] = word, true
		}
	}
	return words
}

// readSlugs reads the field projects, which is not null. Unlike a person, who may prepare a key for a project that
// comes with another branch, a request must name projects that exist.
func (s *Server) readSlugs(f *form) ([]string, error) {
	slugs, unknown := f.words("projects", "slugs, or null for every project"), 0
	there := func(slug string) bool {
		_, err := s.resolver.ProjectBySlug(slug)
		return err == nil
	}
	for i, slug := range slugs {
		at := element("projects", i)
		if f.bad[at] {
			continue
		}
		if msg := catalog.CheckSlug(slug); msg != "" {
			f.fail(at, "is no slug: it "+msg)
			continue
		}
		switch _, err := s.resolver.ProjectBySlug(slug); {
		case err == nil:
		case !isNotFound(err):
			return nil, err
		default:
			hint := ""
			if unknown++; unknown <= unknownHints {
				hint = meant(configsrc.NearSlug(slug, there))
			}
			f.fail(at, "no project has this slug"+hint)
		}
	}
	return slugs, nil
}

// readExpiry reads expiresAt or expiresIn, and returns the name of the one that is given.
func (f *form) readExpiry(k *catalog.Key, now time.Time) (field string) {
	var at, in *string
	f.read("expiresAt", &at)
	f.read("expiresIn", &in)
	if at != nil {
		end, ok := parseMoment(*at)
		switch k.ExpiresAt = end.Truncate(time.Microsecond); {
		case !ok:
			f.fail("expiresAt", "must be a time in UTC, such as 2031-06-30T00:00:00, or null")
		case !end.After(now):
			f.fail("expiresAt", "must be in the future")
		}
	}
	if in != nil {
		d, err := catalog.ParseSpan(*in)
		switch {
		case err != nil || d < time.Second:
			f.fail("expiresIn", "must be a length of time such as 90d, 2w, 12h or 30m")
		case at != nil:
			f.fail("expiresIn", "cannot be given together with expiresAt")
		}
		k.ExpiresAt = now.Add(d).UTC().Truncate(time.Second)
		return "expiresIn"
	}
	return "expiresAt"
}

// readOverlap reads the body of a rotation, which may be left out.
func (s *Server) readOverlap(r *request) (time.Duration, error) {
	if !r.conn.HasBody() {
		return defaultOverlap, nil
	}
	f, err := s.readForm(r, []string{"overlap"})
	if err != nil {
		return 0, err
	}
	if !f.has("overlap") {
		return defaultOverlap, f.validated(nil)
	}
	var text string
	if f.read("overlap", &text); f.bad["overlap"] {
		return 0, f.validated(nil)
	}
	overlap, err := catalog.ParseSpan(text)
	if err != nil || overlap > maxOverlap {
		f.fail("overlap", `must be a length of time from "0s" to "720h", such as 24h or 7d`)
	}
	return overlap, f.validated(nil)
}
