package resolver

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
	"fingerpost/resolver/store"
)

// Summaries reads the summaries of projects, without their files. A project that is gone by now is left out.
func (s *State) Summaries(projects []*catalog.Project) (rows []*rowjson.Summary, err error) {
	err = s.view(func(v *store.View) error {
		rows = nil
		defaults, err := v.Defaults()
		if err != nil {
			return err
		}
		for _, p := range projects {
			s, err := summary(v, p.ID, defaults)
			if err != nil {
				return err
			}
			if s != nil {
				rows = append(rows, s)
			}
		}
		return nil
	})
	return rows, err
}

// summary returns nil for a project that does not exist.
func summary(v *store.View, project int64, defaults *catalog.Defaults) (*rowjson.Summary, error) {
	p := new(catalog.ProjectConfig)
	if found, err := v.Project(p, project); err != nil || !found {
		return nil, err
	}
	s := &rowjson.Summary{Project: p.Project, Mail: mailOf(p, defaults)}
	first := ""
	err := v.Domains(project, func(d *catalog.Domain) bool {
		if s.Domains++; d.Primary {
			s.Primary = d.Name
		} else if first == "" || d.Name < first {
			first = d.Name
		}
		return true
	})
	if s.Primary == "" {
		s.Primary = first
	}
	return s, err
}

func mailOf(p *catalog.ProjectConfig, defaults *catalog.Defaults) string {
	service, _ := defaults.InForce(p)
	smtp := catalog.SMTPInForce(p.SMTP, defaults)
	switch {
	case !service.MailEnabled:
		return rowjson.MailOff
	case smtp == nil || !smtp.Active:
		return rowjson.MailNoServer
	}
	return rowjson.MailOn
}
