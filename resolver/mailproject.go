package resolver

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// ProjectOfDomain is Resolve for who needs the project only: what an Answer says by its Code is an error here.
func (r *Resolver) ProjectOfDomain(domain string) (projectID int64, err error) {
	a, err := r.Resolve([]byte(domain), Nested)
	if err != nil {
		return 0, err
	}
	switch a.Code {
	case catalog.CodeNotFound:
		return 0, &catalog.Error{Code: a.Code, Message: "no project has this domain"}
	case catalog.CodeDomainNotVerified:
		return 0, &catalog.Error{Code: a.Code, Message: "the domain is not active"}
	case catalog.CodeProjectSuspended:
		return 0, &catalog.Error{Code: a.Code, Message: "the project is suspended"}
	}
	return a.ProjectID, nil
}

// MailProject returns what one needs to know to send a project's mail: the project and its SMTP config, without domains
// and templates, and the settings as they are in force.
func (r *Resolver) MailProject(id int64) (*catalog.ProjectConfig, error) {
	p, defaults, err := r.project(id)
	if err != nil {
		return nil, err
	}
	if defaults != nil {
		p.Service, p.Auth = p.Service.Over(defaults.Service), p.Auth.Over(defaults.Auth)
	}
	return p, nil
}

// MailTemplate returns what a template's code means to a project: its own active one, else the active default one (contract
// http.md 4). TEMPLATE_INACTIVE where there are inactive ones only, NOT_FOUND where there is none.
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
	return nil, notFound("template")
}
