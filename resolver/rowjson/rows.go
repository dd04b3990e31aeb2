package rowjson

import (
	"strconv"

	"fingerpost/resolver/catalog"
)

// The rows of the API and their strong, quoted ETags. An ETag does not depend on the times of a row, except for a
// mail's log entry.

// AppendProject appends a project in the API's form to dst.
func AppendProject(dst []byte, p *catalog.Project) []byte {
	return AppendObject(dst,
		"id", p.ID,
		"uuid", p.UUID,
		"name", p.Name,
		"slug", p.Slug,
		"description", p.Description,
		"status", p.Status,
		"createdAt", p.CreatedAt,
		"updatedAt", p.UpdatedAt)
}

// ProjectETag returns the ETag of a project. It covers this service's own fields, which AppendProject leaves out, so that
// If-Match on a PUT notices a change of another client.
func ProjectETag(p *catalog.Project) string {
	return ETag(AppendObject(WithoutTimes(AppendProject(nil, p)), ownMembers(p.Fields())...))
}

// ownMembers returns the names and values of the fields that this service alone has.
func ownMembers(fields []catalog.Field) (members []any) {
	for i := range fields {
		if f := &fields[i]; f.Own {
			members = append(members, f.Name, f.Plain())
		}
	}
	return members
}

// AppendLabels appends labels to dst as a JSON object.
func AppendLabels(dst []byte, labels []catalog.Label) []byte {
	dst = append(dst, '{')
	for i, l := range labels {
		dst = AppendString(append(AppendString(appendComma(dst, i), l.Name), ':'), l.Value)
	}
	return append(dst, '}')
}

// AppendDomain appends a domain record to dst in the form of lists and of resolve.
func AppendDomain(dst []byte, d *catalog.Domain) []byte {
	return AppendObject(dst,
		"id", d.ID,
		"projectId", d.ProjectID,
		"domain", d.Name,
		"primary", d.Primary,
		"active", d.Active,
		"createdAt", d.CreatedAt,
		"updatedAt", d.UpdatedAt)
}

// AppendDomainRecord appends a domain record to dst in the form of answers about one domain: with certificates and
// verified, null if the files do not say them.
func AppendDomainRecord(dst []byte, d *catalog.Domain) []byte {
	dst = AppendDomain(dst, d)
	dst = append(dst[:len(dst)-1], `,"certificates":`...)
	if d.Certificates == nil {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendBool(dst, *d.Certificates)
	}
	dst = append(dst, `,"verified":`...)
	if d.Verified == nil {
		return append(dst, "null}"...)
	}
	return append(AppendString(dst, *d.Verified), '}')
}

// DomainETag returns the ETag of a domain record.
func DomainETag(d *catalog.Domain) string { return ETag(WithoutTimes(AppendDomainRecord(nil, d))) }

// AppendServiceSettings appends the service settings of a project to dst, without the fields that only the flat resolve
// form has.
func AppendServiceSettings(dst []byte, project int64, s *catalog.ServiceSettings) []byte {
	return AppendObject(dst,
		"id", s.ID,
		"projectId", project,
		"authEnabled", s.AuthEnabled,
		"mailEnabled", s.MailEnabled,
		"smsEnabled", s.SMSEnabled,
		"auditEnabled", s.AuditEnabled)
}

// ServiceSettingsETag returns the ETag of a project's service settings.
func ServiceSettingsETag(project int64, s *catalog.ServiceSettings) string {
	return ETag(AppendServiceSettings(nil, project, s))
}

// AppendAuthSettings appends the auth settings of a project to dst, without the fields that only the flat resolve form
// has.
func AppendAuthSettings(dst []byte, project int64, a *catalog.AuthSettings) []byte {
	return AppendObject(dst,
		"id", a.ID,
		"projectId", project,
		"registrationMode", a.RegistrationMode,
		"emailVerificationRequired", a.EmailVerificationRequired,
		"phoneVerificationRequired", a.PhoneVerificationRequired,
		"approvalRequired", a.ApprovalRequired,
		"inviteOnly", a.InviteOnly,
		"twoFactorRequired", a.TwoFactorRequired)
}

// AuthSettingsETag returns the ETag of a project's auth settings.
func AuthSettingsETag(project int64, a *catalog.AuthSettings) string {
	return ETag(AppendAuthSettings(nil, project, a))
}

// AppendSMTPConfig appends a project's SMTP config in the API's form to dst: the port in force, and nothing of the
// secrets.
func AppendSMTPConfig(dst []byte, project int64, c *catalog.SMTPConfig) []byte {
	fields := []any{
		"id", c.ID,
		"projectId", project,
		"host", c.Host,
		"port", c.EffectivePort(),
		"username", c.Username,
		"fromEmail", c.FromEmail,
		"fromName", c.FromName,
		"replyTo", c.ReplyTo,
		"sslEnabled", c.SSLEnabled,
		"tlsEnabled", c.TLSEnabled,
		"active", c.Active,
	}
	// Ours come after the specification's fields, which stay as they are.
	for _, f := range []struct{ name, value string }{{"ehloName", c.EHLOName}, {"auth", c.Auth},
		{"oauthTokenUrl", c.OAuth.TokenURL}, {"oauthClientId", c.OAuth.ClientID}, {"oauthScope", c.OAuth.Scope},
		{"spfInclude", c.SPFInclude}} {
		if f.value != "" {
			fields = append(fields, f.name, f.value)
		}
	}
	if c.DKIMSelectors != nil {
		fields = append(fields, "dkimSelectors", c.DKIMSelectors)
	}
	if c.SuppressBounces != nil {
		fields = append(fields, "suppressBounces", *c.SuppressBounces)
	}
	return AppendObject(dst, fields...)
}

