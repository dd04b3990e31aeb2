package resolver

import "fingerpost/resolver/catalog"

// AppendProject appends a project in the API's form to dst.
func AppendProject(dst []byte, p *catalog.Project) []byte {
	e := encoder{b: dst}
	e.project(p)
	return e.b
}

// AppendDomain appends a domain record in the API's form to dst.
func AppendDomain(dst []byte, d *catalog.Domain) []byte {
	e := encoder{b: dst}
	e.domain(d)
	return e.b
}

// AppendServiceSettings appends the service settings of a project to dst, without the fields that only the flat resolve
// form has.
func AppendServiceSettings(dst []byte, project int64, s *catalog.ServiceSettings) []byte {
	e := encoder{b: dst}
	e.serviceSettings(project, s)
	return e.b
}

// AppendAuthSettings appends the auth settings of a project to dst, without the fields that only the flat resolve form
// has.
func AppendAuthSettings(dst []byte, project int64, a *catalog.AuthSettings) []byte {
	e := encoder{b: dst}
	e.authSettings(project, a)
	return e.b
}

// AppendSMTPConfig appends a project's SMTP config in the API's form to dst: the port in force, and nothing of the
// password.
func AppendSMTPConfig(dst []byte, project int64, c *catalog.SMTPConfig) []byte {
	e := encoder{b: dst}
	e.smtpConfig(project, c)
	return e.b
}

// AppendTemplate appends a whole template in the API's form to dst.
func AppendTemplate(dst []byte, t *catalog.Template) []byte {
	e := encoder{b: dst}
	e.template(t, true)
	return e.b
}

// AppendTemplateRow appends a template in the form of lists to dst: without bodies and times.
func AppendTemplateRow(dst []byte, t *catalog.Template) []byte {
	e := encoder{b: dst}
	e.template(t, false)
	return e.b
}

// ProjectETag returns the strong, quoted ETag of a project, independent of its times.
func ProjectETag(p *catalog.Project) string {
	var e encoder
	e.project(p)
	return string(e.appendETag(nil))
}

// DomainETag returns the ETag of a domain record.
func DomainETag(d *catalog.Domain) string {
	var e encoder
	e.domain(d)
	return string(e.appendETag(nil))
}

// ServiceSettingsETag returns the ETag of a project's service settings.
func ServiceSettingsETag(project int64, s *catalog.ServiceSettings) string {
	var e encoder
	e.serviceSettings(project, s)
	return string(e.appendETag(nil))
}

// SMTPConfigETag returns the ETag of a project's SMTP config, independent of its password.
func SMTPConfigETag(project int64, c *catalog.SMTPConfig) string {
	var e encoder
	e.smtpConfig(project, c)
	return string(e.appendETag(nil))
}

// TemplateETag returns the ETag of a template.
func TemplateETag(t *catalog.Template) string {
	var e encoder
	e.template(t, true)
	return string(e.appendETag(nil))
}

// AuthSettingsETag returns the ETag of a project's auth settings.
func AuthSettingsETag(project int64, a *catalog.AuthSettings) string {
	var e encoder
	e.authSettings(project, a)
	return string(e.appendETag(nil))
}
