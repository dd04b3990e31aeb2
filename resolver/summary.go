package resolver

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// A Summary is a project with what a list for people shows of it (api/README.md, Projects).
type Summary struct {
	catalog.Project
	Primary string // the primary domain; the first by name where none is primary, "" where there is none
	Domains int
	Mail    string // MailOn, MailOff or MailNoServer
	File    string // that declares it, below the config folder; "": not known
}

// The mail of a project: whether its settings in force let it send.
const (
	MailOn       = "ON"
	MailOff      = "OFF"
	MailNoServer = "NO_SERVER" // it is switched on, and has no active SMTP config
)

// Summaries reads the summaries of projects, without their files. A project that is gone by now is left out.
func (s *State) Summaries(projects []*catalog.Project) (rows []*Summary, err error) {
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
func summary(v *store.View, project int64, defaults *catalog.Defaults) (*Summary, error) {
	p := new(catalog.ProjectConfig)
	if found, err := v.Project(p, project); err != nil || !found {
		return nil, err
	}
	s := &Summary{Project: p.Project, Mail: mailOf(p, defaults)}
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
		return MailOff
	case smtp == nil || !smtp.Active:
		return MailNoServer
	}
	return MailOn
}

// AppendSummary appends a summary to dst: the project in the API's form, and what the list shows of it.
func AppendSummary(dst []byte, s *Summary) []byte {
	dst = AppendProject(dst, &s.Project)
	more := object(
		"labels", s.Labels,
		"primaryDomain", nullIf(s.Primary == "", s.Primary),
		"domainCount", s.Domains,
		"mail", s.Mail,
		"file", nullIf(s.File == "", s.File))
	dst[len(dst)-1] = ','
	return append(dst, more[1:]...)
}
