package resolver

import (
	"errors"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// view runs f on the present store, and again if that store was replaced in between. So f may run twice.
func (r *Resolver) view(f func(v *store.View) error) error {
	return r.reading(func(st *store.Store) error { return st.View(f) })
}

// reading is view for reads that need no View.
func (r *Resolver) reading(f func(st *store.Store) error) error {
	for {
		st := r.stores.Reads()
		err := f(st)
		if errors.Is(err, store.ErrClosed) && st != r.stores.Reads() {
			continue
		}
		if err != nil {
			return readError(err)
		}
		return nil
	}
}

// get is view for one object: it reports a missing one as NOT_FOUND.
func (r *Resolver) get(what string, read func(v *store.View) (found bool, err error)) error {
	var found bool
	err := r.view(func(v *store.View) (err error) {
		found, err = read(v)
		return err
	})
	if err == nil && !found {
		err = catalog.NotFound(what)
	}
	return err
}

// ProjectConfig reads a project, without its domains and templates, and the defaults block.
func (r *Resolver) ProjectConfig(id int64) (*catalog.ProjectConfig, *catalog.Defaults, error) {
	p := new(catalog.ProjectConfig)
	var defaults *catalog.Defaults
	err := r.get("project", func(v *store.View) (found bool, err error) {
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
func (r *Resolver) ProjectByID(id int64) (*catalog.Project, error) {
	p := new(catalog.ProjectConfig)
	var found bool
	err := r.reading(func(st *store.Store) (err error) {
		found, err = st.Project(p, id)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, catalog.NotFound("project")
	}
	return &p.Project, nil
}

// ProjectBySlug returns the project that has the slug now.
func (r *Resolver) ProjectBySlug(slug string) (*catalog.Project, error) {
	p := new(catalog.ProjectConfig)
	err := r.get("project", func(v *store.View) (bool, error) { return v.ProjectBySlug(p, slug) })
	if err != nil {
		return nil, err
	}
	return &p.Project, nil
}

// ServiceSettings returns the settings in force: the project's own, then the defaults block, then the built-in ones.
func (r *Resolver) ServiceSettings(projectID int64) (*catalog.ServiceSettings, error) {
	p, defaults, err := r.ProjectConfig(projectID)
	if err != nil {
		return nil, err
	}
	service, _ := defaults.InForce(p)
	return &service, nil
}

// AuthSettings returns the settings in force, see ServiceSettings.
func (r *Resolver) AuthSettings(projectID int64) (*catalog.AuthSettings, error) {
	p, defaults, err := r.ProjectConfig(projectID)
	if err != nil {
		return nil, err
	}
	_, auth := defaults.InForce(p)
	return &auth, nil
}

// SMTPConfig returns the project's own SMTP config; NOT_FOUND also if the project has no such block, or one without a
// host.
func (r *Resolver) SMTPConfig(projectID int64) (*catalog.SMTPConfig, error) {
	p, _, err := r.ProjectConfig(projectID)
	if err != nil {
		return nil, err
	}
	if !p.SMTP.HasServer() {
		return nil, catalog.NotFound("SMTP config")
	}
	return p.SMTP, nil
}

// Domain returns one domain record of a project.
func (r *Resolver) Domain(projectID, domainID int64) (*catalog.Domain, error) {
	d := new(catalog.Domain)
	err := r.get("domain", func(v *store.View) (bool, error) { return v.DomainByID(d, projectID, domainID) })
	if err != nil {
		return nil, err
	}
	return d, nil
}

// DomainNamed returns the domain record of a canonical name or wildcard in the newest state.
func (r *Resolver) DomainNamed(name string) (*catalog.Domain, error) {
	d := new(catalog.Domain)
	switch found, err := r.stores.Writes().Domain(d, name); {
	case err != nil:
		return nil, readError(err)
	case !found:
		return nil, catalog.NotFound("domain")
	}
	return d, nil
}

// DomainsBelow yields the domain records whose names lie below suffix, wildcards included, except *.suffix itself. The
// value is valid within the call.
func (r *Resolver) DomainsBelow(suffix string, yield func(*catalog.Domain) bool) error {
	if err := r.stores.Writes().DomainsBelow(suffix, yield); err != nil {
		return readError(err)
	}
	return nil
}
