package console

import (
	"fingerpost/resolver/catalog"
)

// A kind describes a resource: where it is, and its fields.
type kind struct {
	title  string
	mail   bool
	list   string // path of the collection, "%s" is the project
	single bool   // a project has one
	live   bool   // a change of it cannot be proposed
	byCode bool   // it is saved by its code, so that a default becomes the project's own; origins are not known
	part   string // of the answer with view=full that has its values and origins; "": it is the answer itself
	fields []field
}

// editable are the resources that have forms. What a field is (its type, its choices, whether the API changes it) comes
// from the catalog, which checks requests and files by it; below is only how people read it.
var editable = map[string]kind{
	"project": {title: "project", list: projectsPath,
		fields: fieldsOf(new(catalog.Project).AuditFields(), projectTexts)},
	"domain": {title: "domain", list: projectsPath + "/%s/domains", part: "domains",
		fields: fieldsOf(new(catalog.Domain).AuditFields(), domainTexts)},
	"service-settings": {title: "service settings", list: projectsPath + "/%s/service-settings", single: true,
		part: "serviceSettings", fields: fieldsOf(new(catalog.ServiceSettings).Fields(), serviceTexts)},
	"auth-settings": {title: "auth settings", list: projectsPath + "/%s/auth-settings", single: true,
		part: "authSettings", fields: fieldsOf(new(catalog.AuthSettings).Fields(), authTexts)},
	"smtp-config": {title: "SMTP config", list: mailPath("%s", "/smtp-config"), mail: true, single: true,
		part: "smtpConfig", fields: fieldsOf(new(catalog.SMTPConfig).Fields(), smtpTexts)},
	"template": {title: "template", list: mailPath("%s", "/templates"), mail: true, byCode: true,
		fields: fieldsOf(new(catalog.Template).AuditFields(), templateTexts)},
	"key": {title: "key", list: keysPath, live: true, fields: []field{
		{Name: "name", Label: "Name", Type: "text", Required: true},
		{Name: "allow", Label: "May", Type: "permissions", Choices: choicesOf(catalog.Permissions)},
		{Name: "projects", Label: "Projects", Type: "slugs",
			Hint: "One slug a line. Left empty, the key covers every project."},
		{Name: "expiresIn", Label: "Expires in", Type: "text", Hint: "Such as 720h. Left empty, never."},
	}},
}

var projectTexts = []field{
	{Name: "name", Label: "Name", Required: true},
	{Name: "slug", Label: "Slug",
		Hint: "Lower-case letters, digits and hyphens. Left empty, it is made from the name."},
	{Name: "status", Label: "Status", Later: true, Hint: "The domains of a suspended project are answered with 403."},
	{Name: "description", Label: "Description", Type: "textarea"},
	{Name: "labels", Label: "Labels", FullOnly: true,
		Hint: "One name=value a line, for gateways and tools."},
}

var domainTexts = []field{
	{Name: "domain", Label: "Domain", Required: true, Hint: "A name, or *.name for everything below it."},
	{Name: "primary", Label: "Primary", Hint: "The project's main address; another one stops being it."},
	{Name: "active", Label: "Active", Value: "yes", Hint: "Requests for an inactive domain are answered with 403."},
	{Name: "certificates", Label: "Certificates", Unset: "not said: yes for a name, no for a wildcard",
		Hint: "Whether gateways may fetch certificates for the names that it covers."},
}

var serviceTexts = []field{
	{Name: "authEnabled", Label: "Auth service"},
	{Name: "mailEnabled", Label: "Mail service"},
	{Name: "smsEnabled", Label: "SMS service"},
	{Name: "auditEnabled", Label: "Audit service"},
	{Name: "smsProvider", Label: "SMS provider"},
	{Name: "auditRetentionDays", Label: "Days that audit entries are kept"},
}