// SMTPConfigETag returns the ETag of a project's SMTP config, independent of its secrets.
func SMTPConfigETag(project int64, c *catalog.SMTPConfig) string {
	return ETag(AppendSMTPConfig(nil, project, c))
}

// AppendTemplate appends a whole template in the API's form to dst: with its locales, if it has some.
func AppendTemplate(dst []byte, t *catalog.Template) []byte {
	fields := []any{
		"id", t.ID,
		"projectId", nullIf(t.ProjectID == 0, t.ProjectID),
		"code", t.Code,
		"name", t.Name,
		"subjectTemplate", t.SubjectTemplate,
		"bodyHtml", t.BodyHTML,
		"bodyText", t.BodyText,
		"active", t.Active,
		"defaultTemplate", t.ProjectID == 0,
		"createdAt", t.CreatedAt,
		"updatedAt", t.UpdatedAt,
		"maxAge", t.EffectiveMaxAge(),
	}
	fields = withCategory(t, fields...)
	if len(t.Locales) > 0 { // ours: the specification's fields stay as they are
		fields = append(fields, "locales", t.Locales)
	}
	return AppendObject(dst, fields...)
}

// appendLocales appends the locales of a template to dst as a JSON object.
func appendLocales(dst []byte, locales catalog.Locales) []byte {
	dst = append(dst, '{')
	for i, l := range locales {
		dst = append(AppendString(appendComma(dst, i), l.Tag), ':')
		dst = append(dst, object("subjectTemplate", l.SubjectTemplate, "bodyHtml", l.BodyHTML, "bodyText", l.BodyText)...)
	}
	return append(dst, '}')
}

// withCategory adds the category of a template to its fields, if it has one: it is ours, and the specification's fields
// stay as they are.
func withCategory(t *catalog.Template, fields ...any) []any {
	if t.Category != "" {
		fields = append(fields, "category", t.Category)
	}
	return fields
}

// AppendTemplateRow appends a template in the form of lists to dst: without bodies and times.
func AppendTemplateRow(dst []byte, t *catalog.Template) []byte {
	return AppendObject(dst, withCategory(t,
		"id", t.ID,
		"projectId", nullIf(t.ProjectID == 0, t.ProjectID),
		"code", t.Code,
		"name", t.Name,
		"subjectTemplate", t.SubjectTemplate,
		"active", t.Active,
		"defaultTemplate", t.ProjectID == 0,
		"maxAge", t.EffectiveMaxAge())...)
}

// TemplateETag returns the ETag of a template.
func TemplateETag(t *catalog.Template) string { return ETag(WithoutTimes(AppendTemplate(nil, t))) }

// AppendMailEntry appends a mail's log entry as AppendMailLog does, and the history of its attempts.
func AppendMailEntry(dst []byte, l *catalog.MailLog) []byte {
	dst = AppendMailLog(dst, l)
	dst = append(dst[:len(dst)-1], `,"history":[`...)
	for i, a := range l.History {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendObject(dst,
			"attempt", a.Number,
			"at", a.At,
			"stage", nullIf(a.Stage == "", a.Stage),
			"errorCode", nullIf(a.Code == "", string(a.Code)),
			"smtpCode", nullIf(a.SMTPCode == 0, a.SMTPCode),
			"message", nullIf(a.Message == "", a.Message))
	}
	return append(dst, "]}"...)
}

// AppendMailLog appends a mail's log entry as JSON: the specification's fields, then ours (mailer/README.md). Zero
// times, empty texts and a reply code of 0 are null.
func AppendMailLog(dst []byte, l *catalog.MailLog) []byte {
	return AppendObject(dst,
		"id", l.ID,
		"projectId", l.ProjectID,
		"providerType", l.ProviderType,
		"toEmail", l.ToEmail,
		"subject", l.Subject,
		"templateCode", nullIf(l.TemplateCode == "", l.TemplateCode),
		"status", string(l.Status),
		"errorMessage", nullIf(l.ErrorMessage == "", l.ErrorMessage),
		"createdAt", l.CreatedAt,
		"sentAt", nullIf(l.SentAt.IsZero(), l.SentAt),
		"attempts", l.Attempts,
		"nextAttemptAt", nullIf(l.NextAttemptAt.IsZero(), l.NextAttemptAt),
		"errorCode", nullIf(l.ErrorCode == "", string(l.ErrorCode)),
		"smtpCode", nullIf(l.SMTPCode == 0, l.SMTPCode),
		"messageId", l.MessageID,
		"uncertain", l.Uncertain,
		"serviceName", l.ServiceName,
		"waitingFor", nullIf(l.WaitingFor == "", l.WaitingFor),
		"againOf", nullIf(l.AgainOf == 0, l.AgainOf),
		"locale", nullIf(l.Locale == "", l.Locale))
}

// MailLogETag returns the ETag of a log entry. It changes with every step of the mail. It depends on the times, which
// are stored, and are the same on every node that has the entry.
func MailLogETag(l *catalog.MailLog) string { return ETag(AppendMailLog(nil, l)) }

// AppendSuppression appends an entry of a suppression list to dst.
func AppendSuppression(dst []byte, s *catalog.Suppression) []byte {
	return AppendObject(dst,
		"address", s.Address,
		"reason", string(s.Reason),
		"category", nullIf(s.Category == "", s.Category),
		"note", nullIf(s.Note == "", s.Note),
		"createdAt", s.CreatedAt,
		"by", nullIf(s.By == "", s.By))
}
