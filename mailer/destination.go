package mailer

import (
	"fmt"
	"slices"
	"strings"

	"fingerpost/mailer/oauth"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// A destination is where a project's mail goes according to the current config. Equal values are the same config,
// secrets included.
type destination struct {
	server smtp.Server
	from   string // the config's fromEmail
}

// destination reads where queued mail goes. wait says why it cannot go anywhere; err means that the store cannot be
// read.
func (m *Mailer) destination(project int64) (d destination, wait *hold, err error) {
	p, err := m.options.Projects.MailProject(project)
	switch {
	case hasCode(err, catalog.CodeNotFound):
		return d, &hold{code: catalog.CodeNotFound, message: "the project was deleted"}, nil
	case err != nil:
		return d, nil, err
	case p.Project.Status == catalog.StatusSuspended:
		return d, &hold{code: catalog.CodeProjectSuspended, message: "the project is suspended",
			since: p.Project.UpdatedAt}, nil
	case p.SMTP == nil || !p.SMTP.Active:
		return d, &hold{code: catalog.CodeSMTPNotConfigured, message: "the project has no active SMTP config"}, nil
	}
	if d, err = m.open(p); err != nil {
		return d, &hold{code: catalog.CodeUnavailable, message: err.Error()}, nil //nolint:nilerr // the hold carries it
	}
	return d, nil, nil
}

// open opens the secrets of a project's SMTP config. Its error goes to callers and hides the cause, which is logged for
// the operator.
func (m *Mailer) open(p *catalog.ProjectConfig) (d destination, err error) {
	d.server, d.from = serverOf(p.SMTP), p.SMTP.FromEmail
	if m.options.Keep {
		return d, nil // no server is asked, so no secret is needed
	}
	for _, s := range secretsOf(p.SMTP, &d.server) {
		context := p.SMTP.SecretContext(p.Project.UUID, catalog.Snake(s.field))
		if *s.to, err = m.options.OpenSecret(s.secret, context); err != nil {
			return d, m.notOpened(&p.Project, s.field, err)
		}
	}
	m.unopened.Delete(p.Project.ID)
	return d, nil
}

// serverOf returns the server of an SMTP config, without its secrets.
func serverOf(c *catalog.SMTPConfig) smtp.Server {
	s := smtp.Server{Host: c.Host, Port: c.EffectivePort(), Username: c.Username, SSL: c.SSLEnabled, TLS: c.TLSEnabled,
		EHLOName: c.EHLOName, Auth: c.Auth}
	if c.Auth == catalog.AuthXOAUTH2 {
		s.OAuth = oauth.Account{TokenURL: c.OAuth.TokenURL, ClientID: c.OAuth.ClientID, Scope: c.OAuth.Scope}
	}
	return s
}

// A serverSecret is a secret that a server needs.
type serverSecret struct {
	field  string
	secret catalog.Secret
	to     *string
}

// secretsOf lists the secrets of an SMTP config that mail needs, and where they go.
func secretsOf(c *catalog.SMTPConfig, to *smtp.Server) []serverSecret {
	login := serverSecret{"password", c.Password, &to.Password}
	if c.Auth == catalog.AuthXOAUTH2 {
		login = serverSecret{"oauthClientSecret", c.OAuth.Secret, &to.OAuth.Secret}
	}
	ca := serverSecret{"caFile", catalog.Secret{}, &to.CA}
	if c.CAFile != "" {
		ca.secret = catalog.Secret{Source: catalog.SecretFile, Ref: c.CAFile}
	}
	return slices.DeleteFunc([]serverSecret{login, ca}, func(s serverSecret) bool {
		return s.secret.Source == catalog.SecretNone
	})
}

// A SecretProblem is a secret of a project's SMTP config that cannot be opened on this node: its mail is not sent.
type SecretProblem struct {
	ProjectID int64
	Slug      string
	Field     string // password, oauthClientSecret or caFile
	Message   string // does not reveal the secret
}

// SecretProblems lists the secrets that could not be opened when they were needed, and still cannot, by slug.
func (m *Mailer) SecretProblems() (problems []SecretProblem) {
	m.unopened.Range(func(id, _ any) bool {
		p, err := m.options.Projects.MailProject(id.(int64))
		if err == nil && p.SMTP != nil {
			_, err = m.open(p)
		}
		if err == nil || p == nil || p.SMTP == nil {
			m.unopened.Delete(id)
		} else if now, still := m.unopened.Load(id); still {
			problems = append(problems, now.(SecretProblem))
		}
		return true
	})
	slices.SortFunc(problems, func(a, b SecretProblem) int { return strings.Compare(a.Slug, b.Slug) })
	return problems
}

// SecretProblem opens the secrets of a project's SMTP config, and returns nil if that works or there is none.
func (m *Mailer) SecretProblem(project int64) *SecretProblem {
	p, err := m.options.Projects.MailProject(project)
	if err != nil || p.SMTP == nil {
		return nil
	}
	if _, err := m.open(p); err == nil {
		return nil
	}
	problem, _ := m.unopened.Load(project)
	found, is := problem.(SecretProblem)
	if !is { // opened by now
		return nil
	}
	return &found
}

// notOpened logs which secret cannot be opened, and why, unless the last line about the project said the same: one line
// per cause, not one per send. It returns the error for callers.
func (m *Mailer) notOpened(p *catalog.Project, what string, err error) error {
	now := SecretProblem{ProjectID: p.ID, Slug: p.Slug, Field: what, Message: err.Error()}
	if before, _ := m.unopened.Swap(p.ID, now); before != now {
		m.options.Logger.Warn("a project's mail cannot be sent from this node, since a secret cannot be opened",
			"project", p.Slug, "secret", what, "error", err)
	}
	return fmt.Errorf("the %s of project %s cannot be opened on this node, whose log says why", what, p.Slug)
}
