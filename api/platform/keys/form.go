package keys

import (
	"strings"
	"time"

	"fingerpost/api/web"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

var keyNames = []string{"name", "allow", "owner", "projects", "expiresAt", "expiresIn"}

// readKey reads the fields of a new key. expiry is the name of the field that gives its end.
func (a *API) readKey(f *web.Form, now time.Time) (k *catalog.Key, expiry string, err error) {
	k = new(catalog.Key)
	f.Require("name", "is required")
	if f.Read("name", &k.Name); !f.Bad["name"] {
		if msg := catalog.CheckKeyName(k.Name); msg != "" {
			f.Fail("name", msg)
		}
	}
	f.Require("allow", "is required: one or more of "+strings.Join(catalog.Permissions, ", "))
	for i, word := range f.Words("allow", "permissions: "+strings.Join(catalog.Permissions, ", ")) {
		p, unknown := catalog.ParsePermissions([]string{word})
		if k.Allow |= p; len(unknown) > 0 {
			f.Fail(web.Element("allow", i), "must be one of "+strings.Join(catalog.Permissions,
				", ")+web.Meant(names.Near(word, catalog.Permissions)))
		}
	}
	if f.Body.Values["projects"] != nil {
		if k.Projects, err = f.Slugs("projects", a.Live.ProjectBySlug); err != nil {
			return nil, "", err
		}
	}
	readOwner(f, k)
	expiry = readExpiry(f, k, now)
	return k, expiry, f.Validated(nil)
}

// readOwner reads the owner, with which a key has no other projects than it lists.
func readOwner(f *web.Form, k *catalog.Key) {
	var owner *string
	f.Read("owner", &owner)
	switch {
	case owner != nil && catalog.CheckOwner(*owner) != "":
		f.Fail("owner", catalog.CheckOwner(*owner))
	case owner != nil:
		k.Owner = *owner
		if k.Projects == nil {
			k.Projects = []string{}
		}
	case k.Allow&catalog.MayCreate != 0 && !f.Bad["owner"]:
		f.Fail("owner", `is required with "create": the owner of the projects that the key creates`)
	}
}

// readExpiry reads expiresAt or expiresIn, and returns the name of the one that is given.
func readExpiry(f *web.Form, k *catalog.Key, now time.Time) (field string) {
	var at, in *string
	f.Read("expiresAt", &at)
	f.Read("expiresIn", &in)
	if at != nil {
		end, ok := web.ParseMoment(*at)
		switch k.ExpiresAt = end.Truncate(time.Microsecond); {
		case !ok:
			f.Fail("expiresAt", "must be a time in UTC, such as 2031-06-30T00:00:00, or null")
		case !end.After(now):
			f.Fail("expiresAt", "must be in the future")
		}
	}
	if in != nil {
		d, err := catalog.ParseSpan(*in)
		switch {
		case err != nil || d < time.Second:
			f.Fail("expiresIn", "must be a length of time such as 90d, 2w, 12h or 30m")
		case at != nil:
			f.Fail("expiresIn", "cannot be given together with expiresAt")
		}
		k.ExpiresAt = now.Add(d).UTC().Truncate(time.Second)
		return "expiresIn"
	}
	return "expiresAt"
}
