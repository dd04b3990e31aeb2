package resolver

import "fingerpost/resolver/catalog"

// AppendProject appends a project as the API shows it to dst.
func AppendProject(dst []byte, p *catalog.Project) []byte {
	e := encoder{b: dst}
	e.project(p)
	return e.b
}

// AppendDomain appends a domain record as the API shows it to dst.
func AppendDomain(dst []byte, d *catalog.Domain) []byte {
	e := encoder{b: dst}
	e.domain(d)
	return e.b
}

// AppendServiceSettings appends the service settings of a project to dst, without what only the flat resolve form has.
func AppendServiceSettings(dst []byte, project int64, s *catalog.ServiceSettings) []byte {
	e := encoder{b: dst}
	e.serviceSettings(project, s)
	return e.b
}

// AppendAuthSettings appends the auth settings of a project to dst, without what only the flat resolve form has.
func AppendAuthSettings(dst []byte, project int64, a *catalog.AuthSettings) []byte {
	e := encoder{b: dst}
	e.authSettings(project, a)
	return e.b
}

// AppendSMTPConfig appends a project's SMTP config as the API shows it to dst: the port that is in force, and nothing of
// the password.
func AppendSMTPConfig(dst []byte, project int64, c *catalog.SMTPConfig) []byte {
	e := encoder{b: dst}
	e.smtpConfig(project, c)
	return e.b
}

// AppendTemplate appends a whole template as the API shows it to dst.
func AppendTemplate(dst []byte, t *catalog.Template) []byte {
	e := encoder{b: dst}
	e.template(t, true)
	return e.b
}

// AppendTemplateRow appends a template as lists show it to dst: without bodies and times.
func AppendTemplateRow(dst []byte, t *catalog.Template) []byte {
	e := encoder{b: dst}
	e.template(t, false)
	return e.b
}

// ProjectETag is the strong, quoted ETag of a project as AppendProject shows it, whatever its times are.
func ProjectETag(p *catalog.Project) string {
	var e encoder
	e.project(p)
	return string(e.appendETag(nil))
}

// DomainETag is the ETag of a domain record.
func DomainETag(d *catalog.Domain) string {
	var e encoder
	e.domain(d)
	return string(e.appendETag(nil))
}

// ServiceSettingsETag is the ETag of a project's service settings.
func ServiceSettingsETag(project int64, s *catalog.ServiceSettings) string {
	var e encoder
	e.serviceSettings(project, s)
	return string(e.appendETag(nil))
}

// SMTPConfigETag is the ETag of a project's SMTP config, whose password has no say in it.
func SMTPConfigETag(project int64, c *catalog.SMTPConfig) string {
	var e encoder
	e.smtpConfig(project, c)
	return string(e.appendETag(nil))
}

// TemplateETag is the ETag of a template.
func TemplateETag(t *catalog.Template) string {
	var e encoder
	e.template(t, true)
	return string(e.appendETag(nil))
}

// AuthSettingsETag is the ETag of a project's auth settings.
func AuthSettingsETag(project int64, a *catalog.AuthSettings) string {
	var e encoder
	e.authSettings(project, a)
	return string(e.appendETag(nil))
}
