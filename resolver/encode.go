package resolver

import (
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// appendMatch appends an answer's data in a form.
func appendMatch(dst []byte, m *match, form Form, secret *string) []byte {
	service, auth := m.defaults.InForce(&m.project)
	if form == Nested || form == NestedLabels {
		return appendNested(dst, m, form, &service, &auth)
	}
	return appendFlat(dst, m, form, &service, &auth, secret)
}

func appendNested(dst []byte, m *match, form Form, service *catalog.ServiceSettings,
	auth *catalog.AuthSettings) []byte {
	project := &m.project.Project
	dst = rowjson.AppendProject(append(dst, `{"project":`...), project)
	dst = form.appendLabels(dst, project)
	dst = rowjson.AppendAuthSettings(append(dst, `,"authSettings":`...), project.ID, auth)
	dst = rowjson.AppendServiceSettings(append(dst, `,"serviceSettings":`...), project.ID, service)
	dst = rowjson.AppendDomain(append(dst, `,"matchedDomain":`...), &m.domain)
	return append(dst, '}')
}

func appendFlat(dst []byte, m *match, form Form, service *catalog.ServiceSettings, auth *catalog.AuthSettings,
	secret *string) []byte {
	p := &m.project.Project
	dst = rowjson.AppendObject(append(dst, `{"project":`...),
		"id", strconv.FormatInt(p.ID, 10),
		"uuid", p.UUID,
		"name", p.Name,
		"slug", p.Slug,
		"description", p.Description,
		"status", strings.ToLower(p.Status),
		"createdAt", rowjson.Millis(p.CreatedAt),
		"updatedAt", rowjson.Millis(p.UpdatedAt))
	dst = form.appendLabels(dst, p)
	dst = rowjson.AppendObject(append(dst, `,"authSettings":`...),
		"jwtEnabled", auth.Token.JWTEnabled,
		"jwtSecret", secret,
		"jwtExpiresIn", auth.Token.JWTExpiresIn,
		"refreshTokenEnabled", auth.Token.RefreshTokenEnabled,
		"refreshTokenExpiresIn", auth.Token.RefreshTokenExpiresIn,
		"sessionTimeout", auth.Token.SessionTimeout,
		"twoFactorEnabled", auth.TwoFactorRequired,
		"passwordMinLength", auth.Password.MinLength,
		"passwordRequireUppercase", auth.Password.RequireUppercase,
		"passwordRequireNumbers", auth.Password.RequireNumbers,
		"emailVerificationRequired", auth.EmailVerificationRequired)
	var provider, from any
	if smtp := catalog.SMTPInForce(m.project.SMTP, m.defaults); smtp != nil {
		provider, from = "SMTP", smtp.FromEmail
	}
	dst = rowjson.AppendObject(append(dst, `,"serviceSettings":`...),
		"mailEnabled", service.MailEnabled,
		"mailProvider", provider,
		"mailFromAddress", from,
		"smsEnabled", service.SMSEnabled,
		"smsProvider", service.SMSProvider,
		"auditEnabled", service.AuditEnabled,
		"auditRetentionDays", service.AuditRetentionDays)
	dst = rowjson.AppendString(append(dst, `,"matchedDomain":`...), m.domain.Name)
	return append(dst, '}')
}

// appendLabels adds the labels to the project that dst ends with, in the forms that have them.
func (f Form) appendLabels(dst []byte, p *catalog.Project) []byte {
	if !f.labels() {
		return dst
	}
	dst = append(dst[:len(dst)-1], `,"labels":`...)
	return append(rowjson.AppendLabels(dst, p.Labels), '}')
}
