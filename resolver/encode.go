package resolver

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
)

// A precision is how a time is written (api/README.md, Answers).
type precision int

const (
	timeMicros precision = iota // 2006-01-02T15:04:05.000000
	timeMillis                  // 2006-01-02T15:04:05.000Z
)

// appendTime appends t in UTC. It takes a third of the time of AppendFormat and runs four times per miss.
func appendTime(dst []byte, t time.Time, p precision) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = appendDigits(dst, year, 4)
	dst = appendDigits(append(dst, '-'), int(month), 2)
	dst = appendDigits(append(dst, '-'), day, 2)
	dst = appendDigits(append(dst, 'T'), hour, 2)
	dst = appendDigits(append(dst, ':'), minute, 2)
	dst = appendDigits(append(dst, ':'), second, 2)
	dst = append(dst, '.')
	if p == timeMillis {
		return append(appendDigits(dst, t.Nanosecond()/1e6, 3), 'Z')
	}
	return appendDigits(dst, t.Nanosecond()/1e3, 6)
}

// appendDigits appends the last n decimal digits of v, which is not negative.
func appendDigits(dst []byte, v, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	for i := len(dst) - 1; n > 0; i, n = i-1, n-1 {
		dst[i] = byte('0' + v%10)
		v /= 10
	}
	return dst
}

// An encoder appends JSON by hand: without reflection, and without allocation except for growth. It records the
// positions of times, because an ETag must not depend on them.
type encoder struct {
	b        []byte
	times    [][2]int // pairs of offsets into b
	open     bool     // an object was just opened: the next field has no comma
	timeless []byte   // scratch of appendETag
}

func (e *encoder) raw(s string) { e.b = append(e.b, s...) }
func (e *encoder) begin()       { e.b = append(e.b, '{'); e.open = true }
func (e *encoder) end()         { e.b = append(e.b, '}'); e.open = false }

// name begins a field. Field names need no escaping.
func (e *encoder) name(name string) {
	if !e.open {
		e.b = append(e.b, ',')
	}
	e.open = false
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, '"', ':')
}

func (e *encoder) int(name string, v int64) {
	e.name(name)
	e.b = strconv.AppendInt(e.b, v, 10)
}

func (e *encoder) bool(name string, v bool) {
	e.name(name)
	e.b = strconv.AppendBool(e.b, v)
}

func (e *encoder) string(name, v string) {
	e.name(name)
	e.b = AppendString(e.b, v)
}

// stringOrNull writes null for nil.
func (e *encoder) stringOrNull(name string, v *string) {
	if v == nil {
		e.name(name)
		e.raw("null")
		return
	}
	e.string(name, *v)
}

func (e *encoder) uuid(name string, u catalog.UUID) {
	e.name(name)
	e.b = append(e.b, '"')
	e.b = u.Append(e.b)
	e.b = append(e.b, '"')
}

func (e *encoder) time(name string, t time.Time, p precision) {
	e.name(name)
	start := len(e.b)
	e.b = append(e.b, '"')
	e.b = appendTime(e.b, t, p)
	e.b = append(e.b, '"')
	e.times = append(e.times, [2]int{start, len(e.b)})
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. It must be valid UTF-8, like all text from the files.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[plain:i]...)
		plain = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}

func (e *encoder) project(p *catalog.Project) {
	e.begin()
	e.int("id", p.ID)
	e.uuid("uuid", p.UUID)
	e.string("name", p.Name)
	e.string("slug", p.Slug)
	e.stringOrNull("description", p.Description)
	e.string("status", p.Status)
	e.time("createdAt", p.CreatedAt, timeMicros)
	e.time("updatedAt", p.UpdatedAt, timeMicros)
	e.end()
}

func (e *encoder) domain(d *catalog.Domain) {
	e.begin()
	e.int("id", d.ID)
	e.int("projectId", d.ProjectID)
	e.string("domain", d.Name)
	e.bool("primary", d.Primary)
	e.bool("active", d.Active)
	e.time("createdAt", d.CreatedAt, timeMicros)
	e.time("updatedAt", d.UpdatedAt, timeMicros)
	e.end()
}

func (e *encoder) serviceSettings(project int64, s *catalog.ServiceSettings) {
	e.begin()
	e.int("id", s.ID)
	e.int("projectId", project)
	e.bool("authEnabled", s.AuthEnabled)
	e.bool("mailEnabled", s.MailEnabled)
	e.bool("smsEnabled", s.SMSEnabled)
	e.bool("auditEnabled", s.AuditEnabled)
	e.end()
}

func (e *encoder) authSettings(project int64, a *catalog.AuthSettings) {
	e.begin()
	e.int("id", a.ID)
	e.int("projectId", project)
	e.string("registrationMode", a.RegistrationMode)
	e.bool("emailVerificationRequired", a.EmailVerificationRequired)
	e.bool("phoneVerificationRequired", a.PhoneVerificationRequired)
	e.bool("approvalRequired", a.ApprovalRequired)
	e.bool("inviteOnly", a.InviteOnly)
	e.bool("twoFactorRequired", a.TwoFactorRequired)
	e.end()
}

func (e *encoder) smtpConfig(project int64, c *catalog.SMTPConfig) {
	e.begin()
	e.int("id", c.ID)
	e.int("projectId", project)
	e.string("host", c.Host)
	e.int("port", int64(c.EffectivePort()))
	e.string("username", c.Username)
	e.string("fromEmail", c.FromEmail)
	e.string("fromName", c.FromName)
	e.string("replyTo", c.ReplyTo)
	e.bool("sslEnabled", c.SSLEnabled)
	e.bool("tlsEnabled", c.TLSEnabled)
	e.bool("active", c.Active)
	e.end()
}

