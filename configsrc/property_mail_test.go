package configsrc_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// changeSMTP creates, changes or removes an SMTP config, as the API does.
func (w *world) changeSMTP(p *catalog.ProjectConfig) deed {
	if p.SMTP.HasServer() && w.sometimes(4) {
		p.SMTP = nil
		return deed{what: "delete SMTP config", removed: `smtp_config`}
	}
	u := deed{words: []string{`"` + p.Project.Slug + `"`, "smtp_config"}}
	if p.SMTP == nil {
		p.SMTP = &catalog.SMTPConfig{UUID: catalog.DeriveUUID(catalog.KindSMTPConfig, p.Project.UUID), Host: "localhost", FromEmail: "a@b.example", Active: true}
		p.SMTP.ID = catalog.DeriveID(catalog.KindSMTPConfig, p.SMTP.UUID)
	}
	c := p.SMTP
	if !c.HasServer() {
		c.Host, c.FromEmail = "localhost", "a@b.example"
		u.words = append(u.words, "from_email")
	}
	change := func(word string, f func()) {
		if w.sometimes(3) {
			f()
			u.words = append(u.words, word)
		}
	}
	change("host", func() { c.Host = w.pick("localhost", "mx.acme.example", "192.0.2.1") })
	change("port", func() { c.Port = w.IntN(3) * 25 })
	change("from_name", func() { c.FromName = w.pick("", w.nasty(false)) })
	change("reply_to", func() { c.ReplyTo = w.pick("", "r@acme.example") })
	change("tls_enabled", func() { c.TLSEnabled = w.sometimes(2) })
	change("active", func() { c.Active = w.sometimes(2) })
	if c.Password.Source == catalog.SecretNone {
		change("username", func() { c.Username = w.pick("", w.nasty(false)) })
	}
	u.what = fmt.Sprintf("put SMTP config %+v", *c)
	return u
}

// changeTemplate creates, changes or removes a template, as the API does.
func (w *world) changeTemplate(p *catalog.ProjectConfig) deed {
	code := w.pick("T", "WELCOME", "a.b-c_9")
	at := slices.IndexFunc(p.Templates, func(t catalog.Template) bool { return t.Code == code })
	if at >= 0 && w.sometimes(4) {
		p.Templates = slices.Delete(p.Templates, at, at+1)
		return deed{what: "delete template " + code, removed: `template\s+(/\*.*?\*/\s*)?"?` + regexp.QuoteMeta(code) + `"?`}
	}
	u := deed{words: []string{`"` + p.Project.Slug + `"`, `template.*` + regexp.QuoteMeta(code)}}
	if at < 0 {
		t := catalog.Template{Code: code, ProjectID: p.Project.ID, UUID: catalog.DeriveTemplateUUID(p.Project.UUID, code), Active: true,
			Name: "new", SubjectTemplate: "new", BodyText: "new"}
		t.ID = catalog.DeriveID(catalog.KindTemplate, t.UUID)
		p.Templates, at = append(p.Templates, t), len(p.Templates)
	}
	t := &p.Templates[at]
	change := func(word string, f func()) {
		if w.sometimes(2) {
			f()
			u.words = append(u.words, word)
		}
	}
	body := func() string {
		return w.pick("", w.nasty(true), w.nasty(true), "\ufeff"+w.nasty(true), "one\r\ntwo\r\r\n")
	}
	change("name", func() { t.Name = w.nasty(false) })
	change("subject_template", func() { t.SubjectTemplate = w.nasty(false) })
	change("body_html", func() { t.BodyHTML = strings.ReplaceAll(body(), "\x00", "") })
	change("body_text", func() { t.BodyText = strings.ReplaceAll(body(), "\x00", "") })
	change("active", func() { t.Active = w.sometimes(2) })
	change("max_age", func() { t.MaxAge = w.pick("", "10m", "3w") })
	u.what = fmt.Sprintf("put template %+v", *t)
	return u
}
