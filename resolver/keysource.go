package resolver

import (
	"errors"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// A KeySource is a project that names a key set (configsrc/tokens.md).
type KeySource struct {
	Project int64
	Slug    string
	URL     string
	InUse   bool // the project's auth service is on, and its tokens are
}

// KeySource returns the key set that a project names, as it is in force; named is false if it names none, or if there is
// no such project.
func (s *State) KeySource(project int64) (source KeySource, named bool, err error) {
	p, defaults, err := s.ProjectConfig(project)
	if err != nil {
		if missing := new(catalog.Error); errors.As(err, &missing) && missing.Code == catalog.CodeNotFound {
			err = nil
		}
		return KeySource{}, false, err
	}
	service, auth := defaults.InForce(p)
	if auth.Rules.KeySetURL == nil {
		return KeySource{}, false, nil
	}
	return KeySource{Project: project, Slug: p.Project.Slug, URL: *auth.Rules.KeySetURL,
		InUse: service.AuthEnabled && auth.Token.JWTEnabled}, true, nil
}

// KeySources returns the key sets that all projects name. It reads the projects that name one themselves, or every project
// where the defaults name one.
func (s *State) KeySources() (list []KeySource, err error) {
	var ids []int64
	err = s.each(func(st *store.State) error {
		ids = nil
		add := func(id int64) bool { ids = append(ids, id); return true }
		defaults, err := st.Defaults()
		switch {
		case err != nil:
			return err
		case defaults != nil && defaults.Auth != nil && defaults.Auth.Rules.KeySetURL != nil:
			return st.EachProjectID(add)
		}
		return st.EachKeySet(add)
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		source, named, err := s.KeySource(id)
		if err != nil {
			return nil, err
		}
		if named {
			list = append(list, source)
		}
	}
	return list, nil
}
