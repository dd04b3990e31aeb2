package mailapi

import (
	"strconv"
	"strings"
	"unicode"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// smtpNames are the fields of an SMTP config in a request.
var smtpNames = append(catalog.RequestNames(new(catalog.SMTPConfig).Fields()), sealPassword)

// sealPassword is the field that has a new password take the place of a call in the file.
const sealPassword = "sealPassword"

// maxPasswordBytes is the longest password that a request may set.
const maxPasswordBytes = 1024

func (a *API) getSMTPConfig(r *web.Request, project *catalog.Project) error {
	return web.AnswerSingle(r, project, "SMTP config found",
		a.Config.SMTPConfig, resolver.AppendSMTPConfig, resolver.SMTPConfigETag)
}

// saveSMTPConfig answers POST and PUT of a project's SMTP config; both create it or change it.
func (a *API) saveSMTPConfig(r *web.Request, project *catalog.Project) error {
	f, err := readForm(r, smtpNames)
	if err != nil {
		return err
	}
	now, err := a.Config.SMTPConfig(project.ID) // nil if there is none
	if err != nil && !catalog.IsNotFound(err) {
		return err
	}
	if _, err := f.smtpConfig(now, project.UUID); err != nil {
		return err
	}
	present := func(c *catalog.SMTPConfig) error {
		if !c.HasServer() {
			return r.MatchesNone()
		}
		return r.MatchesSaved(resolver.SMTPConfigETag(project.ID, c))
	}
	if err := present(now); err != nil {
		return err
	}
	created := false
	change := func(p *catalog.ProjectConfig) error {
		if err := present(p.SMTP); err != nil {
			return err
		}
		created = !p.SMTP.HasServer()
		p.SMTP, err = f.smtpConfig(p.SMTP, p.Project.UUID)
		return err
	}
	err = a.Writer.Write(r, &catalog.Edit{Project: &catalog.ProjectEdit{UUID: project.UUID, Change: change,
		Seals: f.Body.Values[sealPassword] == true}})
	if err != nil {
		return err
	}
	if now, err = a.Config.SMTPConfig(project.ID); err != nil {
		return err
	}
	r.SucceedSaved("SMTP config", created, resolver.AppendSMTPConfig(nil, project.ID, now),
		resolver.SMTPConfigETag(project.ID, now),
		mailLocation(project.ID)+"/smtp-config")
	return nil
}

// smtpConfig returns have, the current SMTP config (nil: none), with the body applied. To clients, one without a host
// does not exist yet; its sender stays where the body does not name one. A new password is in clear text.
// It may be called again on the same form and reports every problem each time.
func (f *form) smtpConfig(have *catalog.SMTPConfig, project catalog.UUID) (*catalog.SMTPConfig, error) {
	f = f.again()
	c := catalog.SMTPConfig{UUID: catalog.DeriveUUID(catalog.KindSMTPConfig, project), Active: true}
	c.ID = catalog.DeriveID(catalog.KindSMTPConfig, c.UUID)
	if have != nil {
		c = *have
	}
	if !have.HasServer() {
		f.Require("host", "is required: the name or address of the SMTP server")
		f.Require("fromEmail", "is required: the sender's address")
	}
	f.Fill(c.Fields(), "host", "fromEmail", "sslEnabled", "tlsEnabled", "active", "suppressBounces")
	f.FillOptional("username", &c.Username)
	f.FillOptional("fromName", &c.FromName)
	f.FillOptional("replyTo", &c.ReplyTo)
	f.FillOptional("ehloName", &c.EHLOName)
	f.port(&c, have.HasServer())
	f.password(&c, have)
	var seals bool
	f.Read(sealPassword, &seals)
	return &c, f.Validated(c.Validate())
}

// port reads the port. The default port of an existing config that does not write it stays unwritten: a client that
// sends back what it has read changes nothing.
func (f *form) port(c *catalog.SMTPConfig, exists bool) {
	if !f.Has("port") {
		return
	}
	written := c.Port
	c.Port = 0
	var port int
	f.Read("port", &port)
	if port < 1 || port > 65535 {
		f.Fail("port", "must be from 1 to 65535")
		return
	}
	if !exists || written != 0 || port != c.EffectivePort() {
		c.Port = port
	}
}

// password reads the password. Null removes it. A body without it keeps the stored one, which may go only to the
// destination that it was stored for.
func (f *form) password(c, have *catalog.SMTPConfig) {
	value, given := f.Body.Values["password"]
	text, isText := value.(string)
	switch {
	case !given:
		if have != nil && have.Password.Source != catalog.SecretNone && destination(c) != destination(have) {
			f.Fail("password", "must be given again where host, port, sslEnabled, tlsEnabled or username change, or be null: "+
				"the stored one was meant for the old destination")
		}
	case value == nil:
		c.Password = catalog.Secret{}
	case !isText:
		f.Fail("password", "must be a string or null")
	case text == "":
		f.Fail("password", "must not be empty: leave it out to keep the stored one, or give null to remove it")
	case len(text) > maxPasswordBytes || strings.ContainsFunc(text, unicode.IsControl):
		f.Fail("password", "must be at most 1024 bytes and hold no control characters")
	default:
		c.Password = catalog.Secret{Source: catalog.SecretPlain, Ref: text}
	}
}

// A mailDestination is the server and login that a stored password belongs to.
type mailDestination struct {
	host, username string
	port           int
	ssl, tls       bool
}

func destination(c *catalog.SMTPConfig) mailDestination {
	return mailDestination{c.Host, c.Username, c.EffectivePort(), c.SSLEnabled, c.TLSEnabled}
}

// deleteSMTPConfig answers DELETE of a project's SMTP config.
func (a *API) deleteSMTPConfig(r *web.Request, project *catalog.Project) error {
	c, err := a.Config.SMTPConfig(project.ID)
	if err == nil {
		err = r.Matches(resolver.SMTPConfigETag(project.ID, c))
	}
	if err != nil {
		return err
	}
	err = a.Writer.Update(r, project, func(p *catalog.ProjectConfig) error {
		if !p.SMTP.HasServer() {
			return &catalog.Error{Code: catalog.CodeNotFound, Message: "no such SMTP config"}
		}
		if err := r.Matches(resolver.SMTPConfigETag(p.Project.ID, p.SMTP)); err != nil {
			return err
		}
		p.SMTP = nil
		return nil
	})
	if err != nil {
		return err
	}
	r.Succeed("SMTP config deleted", []byte("null"))
	return nil
}

func mailLocation(project int64) string {
	return "/api/mail/projects/" + strconv.FormatInt(project, 10)
}
