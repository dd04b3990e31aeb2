package resolver

import (
	"errors"
	"sync"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// ProjectOfDomain is Resolve for callers that need only the project: a Code of the Answer is returned as an error.
func (r *Resolver) ProjectOfDomain(domain string) (projectID int64, err error) {
	a, err := r.Resolve([]byte(domain), Nested)
	if err != nil {
		return 0, err
	}
	switch a.Code {
	case catalog.CodeNotFound:
		return 0, &catalog.Error{Code: a.Code, Message: "no project has this domain"}
	case catalog.CodeDomainNotVerified:
		return 0, a.NotVerified.Refusal()
	case catalog.CodeProjectSuspended:
		return 0, &catalog.Error{Code: a.Code, Message: "the project is suspended"}
	}
	return a.ProjectID, nil
}

// MailProject returns what a send needs of a project: the project without domains and templates, and the settings and
// the SMTP config in force. The caller owns the result, except the texts behind its pointers.
func (r *Resolver) MailProject(id int64) (*catalog.ProjectConfig, error) {
	epoch := r.stamps.epoch.Load() // before the store is read, see stamps
	if p := r.senders.get(id, epoch); p != nil {
		return p, nil
	}
	p, err := r.ReadMailProject(id)
	if err != nil {
		return nil, err
	}
	r.senders.put(id, epoch, p)
	return senderCopy(p), nil
}

// ReadMailProject is MailProject for a caller that goes through all projects: it reads the store, and puts nothing into the
// cache.
func (s *State) ReadMailProject(id int64) (*catalog.ProjectConfig, error) {
	p, defaults, err := s.ProjectConfig(id)
	if err != nil {
		return nil, err
	}
	p.Service, p.Auth = defaults.InForce(p)
	p.SMTP = catalog.SMTPInForce(p.SMTP, defaults)
	p.Domains, p.Templates = nil, nil
	return p, nil
}

// HasCategory reports whether a template that a project can send has a category: an active one of its own, or
// an active default one.
func (s *State) HasCategory(projectID int64) (has bool, err error) {
	err = s.view(func(v *store.View) (err error) {
		has = false
		for _, of := range []int64{0, projectID} {
			err = errors.Join(err, v.Templates(of, func(t *catalog.Template) bool {
				has = has || t.Active && t.Category != ""
				return !has
			}))
		}
		return err
	})
	return has, err
}

// senders caches the projects that have sent mail, under one epoch. An entry read after an epoch includes every change
// acknowledged up to that epoch; with the next epoch all entries are read again. Safe for concurrent use.
type senders struct {
	mu    sync.RWMutex // guards the fields below
	epoch uint64
	known map[int64]*catalog.ProjectConfig
}

// maxSenders bounds the entries: a few KB each.
const maxSenders = 1024

// get returns a copy of a project; nil if it must be read.
func (s *senders) get(id int64, epoch uint64) *catalog.ProjectConfig {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.known[id]
	if p == nil || s.epoch != epoch {
		return nil
	}
	return senderCopy(p)
}

// put stores a project that was read after the epoch. The caller must not change it any more.
func (s *senders) put(id int64, epoch uint64, p *catalog.ProjectConfig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case epoch < s.epoch:
		return
	case epoch > s.epoch || s.known == nil || len(s.known) >= maxSenders:
		s.epoch, s.known = epoch, map[int64]*catalog.ProjectConfig{}
	}
	s.known[id] = p
}

func senderCopy(p *catalog.ProjectConfig) *catalog.ProjectConfig {
	c := *p
	if p.SMTP != nil {
		smtp := *p.SMTP
		c.SMTP = &smtp
	}
	return &c
}

// MailTemplate returns the template that a code means to a project: its own active one, else the active default one
// (mailer/README.md). TEMPLATE_INACTIVE if there are only inactive ones, NOT_FOUND if there is none.
func (r *Resolver) MailTemplate(projectID int64, code string) (*catalog.Template, error) {
	t := new(catalog.Template)
	var active, found bool
	err := r.view(func(v *store.View) error {
		active, found = false, false
		for _, owner := range []int64{projectID, 0} {
			here, err := v.TemplateByCode(t, owner, code)
			if err != nil {
				return err
			}
			if here && t.Active {
				active = true
				return nil
			}
			found = found || here
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case active:
		return t, nil
	case found:
		return nil, &catalog.Error{Code: catalog.CodeTemplateInactive, Message: "there is no active template of this code"}
	}
	return nil, catalog.NotFound("template")
}
