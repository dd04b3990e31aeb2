package client

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
)

// The fields that each API returns and accepts, besides id, uuid and owner. Other fields of the files are not in the
// API.
var (
	projectFields = []string{"name", "slug", "description", "status"}
	domainFields  = []string{"domain", "primary", "active"}
	serviceFields = []string{"authEnabled", "mailEnabled", "smsEnabled", "auditEnabled"}
	authFields    = []string{"registrationMode", "emailVerificationRequired", "phoneVerificationRequired",
		"approvalRequired", "inviteOnly", "twoFactorRequired"}
	smtpFields = []string{"host", "port", "username", "fromEmail", "fromName", "replyTo", "sslEnabled", "tlsEnabled",
		"active"}
	templateFields = []string{"code", "name", "subjectTemplate", "bodyHtml", "bodyText", "active", "maxAge"}

	flatServiceFields = []string{"smsProvider", "auditRetentionDays"}
	flatAuthFields    = []string{"jwtEnabled", "jwtExpiresIn", "refreshTokenEnabled", "refreshTokenExpiresIn",
		"sessionTimeout",
		"passwordMinLength", "passwordRequireUppercase", "passwordRequireNumbers"}
)

// Fields names the fields that the API returns and accepts of an object, besides id, uuid and owner.
func Fields(kind catalog.Kind) []string {
	switch kind {
	case catalog.KindProject:
		return slices.Clone(projectFields)
	case catalog.KindDomain:
		return slices.Clone(domainFields)
	case catalog.KindServiceSettings:
		return slices.Clone(serviceFields)
	case catalog.KindAuthSettings:
		return slices.Clone(authFields)
	case catalog.KindSMTPConfig:
		return slices.Clone(smtpFields)
	case catalog.KindTemplate:
		return slices.Clone(templateFields)
	}
	return nil
}

// FlatFields names the settings that only the flat form of resolve returns. No call accepts them.
func FlatFields(kind catalog.Kind) []string {
	switch kind {
	case catalog.KindServiceSettings:
		return slices.Clone(flatServiceFields)
	case catalog.KindAuthSettings:
		return slices.Clone(flatAuthFields)
	}
	return nil
}

// A row is one object as JSON.
type row map[string]json.RawMessage

// fill reads the named fields that are present. Null leaves a field that is not nullable as it is.
func (r row) fill(fields []catalog.Field, names []string) error {
	for _, f := range fields {
		raw, there := r[f.Name]
		if !there || !slices.Contains(names, f.Name) {
			continue
		}
		if err := json.Unmarshal(raw, f.Value); err != nil {
			return fmt.Errorf("field %s of the answer: %w", f.Name, err)
		}
	}
	return nil
}

// number reads an id, which one form of the API writes as a string.
func (r row) number(name string) int64 {
	n, err := strconv.ParseInt(strings.Trim(string(r[name]), `"`), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (r row) text(name string) (s string) {
	if json.Unmarshal(r[name], &s) != nil {
		return ""
	}
	return s
}

func (r row) project() (catalog.Project, error) {
	p := catalog.Project{ID: r.number("id"), Status: catalog.StatusDraft}
	p.UUID, _ = catalog.ParseUUID(r.text("uuid"))
	err := r.fill(p.AuditFields(), projectFields)
	p.Status = strings.ToUpper(p.Status) // one form of the API has it in lower case
	if err == nil && p.ID <= 0 {
		err = fmt.Errorf("project %q of the answer has no id", Printable(p.Slug))
	}
	return p, err
}
