package resolver

import (
	"crypto/sha256"
	"encoding/base32"
	"maps"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// A Person is somebody who has signed in at a login. The person's rights are pairs of permission and project, which follow
// from the claims and the rules of the login (configsrc/login.md).
type Person struct {
	Login, Issuer, ClientID string // the login, and the provider that it named at sign-in
	Subject                 string // at the provider
	Claims                  catalog.Claims
}

// Who names the person in the audit trail. It is the same in all sessions.
func (p *Person) Who() string { return p.Issuer + "|" + p.Subject }

// ID returns the id of the person's keys, which all sessions share. It is not that of a key of the files, which has 8
// characters.
func (p *Person) ID() string { return "person-" + p.digest() }

// KeyName returns the name of the person's keys. It is not that of a key of the files, because it has a slash.
func (p *Person) KeyName() string { return p.Login + "/" + p.digest()[:10] }

func (p *Person) digest() string {
	sum := sha256.Sum256([]byte(p.Who()))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20]))
}

// A personKey is what the Key of a person has more than another.
type personKey struct {
	Person
	textID string // by which Lookup finds it
	grants []grant
	values []catalog.ClaimValue // for which rules match
	may    catalog.Permission   // that the Key was narrowed for; 0: it is not narrowed
}

// A grant is a catalog.Grant with its projects resolved.
type grant struct {
	catalog.Grant
	projects map[int64]struct{} // nil: every project
}

func (g *grant) covers(project int64) bool {
	_, listed := g.projects[project]
	return g.projects == nil || listed
}

// login returns the login of a person, nil if it has gone or names another provider.
func (s *KeySet) login(p *Person) *catalog.Login {
	i := slices.IndexFunc(s.logins, func(l catalog.Login) bool {
		return l.Name == p.Login && l.Issuer == p.Issuer && (l.ClientID == p.ClientID || p.ClientID == "")
	})
	if i < 0 {
		return nil
	}
	return &s.logins[i]
}

// bindPerson returns a person's key with what the rules of the login grant, nil if none matches. Until For narrows it, it
// has no permission and no project.
func (s *KeySet) bindPerson(k *Key, l *catalog.Login) *Key {
	p := *k.person
	for _, g := range l.Grants(p.Claims) {
		bound := grant{Grant: g}
		if g.Projects != nil {
			bound.projects = map[int64]struct{}{}
			for _, slug := range g.Projects {
				if id := s.slugs[slug]; id != 0 {
					bound.projects[id] = struct{}{}
				}
			}
		}
		p.grants = append(p.grants, bound)
	}
	if len(p.grants) == 0 {
		return nil
	}
	p.values = l.Matched(p.Claims)
	bound := *k
	bound.person = &p
	return &bound
}

// ByClaims returns the key that a person with claims of these values would have now, nil if no rule of the login lets in
// such a person. Of p, the login and issuer count, and the client if it has one.
func (s *KeySet) ByClaims(p Person, values []catalog.ClaimValue) *Key {
	l := s.login(&p)
	if l == nil {
		return nil
	}
	p.Claims = catalog.ClaimsOf(values)
	k := &Key{projects: map[int64]struct{}{}, person: &personKey{Person: p}}
	k.ID, k.Name = p.ID(), p.KeyName()
	return s.bindPerson(k, l)
}

// Person returns the person whose key it is, and the values of the claims for which rules match; nil for a key of the
// files and for that of a sign-in link.
func (k *Key) Person() (p *Person, values []catalog.ClaimValue) {
	if k.person == nil {
		return nil, nil
	}
	return &k.person.Person, k.person.values
}

// Who names the person whose key it is, as the audit trail does; "" for a key of the files.
func (k *Key) Who() string {
	if k.person == nil {
		return ""
	}
	return k.person.Who()
}

// TextID returns the id in the key's text, which is another one in each session of a person.
func (k *Key) TextID() string {
	if k.person == nil {
		return k.ID
	}
	return k.person.textID
}

// For returns the key for an operation that needs one of the permissions. For a key of the files that is k. The key of a
// person covers the projects on which the person has one of these permissions, and has the permissions that the person
// has on all of them: so it may do nothing that the pairs of permission and project do not allow.
func (k *Key) For(may catalog.Permission) *Key {
	if k.person == nil || k.person.may == may {
		return k
	}
	n, p := *k, *k.person
	p.may, n.person, n.Allow = may, &p, 0
	n.Projects, n.projects = p.reach(may)
	has := k.Anywhere()
	for bit := catalog.Permission(1); bit != 0; bit <<= 1 {
		if _, covered := p.reach(bit); has&bit != 0 && within(n.projects, covered) {
			n.Allow |= bit
		}
	}
	if has&may != 0 && n.Allow&may == 0 { // each on other projects: on all of them, what the others include
		n.Allow |= may & (catalog.MayResolve | catalog.MayPropose)
	}
	return &n
}

// permissions returns the permissions of the grants that count.
func (p *personKey) permissions(counts func(*grant) bool) (all catalog.Permission) {
	for i := range p.grants {
		if g := &p.grants[i]; counts(g) {
			all |= g.Allow
		}
	}
	return all
}

// reach returns the projects on which the person has one of the permissions; nil: every project.
func (p *personKey) reach(may catalog.Permission) (slugs []string, projects map[int64]struct{}) {
	slugs, projects = []string{}, map[int64]struct{}{}
	for i := range p.grants {
		g := &p.grants[i]
		switch {
		case g.Allow&may == 0:
		case g.projects == nil:
			return nil, nil
		default:
			slugs = append(slugs, g.Projects...)
			maps.Copy(projects, g.projects)
		}
	}
	return slugs, projects
}

// within reports whether all of some projects are among others; nil: every project.
func within(some, others map[int64]struct{}) bool {
	switch {
	case others == nil:
		return true
	case some == nil:
		return false
	}
	for id := range some {
		if _, among := others[id]; !among {
			return false
		}
	}
	return true
}

// At returns the permissions on a project.
func (k *Key) At(project int64) catalog.Permission {
	switch {
	case k.person != nil:
		return k.person.permissions(func(g *grant) bool { return g.covers(project) })
	case k.Covers(project):
		return k.Allow
	}
	return 0
}

// Everywhere returns the permissions on every project.
func (k *Key) Everywhere() catalog.Permission {
	switch {
	case k.person != nil:
		return k.person.permissions(func(g *grant) bool { return g.projects == nil })
	case k.EveryProject():
		return k.Allow
	}
	return 0
}

// Anywhere returns the permissions on at least one project.
func (k *Key) Anywhere() catalog.Permission {
	if k.person != nil {
		return k.person.permissions(func(*grant) bool { return true })
	}
	return k.Allow
}

// Renewed returns a key as it is in this set, narrowed as it was; nil if it has gone, or has another text.
func (s *KeySet) Renewed(was *Key) *Key {
	now := s.Lookup([]byte(was.TextID()))
	if now == nil || now.Hash != was.Hash {
		return nil
	}
	if was.person != nil && was.person.may != 0 {
		return now.For(was.person.may)
	}
	return now
}

// AllOf returns the permissions on each project of a list of slugs; nil: on every project. An owner's projects do not count.
func (k *Key) AllOf(slugs []string) catalog.Permission {
	if slugs == nil {
		return k.Everywhere()
	}
	all := k.Anywhere()
	for _, slug := range slugs {
		switch {
		case k.person != nil:
			all &= k.person.permissions(func(g *grant) bool { return g.projects == nil || slices.Contains(g.Projects, slug) })
		case !k.Names(slug):
			return 0
		}
	}
	return all
}
