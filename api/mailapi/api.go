// Package mailapi answers the calls of /api/mail: sends, previews, the mail log, templates, SMTP configs and their test.
// api/openapi.yaml describes them to clients.
//
// What it promises. A send is accepted only for a project that the key reaches, and answered with its log entry. A
// request that waits for an SMTP server holds a connection, so Waits bounds how many do: a send beyond the bound is
// queued, a test beyond it is refused. A stored password goes only to the destination that it was stored for, and is in
// no answer. Settings for a test come from the request alone, and none of them is stored; or they are those of a project.
//
// Templates and SMTP configs are declarations in the config folder. Their handlers read Config and change files by a
// web.Writer, so that they work on the state of a proposal as on the live one: On makes an API for it. Everything else
// is live: sends, previews and the log.
//
// What it needs. A Mailer, which sends, and readers of the config, the live answers and the log, by interfaces that it
// declares. Package web reads the requests and writes the answers.
//
// What providers tell of mails comes without a key: the secret of an inbound block lets them in, before their body is read.
//
// What it does not do. It checks no key, renders no mail and speaks no SMTP.
package mailapi

import (
	"net/netip"
	"time"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// HealthPath is the path of the health check, which needs no key and answers while the service loads.
const HealthPath = "/api/mail/health"

const (
	smtpConfigPath = "/api/mail/projects/{projectId}/smtp-config"
	templatesPath  = "/api/mail/projects/{projectId}/templates"
	templatePath   = templatesPath + "/{templateId}"
	allLogsPath    = "/api/mail/logs"
	logsPath       = "/api/mail/projects/{projectId}/logs"
	listPath       = "/api/mail/projects/{projectId}/suppressions"
)

// A Config reads what the files declare; *resolver.Resolver and, for the state of a proposal, *resolver.Overlay
// implement it.
type Config interface {
	web.Projects
	templates
	SMTPConfig(projectID int64) (*catalog.SMTPConfig, error)
}

type templates interface {
	Template(projectID, id int64) (*catalog.Template, error)
	OwnTemplate(projectID int64, code string) (*catalog.Template, error)
	Templates(projectID int64, q resolver.Query) ([]*catalog.Template, int, error)
}

// Live finds the project that sends, and the template that it would send; *resolver.Resolver implements it.
type Live interface {
	web.Projects
	Resolve(host []byte, form resolver.Form) (*resolver.Answer, error)
	MailTemplate(projectID int64, code string) (*catalog.Template, error)
}

// A Log is the mail log, which outlives its projects; *resolver.Resolver implements it.
type Log interface {
	MailLog(projectID, id int64) (catalog.MailLog, bool, error)
	MailLogs(projectID int64, q catalog.MailQuery) ([]catalog.MailLog, int, error)
	MailAcross(projects []int64, q catalog.MailQuery) (catalog.MailFound, error)
}

// Lists are the suppression lists of projects; *resolver.Resolver implements it.
type Lists interface {
	SuppressionPage(projectID int64, q catalog.SuppressionQuery) ([]catalog.Suppression, int, error)
	Suppress(projectID int64, list []catalog.Suppression, by catalog.Author, bounded bool) ([]catalog.Suppression, error)
	Release(projectID int64, q catalog.SuppressionQuery, by catalog.Author) ([]catalog.Suppression, error)
}

// An API answers the calls of /api/mail. Safe for concurrent use.
type API struct {
	Config Config
	Writer *web.Writer
	Live   Live
	Log    Log
	Lists  Lists
	Mail   Mailer // nil: sends and tests are answered 503
	Waits  *Waits
	// PublicURL is where recipients find the service. "": no template can be given a category.
	PublicURL string
	// Senders checks senders; nil: that is answered 503.
	Senders SenderChecker
	// Inbound takes what providers tell of mails; nil: that is answered 503.
	Inbound Desk
	// Throttle counts a wrong secret of Inbound against the peer's address, and returns how long it has to wait, 0 while it
	// need not.
	Throttle func(peer netip.Addr) time.Duration
	// ReadOnly says that this node changes nothing: Inbound is answered 503.
	ReadOnly bool
}

// On returns an API for the state of a proposal.
func (a *API) On(config Config, writer *web.Writer) *API {
	on := *a
	on.Config, on.Writer = config, writer
	return &on
}

// Routes lists every call.
func (a *API) Routes() []web.Route {
	const read, write, mail = catalog.MayRead, catalog.MayWrite, catalog.MayMail
	on := func(run func(*web.Request, *catalog.Project) error) func(*web.Request) error {
		return web.OnProject(a.Config, "projectId", run)
	}
	onTemplate := func(run func(*web.Request, *catalog.Project, *catalog.Template) error) func(*web.Request) error {
		return web.OnPart(a.Config, "templateId", a.Config.Template, run)
	}
	return []web.Route{
		web.Call("GET", HealthPath, 0, 0, health),
		web.Call("GET", smtpConfigPath, read, web.Proposable, on(a.getSMTPConfig)),
		web.Call("POST", smtpConfigPath, write, 0, on(a.saveSMTPConfig)),
		web.Call("PUT", smtpConfigPath, write, 0, on(a.saveSMTPConfig)),
		web.Call("DELETE", smtpConfigPath, write, 0, on(a.deleteSMTPConfig)),
		web.Call("GET", templatesPath, read, web.Proposable, a.listTemplates),
		web.Call("POST", templatesPath, write, 0, on(a.saveTemplate)),
		web.Call("PUT", templatesPath, write, 0, on(a.saveTemplate)),
		web.Call("GET", templatePath, read, web.Proposable, onTemplate(a.getTemplate)),
		web.Call("DELETE", templatePath, write, 0, onTemplate(a.deleteTemplate)),
		web.Call("POST", "/api/mail/send/template", mail, 0, a.sendTemplate),
		web.Call("POST", "/api/mail/send/raw", mail, 0, a.sendRaw),
		web.Call("POST", "/api/mail/send/test-template", mail, 0, a.sendTestTemplate),
		web.Call("POST", "/api/mail/projects/smtp-config/test", mail, 0, a.testSMTP),
		web.Call("POST", smtpConfigPath+"/test", mail, 0, on(a.testStored)),
		web.Call("POST", "/api/mail/projects/{projectId}/sender-check", write|mail, web.LiveOnly, on(a.checkSender)),
		web.Call("POST", templatesPath+"/preview", read, 0, on(a.previewTemplate)),
		web.Call("GET", allLogsPath, read, web.ByAuthority, a.listAllMail),
		web.Call("GET", logsPath, read, web.ByAuthority, a.listMailLogs),
		web.Call("GET", logsPath+"/{logId}", read, web.ByAuthority, a.getMailLog),
		web.Call("GET", logsPath+"/{logId}/message", read, web.ByAuthority, a.getKept),
		web.Call("GET", listPath, read, web.ByAuthority, a.listSuppressions),
		web.Call("POST", listPath, write, web.LiveOnly, on(a.suppress)),
		web.Call("DELETE", listPath, write, web.LiveOnly, a.release),
		a.inboundRoute(),
	}
}

func health(r *web.Request) error {
	r.Succeed("mail service is up", []byte(`{"service":"mail-service","status":"UP"}`))
	return nil
}
