package api

import (
	"encoding/json"
	"strconv"
	"strings"

	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

const (
	headerIdempotencyKey = "Idempotency-Key"
	maxIdempotencyKey    = 255
)

// idempotencyKey reads the header Idempotency-Key: 1 to 255 printable ASCII characters.
func (f *form) idempotencyKey(r *request, m *mailer.Send) {
	values := r.ctx.Request.Header.PeekAll(headerIdempotencyKey)
	if len(values) == 0 {
		return
	}
	m.IdempotencyKey = string(values[0])
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	if len(values) > 1 || m.IdempotencyKey == "" || len(m.IdempotencyKey) > maxIdempotencyKey ||
		strings.ContainsFunc(m.IdempotencyKey, unprintable) {
		f.fail(headerIdempotencyKey, "must be given once, as 1 to 255 printable ASCII characters")
	}
}

// domain reads the domain that names the project.
func (f *form) domain(m *mailer.Send) {
	f.require("domain", "is required: a domain of the project that sends")
	f.read("domain", &m.Domain)
	if f.has("domain") && !f.bad["domain"] {
		if err := catalog.CheckHost([]byte(m.Domain)); err != nil {
			f.fail("domain", err.Error())
		}
	}
}

// project reads the id that names the project.
func (f *form) project(m *mailer.Send) {
	f.require("projectId", "is required: the id of the project that sends")
	value, given := f.body.values["projectId"]
	if !given {
		return
	}
	number, _ := value.(json.Number)
	id, err := strconv.ParseUint(string(number), 10, idBits)
	if err != nil || id == 0 {
		f.fail("projectId", "must be a positive whole number")
	}
	m.ProjectID = int64(id)
}

// recipient checks the recipient's address.
func (f *form) recipient(address string) {
	f.require("toEmail", "is required: the recipient's address")
	if f.has("toEmail") && !f.bad["toEmail"] {
		if msg := catalog.CheckAddress(address); msg != "" {
			f.fail("toEmail", msg)
		}
	}
}

// templated reads the fields of a template mail other than its project.
func (f *form) templated(m *mailer.Send) {
	f.read("toEmail", &m.ToEmail)
	f.read("templateCode", &m.TemplateCode)
	f.recipient(m.ToEmail)
	f.require("templateCode", "is required: the code of the template to send")
	if f.has("templateCode") && m.TemplateCode == "" {
		f.fail("templateCode", "must not be empty")
	}
	m.Variables = f.variables()
}

// variables reads an object of strings.
func (f *form) variables() map[string]string {
	value, given := f.body.values["variables"]
	if !given {
		return nil
	}
	list, ok := value.(*object)
	if !ok {
		f.fail("variables", "must be an object of strings")
		return nil
	}
	variables := make(map[string]string, len(list.names))
	for _, name := range list.names {
		if variables[name], ok = list.values[name].(string); !ok {
			f.fail("variables."+name, "must be a string")
		}
	}
	return variables
}

// rawParts reads the fields of a raw mail other than its domain.
func (f *form) rawParts(m *mailer.Send) {
	f.read("toEmail", &m.ToEmail)
	f.read("subject", &m.Subject)
	f.read("bodyHtml", &m.BodyHTML)
	f.read("bodyText", &m.BodyText)
	f.recipient(m.ToEmail)
	f.require("subject", "is required")
	switch {
	case f.bad["subject"]:
	case strings.TrimSpace(m.Subject) == "":
		f.fail("subject", "must not be blank")
	case len(m.Subject) > catalog.MaxSubjectBytes:
		f.fail("subject", "must have at most "+strconv.Itoa(catalog.MaxSubjectBytes)+" bytes")
	case strings.ContainsFunc(m.Subject, catalog.BreaksLine):
		f.fail("subject", "must not hold control characters or line breaks")
	}
	if m.BodyHTML == "" && m.BodyText == "" && !f.bad["bodyHtml"] && !f.bad["bodyText"] {
		f.fail("bodyHtml", "is required where there is no bodyText")
	}
	for _, part := range []struct{ name, body string }{{"bodyHtml", m.BodyHTML}, {"bodyText", m.BodyText}} {
		if len(part.body) > catalog.MaxBodyBytes {
			f.fail(part.name, "must have at most "+strconv.Itoa(catalog.MaxBodyBytes)+" bytes")
		}
	}
}