var authTexts = []field{
	{Name: "registrationMode", Label: "Registration",
		Hint: "Approval and invitation below follow it where the file does not set them."},
	{Name: "emailVerificationRequired", Label: "Mail addresses are verified"},
	{Name: "phoneVerificationRequired", Label: "Phone numbers are verified"},
	{Name: "approvalRequired", Label: "Somebody approves each registration"},
	{Name: "inviteOnly", Label: "Only invited people register"},
	{Name: "twoFactorRequired", Label: "A second factor is required"},
	{Name: "jwtEnabled", Label: "Tokens (JWT)"},
	{Name: "jwtSecret", Label: "Secret of the tokens"},
	{Name: "jwtExpiresIn", Label: "Tokens expire after"},
	{Name: "refreshTokenEnabled", Label: "Refresh tokens"},
	{Name: "refreshTokenExpiresIn", Label: "Refresh tokens expire after"},
	{Name: "sessionTimeout", Label: "Session timeout in seconds"},
	{Name: "passwordMinLength", Label: "Characters of the shortest password"},
	{Name: "passwordRequireUppercase", Label: "Passwords need a capital letter"},
	{Name: "passwordRequireNumbers", Label: "Passwords need a digit"},
}

var smtpTexts = []field{
	{Name: "host", Label: "Host", Required: true},
	{Name: "port", Label: "Port", Hint: "587 for STARTTLS, 465 for TLS from the first byte."},
	{Name: "username", Label: "User name", Hint: "Empty: the server asks for none."},
	{Name: "password", Label: "Password",
		Hint: "Left empty, the stored one stays. It is sealed before it is written into the file."},
	{Name: "fromEmail", Label: "From: address", Required: true},
	{Name: "fromName", Label: "From: name"},
	{Name: "replyTo", Label: "Reply-To"},
	{Name: "tlsEnabled", Label: "STARTTLS is required", Proposed: "yes"},
	{Name: "sslEnabled", Label: "TLS from the first byte"},
	{Name: "active", Label: "Active", Value: "yes", Hint: "Sends are refused while it is not."},
	{Name: "caFile", Label: "Certificate of a private CA"},
}

var templateTexts = []field{
	{Name: "code", Label: "Code", Required: true, Fixed: true, Hint: "What callers name, such as WELCOME."},
	{Name: "name", Label: "Name", Required: true},
	{Name: "subjectTemplate", Label: "Subject", Required: true, Hint: "Placeholders are {{name}}."},
	{Name: "bodyHtml", Label: "HTML", Type: "code"},
	{Name: "bodyText", Label: "Text", Type: "code"},
	{Name: "maxAge", Label: "Kept trying for", Hint: "Such as 10m or 24h."},
	{Name: "active", Label: "Active", Value: "yes"},
}

// fieldsOf completes the fields of a form from those of the noun. A field that no text is given for follows at the end.
func fieldsOf(noun []catalog.Field, texts []field) []field {
	of := make(map[string]catalog.Field, len(noun))
	for _, f := range noun {
		of[f.Name] = f
	}
	for i := range texts {
		f, known := of[texts[i].Name]
		if !known {
			panic("console: no noun has the field " + texts[i].Name + ": impossible while both tables agree")
		}
		texts[i].typed(f)
		delete(of, f.Name)
	}
	for _, f := range noun {
		if _, left := of[f.Name]; left {
			x := field{Name: f.Name, Label: f.Name}
			x.typed(f)
			texts = append(texts, x)
		}
	}
	return texts
}

// typed takes from a field of the catalog what it says.
func (x *field) typed(f catalog.Field) {
	x.FileOnly, x.Follows = f.FileOnly, f.Follows
	kind := "text"
	switch f.Value.(type) {
	case *bool:
		kind, x.Choices = "select", []choice{{"yes", "yes"}, {"no", "no"}}
		x.Bool = true
		if x.Value == "" {
			x.Value = "no"
		}
	case **bool:
		kind, x.Choices = "select", []choice{{"", x.Unset}, {"yes", "yes"}, {"no", "no"}}
		x.Bool, x.Nullable = true, true
	case *int:
		kind = "number"
	case **string:
		x.Nullable = true
	case *catalog.Secret:
		kind = "password"
	case *[]catalog.Label:
		kind = "labels"
	}
	if f.OneOf != nil {
		kind, x.Choices = "select", choicesOf(f.OneOf)
	}
	if x.Type == "" {
		x.Type = kind
	}
}

func choicesOf(words []string) (choices []choice) {
	for _, w := range words {
		choices = append(choices, choice{w, w})
	}
	return choices
}