// template writes a template, in full or as a row of a list.
func (e *encoder) template(t *catalog.Template, whole bool) {
	e.begin()
	e.int("id", t.ID)
	if e.name("projectId"); t.ProjectID == 0 {
		e.raw("null")
	} else {
		e.b = strconv.AppendInt(e.b, t.ProjectID, 10)
	}
	e.string("code", t.Code)
	e.string("name", t.Name)
	e.string("subjectTemplate", t.SubjectTemplate)
	if whole {
		e.string("bodyHtml", t.BodyHTML)
		e.string("bodyText", t.BodyText)
	}
	e.bool("active", t.Active)
	e.bool("defaultTemplate", t.ProjectID == 0)
	if whole {
		e.time("createdAt", t.CreatedAt, timeMicros)
		e.time("updatedAt", t.UpdatedAt, timeMicros)
	}
	e.string("maxAge", t.EffectiveMaxAge())
	e.end()
}

func (e *encoder) nested(m *match, service *catalog.ServiceSettings, auth *catalog.AuthSettings) {
	id := m.project.Project.ID
	e.begin()
	e.name("project")
	e.project(&m.project.Project)
	e.name("authSettings")
	e.authSettings(id, auth)
	e.name("serviceSettings")
	e.serviceSettings(id, service)
	e.name("matchedDomain")
	e.domain(&m.domain)
	e.end()
}

func (e *encoder) flat(m *match, service *catalog.ServiceSettings, auth *catalog.AuthSettings, secret *string) {
	p := &m.project.Project
	e.begin()
	e.name("project")
	e.begin()
	e.string("id", strconv.FormatInt(p.ID, 10))
	e.uuid("uuid", p.UUID)
	e.string("name", p.Name)
	e.string("slug", p.Slug)
	e.stringOrNull("description", p.Description)
	e.string("status", strings.ToLower(p.Status))
	e.time("createdAt", p.CreatedAt, timeMillis)
	e.time("updatedAt", p.UpdatedAt, timeMillis)
	e.end()
	e.name("authSettings")
	e.flatAuth(auth, secret)
	e.name("serviceSettings")
	e.flatService(service, m.project.SMTP)
	e.string("matchedDomain", m.domain.Name)
	e.end()
}

func (e *encoder) flatAuth(a *catalog.AuthSettings, secret *string) {
	e.begin()
	e.bool("jwtEnabled", a.Token.JWTEnabled)
	e.stringOrNull("jwtSecret", secret)
	e.string("jwtExpiresIn", a.Token.JWTExpiresIn)
	e.bool("refreshTokenEnabled", a.Token.RefreshTokenEnabled)
	e.string("refreshTokenExpiresIn", a.Token.RefreshTokenExpiresIn)
	e.int("sessionTimeout", int64(a.Token.SessionTimeout))
	e.bool("twoFactorEnabled", a.TwoFactorRequired)
	e.int("passwordMinLength", int64(a.Password.MinLength))
	e.bool("passwordRequireUppercase", a.Password.RequireUppercase)
	e.bool("passwordRequireNumbers", a.Password.RequireNumbers)
	e.bool("emailVerificationRequired", a.EmailVerificationRequired)
	e.end()
}

func (e *encoder) flatService(s *catalog.ServiceSettings, smtp *catalog.SMTPConfig) {
	var provider, from *string
	if smtp != nil {
		word := "SMTP"
		provider, from = &word, &smtp.FromEmail
	}
	e.begin()
	e.bool("mailEnabled", s.MailEnabled)
	e.stringOrNull("mailProvider", provider)
	e.stringOrNull("mailFromAddress", from)
	e.bool("smsEnabled", s.SMSEnabled)
	e.stringOrNull("smsProvider", s.SMSProvider)
	e.bool("auditEnabled", s.AuditEnabled)
	e.int("auditRetentionDays", int64(s.AuditRetentionDays))
	e.end()
}

// encoders pools the buffers of answers between misses.
var encoders = sync.Pool{New: func() any { return &encoder{b: make([]byte, 0, 2048)} }}

// encodeMatch builds an answer with data. It keeps no reference into m.
func encodeMatch(host string, m *match, form Form, secret *string) *Answer {
	service, auth := m.project.Service, m.project.Auth
	if m.defaults != nil {
		service, auth = service.Over(m.defaults.Service), auth.Over(m.defaults.Auth)
	}
	e := encoders.Get().(*encoder)
	e.b, e.times = e.b[:0], e.times[:0]
	if form == Nested {
		e.nested(m, &service, &auth)
	} else {
		e.flat(m, &service, &auth, secret)
	}
	var tag [etagLen]byte
	a := newAnswer(host, m.project.Project.Slug, e.appendETag(tag[:0]), e.b)
	clear(e.b) // a secret must not stay in the pool
	encoders.Put(e)
	return a
}

// etagLen is 128 bits in base64 and two quotes.
const etagLen = 24

// appendETag hashes the encoded answer without the times: they belong to one store and are lost with it, while the tag
// must be the same on every node (api/README.md, Caching). The forms differ in their text, so their tags differ too.
func (e *encoder) appendETag(dst []byte) []byte {
	e.timeless = e.timeless[:0]
	at := 0
	for _, t := range e.times {
		e.timeless = append(e.timeless, e.b[at:t[0]]...)
		at = t[1]
	}
	e.timeless = append(e.timeless, e.b[at:]...)
	sum := sha256.Sum256(e.timeless)
	clear(e.timeless) // like e.b
	const bits128 = 16
	dst = append(dst, '"')
	dst = base64.RawURLEncoding.AppendEncode(dst, sum[:bits128])
	return append(dst, '"')
}
