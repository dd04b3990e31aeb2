package resolver

import (
	"errors"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// A match is what the store says about a name.
type match struct {
	found    bool
	domain   catalog.Domain
	project  catalog.ProjectConfig
	defaults *catalog.Defaults
}

// errOrphan is a domain whose project is not there: impossible in one consistent read, the batch has both.
var errOrphan = errors.New("a domain record without its project")

// find reads the record that decides about host, and its project.
func find(v *store.View, host string, wildcards bool) (m *match, err error) {
	m = new(match)
	m.found, err = findDomain(v, &m.domain, host, wildcards)
	if err != nil || !m.found {
		return m, err
	}
	found, err := v.Project(&m.project, m.domain.ProjectID)
	if err != nil {
		return m, err
	}
	if !found {
		return m, errOrphan
	}
	return m, nil
}

// findDomain tries the exact name, then the wildcards from the longest suffix on.
func findDomain(v *store.View, dst *catalog.Domain, host string, wildcards bool) (bool, error) {
	name := []byte(host)
	found, err := v.Domain(dst, name)
	if err != nil || found || !wildcards {
		return found, err
	}
	for {
		suffix, ok := catalog.NextWildcard(name)
		if !ok {
			return false, nil
		}
		// "*." takes the place of the label and dot that lie before the suffix: two bytes or more.
		wildcard := name[len(name)-len(suffix)-2:]
		wildcard[0], wildcard[1] = '*', '.'
		if found, err = v.Domain(dst, wildcard); err != nil || found {
			return found, err
		}
		name = suffix
	}
}

// build reads the store and encodes the answer. keep is false for one that must not be cached.
func (r *Resolver) build(host string, hash uint64, form Form) (a *Answer, keep bool, err error) {
	m, s, keep, err := r.load(host, hash)
	if err != nil {
		return nil, false, readError(err)
	}
	switch {
	case !m.found:
		a = newAnswer(host, "", nil, nil)
		a.Code = catalog.CodeNotFound
	case !m.domain.Active:
		a = newAnswer(host, m.project.Project.Slug, nil, nil)
		a.Code = catalog.CodeDomainNotVerified
	case m.project.Project.Status == catalog.StatusSuspended:
		a = newAnswer(host, m.project.Project.Slug, nil, nil)
		a.Code = catalog.CodeProjectSuspended
	default:
		var secret *string
		if form == FlatSecrets {
			if secret, err = r.openJWTSecret(m); err != nil {
				return nil, false, err
			}
		}
		a = encodeMatch(host, m, form, secret)
	}
	a.hash, a.form, a.seen = hash, form, s
	a.byName = m.found && !m.domain.Wildcard()
	a.ProjectID = m.project.Project.ID
	a.confirmed.Store(s.epoch)
	return a, keep, nil
}

// load reads what answers for host depend on, and the stamps before it.
//
// The project's stamp can only be had once the domain is known, when part of the store has been read already. While no
// change is under way that makes no difference: all stamps stand still from the first look to the last, and single
// reads of the store agree with each other and with the settled defaults. While one is, a view and a guess take their
// place.
func (r *Resolver) load(host string, hash uint64) (m *match, s seen, keep bool, err error) {
	for range 4 {
		s = r.stamps.see(hash)
		if !r.stamps.quiet(s.epoch) {
			break
		}
		st := r.reads.Load()
		r.metrics.storeReads.Add(1)
		err = st.Newest(func(v *store.View) (err error) {
			m, err = find(v, host, st.Counts().Wildcards > 0)
			return err
		})
		if err == nil && m.found {
			m.defaults = r.Defaults()
			r.stamps.seeProject(&s, m.domain.ProjectID)
		}
		if r.stamps.quiet(s.epoch) && !errors.Is(err, store.ErrClosed) {
			return m, s, true, err
		}
	}
	return r.loadDuringChange(host, hash)
}

// loadDuringChange reads a view of one moment. The project whose stamp has to be read before is the one that the view
// before had.
func (r *Resolver) loadDuringChange(host string, hash uint64) (m *match, s seen, keep bool, err error) {
	var guess int64
	for range 8 {
		s = r.stamps.see(hash)
		if guess != 0 {
			r.stamps.seeProject(&s, guess)
		}
		r.metrics.storeReads.Add(1)
		err = r.reads.Load().View(func(v *store.View) (err error) {
			// All wildcards are tried: the count that says there are none may be a moment ahead of the view.
			if m, err = find(v, host, true); err == nil && m.found {
				m.defaults, err = v.Defaults()
			}
			return err
		})
		if errors.Is(err, store.ErrClosed) {
			continue
		}
		if err != nil || !m.found {
			s.project = nil
			return m, s, true, err
		}
		if m.domain.ProjectID == guess {
			return m, s, true, nil
		}
		guess = m.domain.ProjectID
	}
	// The domain went from project to project each time: the answer is of one moment, but nobody else may have it.
	s.epoch, s.name, s.project = 0, ^s.name, nil
	return m, s, false, err
}

// openJWTSecret returns the secret in clear, nil where the project has none.
func (r *Resolver) openJWTSecret(m *match) (*string, error) {
	auth := m.project.Auth
	if m.defaults != nil {
		auth = auth.Over(m.defaults.Auth)
	}
	secret := auth.Token.JWTSecret
	if secret.Source == catalog.SecretNone {
		return nil, nil
	}
	unavailable := &catalog.Error{
		Code:    catalog.CodeUnavailable,
		Message: "the jwtSecret of project " + m.project.Project.Slug + " cannot be opened on this node",
	}
	if r.options.OpenSecret == nil {
		return nil, unavailable
	}
	plain, err := r.options.OpenSecret(secret, m.project.Project.UUID.String()+"/jwt_secret")
	if err != nil {
		// The cause may quote what it could not read; the operator finds it by the log of the one who opens.
		return nil, unavailable
	}
	return &plain, nil
}
