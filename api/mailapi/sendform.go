package mailapi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"fingerpost/api/web"
	"fingerpost/mailer"
	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

const (
	headerIdempotencyKey = "Idempotency-Key"
	maxIdempotencyKey    = 255
)

// idempotencyKey reads the header Idempotency-Key: 1 to 255 printable ASCII characters.
func (f *form) idempotencyKey(r *web.Request, m *mailer.Send) {
	values := r.Ctx.Request.Header.PeekAll(headerIdempotencyKey)
	if len(values) == 0 {
		return
	}
	m.IdempotencyKey = string(values[0])
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	if len(values) > 1 || m.IdempotencyKey == "" || len(m.IdempotencyKey) > maxIdempotencyKey ||
		strings.ContainsFunc(m.IdempotencyKey, unprintable) {
		f.Fail(headerIdempotencyKey, "must be given once, as 1 to 255 printable ASCII characters")
	}
}

// domain reads the domain that names the project.
func (f *form) domain(m *mailer.Send) {
	f.Require("domain", "is required: a domain of the project that sends")
	f.Read("domain", &m.Domain)
	if f.Has("domain") && !f.Bad["domain"] {
		if err := hostname.Check([]byte(m.Domain)); err != nil {
			f.Fail("domain", err.Error())
		}
	}
}

// project reads the id that names the project.
func (f *form) project(m *mailer.Send) {
	f.Require("projectId", "is required: the id of the project that sends")
	value, given := f.Body.Values["projectId"]
	if !given {
		return
	}
	number, _ := value.(json.Number)
	id, err := strconv.ParseUint(string(number), 10, web.IDBits)
	if err != nil || id == 0 {
		f.Fail("projectId", "must be a positive whole number")
	}
	m.ProjectID = int64(id)
}

// repeats reads the log entry that the mail repeats.
func (f *form) repeats(m *mailer.Send) {
	value, given := f.Body.Values[againField]
	if !given || value == nil {
		return
	}
	number, _ := value.(json.Number)
	id, err := strconv.ParseUint(string(number), 10, web.IDBits)
	if err != nil || id == 0 {
		f.Fail(againField, "must be the id of an entry of the mail log, or null")
	}
	m.AgainOf = int64(id)
}

const againField = "againOf"

// ignores reads the reasons of the suppression list that do not stop the mail.
func (f *form) ignores(m *mailer.Send) {
	value, given := f.Body.Values[ignoreField]
	list, isList := value.([]any)
	switch {
	case !given || value == nil:
		return
	case !isList:
		f.Fail(ignoreField, "must be a list of "+strings.Join(mailer.Ignorable, ", "))
		return
	}
	for i, v := range list {
		reason, _ := v.(string)
		switch at := web.Element(ignoreField, i); {
		case reason == string(catalog.SuppressUnsubscribe):
			f.Fail(at, "cannot be ignored: the recipient does not want such mail")
		case !slices.Contains(mailer.Ignorable, reason):
			f.Fail(at, "must be one of "+strings.Join(mailer.Ignorable, ", "))
		case !slices.Contains(m.Ignored, catalog.SuppressionReason(reason)):
			m.Ignored = append(m.Ignored, catalog.SuppressionReason(reason))
		}
	}
}

const ignoreField = "ignoreSuppression"

// recipient checks the recipient's address.
func (f *form) recipient(address string) {
	f.Require("toEmail", "is required: the recipient's address")
	if f.Has("toEmail") && !f.Bad["toEmail"] {
		if msg := catalog.CheckAddress(address); msg != "" {
			f.Fail("toEmail", msg)
		}
	}
}

// templated reads the fields of a template mail other than its project.
func (f *form) templated(m *mailer.Send) {
	f.Read("toEmail", &m.ToEmail)
	f.Read("templateCode", &m.TemplateCode)
	f.recipient(m.ToEmail)
	f.Require("templateCode", "is required: the code of the template to send")
	if f.Has("templateCode") && m.TemplateCode == "" {
		f.Fail("templateCode", "must not be empty")
	}
	m.Variables = f.variables()
	m.Locale = f.locale()
	f.unsubscribe(m)
}

// localeField has the language of a template that is wanted.
const localeField = "locale"

// locale reads the language that is wanted, "" for none.
func (f *form) locale() string {
	var locale *string
	f.Read(localeField, &locale)
	if locale == nil || f.Bad[localeField] {
		return ""
	}
	if msg := template.CheckLocale(*locale); msg != "" {
		f.Fail(localeField, msg)
	}
	return *locale
}

const unsubscribeField = "unsubscribe"

// unsubscribe reads the caller's own link with which the recipient leaves the template's category.
func (f *form) unsubscribe(m *mailer.Send) {
	value, given := f.Body.Values[unsubscribeField]
	if !given || value == nil {
		return
	}
	o, isObject := value.(*web.Object)
	if !isObject {
		f.Fail(unsubscribeField, "must be an object with url, or null")
		return
	}
	link, isText := o.Values["url"].(string)
	if msg := catalog.CheckUnsubscribe(link); msg != "" || !isText {
		f.Fail(unsubscribeField+".url", cmp.Or(msg, "must be a string"))
	}
	m.Unsubscribe = link
}

// variables reads an object of strings.
func (f *form) variables() map[string]string {
	value, given := f.Body.Values["variables"]
	if !given {
		return nil
	}
	list, ok := value.(*web.Object)
	if !ok {
		f.Fail("variables", "must be an object of strings")
		return nil
	}
	variables := make(map[string]string, len(list.Names))
	for _, name := range list.Names {
		if variables[name], ok = list.Values[name].(string); !ok {
			f.Fail("variables."+name, "must be a string")
		}
	}
	return variables
}

// rawParts reads the fields of a raw mail other than its domain.
func (f *form) rawParts(m *mailer.Send) {
	f.Read("toEmail", &m.ToEmail)
	f.Read("subject", &m.Subject)
	f.Read("bodyHtml", &m.BodyHTML)
	f.Read("bodyText", &m.BodyText)
	f.recipient(m.ToEmail)
	f.Require("subject", "is required")
	switch {
	case f.Bad["subject"]:
	case strings.TrimSpace(m.Subject) == "":
		f.Fail("subject", "must not be blank")
	case len(m.Subject) > catalog.MaxSubjectBytes:
		f.Fail("subject", "must have at most "+strconv.Itoa(catalog.MaxSubjectBytes)+" bytes")
	case strings.ContainsFunc(m.Subject, catalog.BreaksLine):
		f.Fail("subject", "must not hold control characters or line breaks")
	}
	if m.BodyHTML == "" && m.BodyText == "" && !f.Bad["bodyHtml"] && !f.Bad["bodyText"] {
		f.Fail("bodyHtml", "is required where there is no bodyText")
	}
	for _, part := range []struct{ name, body string }{{"bodyHtml", m.BodyHTML}, {"bodyText", m.BodyText}} {
		if len(part.body) > catalog.MaxBodyBytes {
			f.Fail(part.name, "must have at most "+strconv.Itoa(catalog.MaxBodyBytes)+" bytes")
		}
	}
}
