package mailapi

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// smtpNames are the fields of an SMTP config in a request, and for each secret the one of catalog.SealField.
var smtpNames = func() []string {
	names := catalog.RequestNames(new(catalog.SMTPConfig).Fields())
	for _, f := range new(catalog.SMTPConfig).Secrets() {
		names = append(names, catalog.SealField(f.Name))
	}
	return names
}()

// maxSecretBytes is the longest secret that a request may set.
const maxSecretBytes = 1024

func (a *API) getSMTPConfig(r *web.Request, project *catalog.Project) error {
	return web.AnswerSingle(r, project, "SMTP config found",
		a.Config.SMTPConfig, rowjson.AppendSMTPConfig, rowjson.SMTPConfigETag)
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
		return r.MatchesSaved(rowjson.SMTPConfigETag(project.ID, c))
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
		Seals: f.sealed()}})
	if err != nil {
		return err
	}
	if now, err = a.Config.SMTPConfig(project.ID); err != nil {
		return err
	}
	r.SucceedSaved("SMTP config", created, rowjson.AppendSMTPConfig(nil, project.ID, now),
		rowjson.SMTPConfigETag(project.ID, now),
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
	for _, field := range c.Fields() {
		text, isText := field.Value.(*string)
		switch {
		case field.FileOnly, field.Name == "port":
		case isText && !field.Required:
			f.FillOptional(field.Name, text)
		default:
			f.Read(field.Name, field.Value) // but secrets, which follow
		}
	}
	f.port(&c, have.HasServer())
	for _, secret := range c.Secrets() {
		f.secret(&secret, &c, have)
		f.Read(catalog.SealField(secret.Name), new(bool))
	}
	return &c, f.Validated(c.Validate())
}

// sealed lists the secrets whose new values are to take the place of a call.
func (f *form) sealed() (names []string) {
	for _, secret := range new(catalog.SMTPConfig).Secrets() {
		if f.Body.Values[catalog.SealField(secret.Name)] == true {
			names = append(names, secret.Name)
		}
	}
	return names
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

// secret reads a secret of c. Null removes it. A body without it keeps the stored one, which may go only to the
// destination that it was stored for.
func (f *form) secret(field *catalog.Field, c, have *catalog.SMTPConfig) {
	to := field.Value.(*catalog.Secret)
	value, given := f.Body.Values[field.Name]
	text, isText := value.(string)
	switch {
	case !given:
		if have != nil && to.Source != catalog.SecretNone && c.Moved(have, field) {
			last := len(field.BoundTo) - 1
			f.Fail(field.Name, fmt.Sprintf("must be given again where %s or %s change, or be null: the stored one was meant "+
				"for the old destination", strings.Join(field.BoundTo[:last], ", "), field.BoundTo[last]))
		}
	case value == nil:
		*to = catalog.Secret{}
	case !isText:
		f.Fail(field.Name, "must be a string or null")
	case text == "":
		f.Fail(field.Name, "must not be empty: leave it out to keep the stored one, or give null to remove it")
	case len(text) > maxSecretBytes || strings.ContainsFunc(text, unicode.IsControl):
		f.Fail(field.Name, fmt.Sprintf("must be at most %d bytes and hold no control characters", maxSecretBytes))
	default:
		*to = catalog.Secret{Source: catalog.SecretPlain, Ref: text}
	}
}

// deleteSMTPConfig answers DELETE of a project's SMTP config.
func (a *API) deleteSMTPConfig(r *web.Request, project *catalog.Project) error {
	c, err := a.Config.SMTPConfig(project.ID)
	if err == nil {
		err = r.Matches(rowjson.SMTPConfigETag(project.ID, c))
	}
	if err != nil {
		return err
	}
	err = a.Writer.Update(r, project, func(p *catalog.ProjectConfig) error {
		if !p.SMTP.HasServer() {
			return &catalog.Error{Code: catalog.CodeNotFound, Message: "no such SMTP config"}
		}
		if err := r.Matches(rowjson.SMTPConfigETag(p.Project.ID, p.SMTP)); err != nil {
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
