package datadir

import (
	"log/slog"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// A Stored is the store of a stopped server, opened for reading. It changes nothing in the folder, and no server can
// start on it until Close. Its methods may be called from any goroutine; the caller owns the results.
type Stored struct{ store *store.Store }

// OpenStored opens the store in dir. If a server runs on it, the error is a *store.LockedError with its pid; for a
// folder without a store it is ErrNoStore. A damaged store stays where it is.
func OpenStored(dir string, log *slog.Logger) (*Stored, error) {
	st, err := store.Open(dir, store.Options{Logger: log, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return &Stored{st}, nil
}

// Close releases the folder.
func (s *Stored) Close() error { return s.store.Close() }

// Projects lists all projects by ascending id.
func (s *Stored) Projects() (rows []catalog.Project, err error) {
	err = s.store.EachProject(func(p *catalog.Project) bool {
		rows = append(rows, *p)
		return true
	})
	return rows, err
}

// Project reads a project with its domains and templates, and its settings in force.
func (s *Stored) Project(id int64) (*catalog.ProjectConfig, error) {
	p, found := new(catalog.ProjectConfig), false
	err := s.store.View(func(v *store.View) (err error) {
		if found, err = v.Project(p, id); err != nil || !found {
			return err
		}
		defaults, err := v.Defaults()
		if err != nil {
			return err
		}
		p.Service, p.Auth = defaults.InForce(p)
		return v.Domains(id, func(d *catalog.Domain) bool {
			p.Domains = append(p.Domains, *d)
			return true
		})
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, catalog.NotFound("project")
	}
	p.Templates, err = s.Templates(id)
	return p, err
}

// Templates lists a project's templates; project 0 means the default ones.
func (s *Stored) Templates(project int64) (rows []catalog.Template, err error) {
	err = s.store.Templates(project, func(t *catalog.Template) bool {
		rows = append(rows, *t)
		return true
	})
	return rows, err
}

// Keys lists the API keys by name.
func (s *Stored) Keys() (rows []catalog.Key, err error) {
	err = s.store.Keys(func(k *catalog.Key) bool {
		rows = append(rows, *k)
		return true
	})
	return rows, err
}

// Edges lists the edges by name.
func (s *Stored) Edges() (rows []catalog.Edge, err error) {
	err = s.store.Edges(func(e *catalog.Edge) bool {
		rows = append(rows, *e)
		return true
	})
	return rows, err
}

// Webhooks lists the webhooks by name.
func (s *Stored) Webhooks() (rows []catalog.Webhook, err error) {
	err = s.store.Webhooks(func(w *catalog.Webhook) bool {
		rows = append(rows, *w)
		return true
	})
	return rows, err
}

// Logins lists the logins by name.
func (s *Stored) Logins() (rows []catalog.Login, err error) {
	err = s.store.Logins(func(l *catalog.Login) bool {
		rows = append(rows, *l)
		return true
	})
	return rows, err
}

// Inbounds lists the inbound blocks by name.
func (s *Stored) Inbounds() (rows []catalog.Inbound, err error) {
	err = s.store.Inbounds(func(b *catalog.Inbound) bool {
		rows = append(rows, *b)
		return true
	})
	return rows, err
}

// Defaults returns the defaults block, nil when there is none.
func (s *Stored) Defaults() (*catalog.Defaults, error) { return s.store.Defaults() }

// Sealing returns the sealing block, nil when there is none.
func (s *Stored) Sealing() (*catalog.Sealing, error) { return s.store.Sealing() }

// Files yields the file table by path, until yield returns false.
func (s *Stored) Files(yield func(path string, row *catalog.FileRow) bool) error {
	return s.store.Files(yield)
}

// File returns one row of the table; a NOT_FOUND *catalog.Error if there is none.
func (s *Stored) File(path string) (*catalog.FileRow, error) {
	row, err := s.store.File(path)
	if err == nil && row == nil {
		err = catalog.NotFound("file")
	}
	return row, err
}
