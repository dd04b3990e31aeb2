package resolver

import (
	"errors"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// view runs f on the present store, and again if that store was replaced in between. So f may run twice.
func (s *State) view(f func(v *store.View) error) error {
	return s.reading(func(st *store.State) error { return st.View(f) })
}

// reading is view for reads that need no View.
func (s *State) reading(f func(st *store.State) error) error {
	for {
		st := s.of.reads()
		err := f(st)
		if errors.Is(err, store.ErrClosed) && st != s.of.reads() {
			continue
		}
		if err != nil {
			return catalog.Unreadable(err)
		}
		return nil
	}
}

// get is view for one object: it reports a missing one as NOT_FOUND.
func (s *State) get(what string, read func(v *store.View) (found bool, err error)) error {
	var found bool
	err := s.view(func(v *store.View) (err error) {
		found, err = read(v)
		return err
	})
	if err == nil && !found {
		err = catalog.NotFound(what)
	}
	return err
}

// ProjectConfig reads a project, without its domains and templates, and the defaults block.
func (s *State) ProjectConfig(id int64) (*catalog.ProjectConfig, *catalog.Defaults, error) {
	p := new(catalog.ProjectConfig)
	var defaults *catalog.Defaults
	err := s.get("project", func(v *store.View) (found bool, err error) {
		if found, err = v.Project(p, id); err == nil && found {
			defaults, err = v.Defaults()
		}
		return found, err
	})
	if err != nil {
		return nil, nil, err
	}
	return p, defaults, nil
}

// ProjectByID returns a project. Like all lookups it reports a missing object as a *catalog.Error NOT_FOUND, and an
// unreadable store as UNAVAILABLE. The caller owns the result.
func (s *State) ProjectByID(id int64) (*catalog.Project, error) {
	p := new(catalog.ProjectConfig)
	var found bool
	err := s.reading(func(st *store.State) (err error) {
		found, err = st.Project(p, id)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, catalog.NotFound("project")
	}
	changed, err := s.of.bring(p.Project.UUID)
	if err == nil && changed {
		return s.ProjectByID(id)
	}
	return &p.Project, err
}

// ProjectBySlug returns the project that has the slug now.
func (s *State) ProjectBySlug(slug string) (*catalog.Project, error) {
	p := new(catalog.ProjectConfig)
	err := s.get("project", func(v *store.View) (bool, error) { return v.ProjectBySlug(p, slug) })
	if err != nil {
		return nil, err
	}
	changed, err := s.of.bring(p.Project.UUID)
	if err == nil && changed {
		return s.ProjectBySlug(slug)
	}
	return &p.Project, err
}

// ServiceSettings returns the settings in force: the project's own, then the defaults block, then the built-in ones.
func (s *State) ServiceSettings(projectID int64) (*catalog.ServiceSettings, error) {
	p, defaults, err := s.ProjectConfig(projectID)
	if err != nil {
		return nil, err
	}
	service, _ := defaults.InForce(p)
	return &service, nil
}

// AuthSettings returns the settings in force, see ServiceSettings.
func (s *State) AuthSettings(projectID int64) (*catalog.AuthSettings, error) {
	p, defaults, err := s.ProjectConfig(projectID)
	if err != nil {
		return nil, err
	}
	_, auth := defaults.InForce(p)
	return &auth, nil
}

// SMTPConfig returns the project's own SMTP config; NOT_FOUND also if the project has no such block, or one without a
// host.
func (s *State) SMTPConfig(projectID int64) (*catalog.SMTPConfig, error) {
	p, _, err := s.ProjectConfig(projectID)
	if err != nil {
		return nil, err
	}
	if !p.SMTP.HasServer() {
		return nil, catalog.NotFound("SMTP config")
	}
	return p.SMTP, nil
}

// Domain returns one domain record of a project.
func (s *State) Domain(projectID, domainID int64) (*catalog.Domain, error) {
	d := new(catalog.Domain)
	err := s.get("domain", func(v *store.View) (bool, error) { return v.DomainByID(d, projectID, domainID) })
	if err != nil {
		return nil, err
	}
	return d, nil
}

// DomainNamed returns the domain record of a canonical name or wildcard in the newest state.
func (s *State) DomainNamed(name string) (*catalog.Domain, error) {
	d := new(catalog.Domain)
	switch found, err := s.of.newest().Domain(d, name); {
	case err != nil:
		return nil, catalog.Unreadable(err)
	case !found:
		return nil, catalog.NotFound("domain")
	}
	return d, nil
}

// DomainsBelow yields the domain records whose names lie below suffix, wildcards included, except *.suffix itself; all
// lie below "". Names come in the order of their reversed spelling, a wildcard before the names below it. The value is
// valid within the call.
func (s *State) DomainsBelow(suffix string, yield func(*catalog.Domain) bool) error {
	if err := s.of.newest().DomainsBelow(suffix, yield); err != nil {
		return catalog.Unreadable(err)
	}
	return nil
}
