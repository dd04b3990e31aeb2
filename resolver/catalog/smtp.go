package catalog

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"fingerpost/resolver/hostname"
)

// The values of SMTPConfig.Auth.
const (
	AuthPlain   = "plain"
	AuthLogin   = "login"
	AuthCRAMMD5 = "cram-md5"
	AuthXOAUTH2 = "xoauth2"
)

// AuthMechanisms are the allowed values of SMTPConfig.Auth, next to "".
var AuthMechanisms = []string{AuthPlain, AuthLogin, AuthCRAMMD5, AuthXOAUTH2}

// An SMTPConfig describes how a project's mail is sent (mailer/README.md). One without a Host is a sender alone, see
// SMTPInForce. One of the defaults block has no UUID; all others have one.
type SMTPConfig struct {
	_          struct{} `cbor:",toarray"`
	ID         int64
	UUID       UUID
	Host       string
	Port       int // 0: 465 with SSLEnabled, else 587
	Username   string
	Password   Secret
	FromEmail  string
	FromName   string
	ReplyTo    string
	CAFile     string // PEM of a private CA, below the config folder; files only, never over the API
	SSLEnabled bool   // TLS from the first byte
	TLSEnabled bool   // STARTTLS required
	Active     bool
	EHLOName   string // host name to greet the server with (RFC 5321 4.1.1.1); "": that of the service
	// SuppressBounces says whether an address that the server definitely does not know is put onto the project's suppression
	// list; nil: it is.
	SuppressBounces *bool
	Auth            string // the only way to log in; "": with the password, in the best way that the server offers
	OAuth           OAuthClient
	// SPFInclude is what SPF of the sender's domain must include for the server; "": not said.
	SPFInclude string
	// DKIMSelectors are those of the keys with which the server signs for the sender's domain; nil: not said.
	DKIMSelectors []string
}

// An OAuthClient is an account at a token server, whose access tokens log in to the SMTP server: the grant "client
// credentials" (RFC 6749 4.4).
type OAuthClient struct {
	_        struct{} `cbor:",toarray"`
	TokenURL string
	ClientID string
	Secret   Secret
	Scope    string // "": none is named
}

// Fields lists the attributes of the block.
func (c *SMTPConfig) Fields() []Field {
	server := smtpServerFields[:len(smtpServerFields):len(smtpServerFields)]
	return []Field{
		{Name: "host", Value: &c.Host, Label: "Host", Required: true, Group: "Server"},
		{Name: "port", Value: &c.Port, Label: "Port", Help: "587 for STARTTLS, 465 for TLS from the first byte."},
		{Name: "username", Value: &c.Username, Label: "User name", Help: "Empty: the server asks for none."},
		{Name: "password", Value: &c.Password, Label: "Password", BoundTo: append(server, "username"),
			Help: "Left empty, the stored one stays. It is sealed before it is written into the file."},
		{Name: "fromEmail", Value: &c.FromEmail, Label: "From: address", Required: true, Group: "Sender"},
		{Name: "fromName", Value: &c.FromName, Label: "From: name"},
		{Name: "replyTo", Value: &c.ReplyTo, Label: "Reply-To"},
		{Name: "sslEnabled", Value: &c.SSLEnabled, Label: "TLS from the first byte", Group: "Connection"},
		{Name: "tlsEnabled", Value: &c.TLSEnabled, Label: "STARTTLS is required"},
		{Name: "ehloName", Value: &c.EHLOName, Label: "Name in EHLO",
			Help: "What the service calls itself to the server. Empty: --mail-ehlo, else the name of its machine."},
		{Name: "suppressBounces", Value: &c.SuppressBounces, Label: "List addresses that do not exist", Unset: "yes",
			Help: "Mail to an address that the server does not know stops the next one to it."},
		{Name: "active", Value: &c.Active, Label: "Active", Help: "Sends are refused while it is not."},
		{Name: "caFile", Value: &c.CAFile, FileOnly: true, Label: "Certificate of a private CA"},
		{Name: "auth", Value: &c.Auth, OneOf: AuthMechanisms, Label: "Login", Group: "Login",
			Unset: "as the server offers it, with the password",
			Help:  "xoauth2: with access tokens (OAuth 2.0) in place of the password."},
		{Name: "oauthTokenUrl", Value: &c.OAuth.TokenURL, Label: "Token server",
			Help: "The address of its token endpoint. This field and those below are for xoauth2."},
		{Name: "oauthClientId", Value: &c.OAuth.ClientID, Label: "Client id"},
		{Name: "oauthClientSecret", Value: &c.OAuth.Secret, Label: "Client secret",
			BoundTo: append(server, "oauthTokenUrl", "oauthClientId"),
			Help:    "Left empty, the stored one stays. It is sealed before it is written into the file."},
		{Name: "oauthScope", Value: &c.OAuth.Scope, Label: "Scope",
			Help: "What the token is for, such as https://outlook.office365.com/.default."},
		{Name: "spfInclude", Value: &c.SPFInclude, Label: "Name for SPF", Group: "Sender check",
			Help: "What the mail provider wants included in SPF, such as _spf.provider.example."},
		{Name: "dkimSelectors", Value: &c.DKIMSelectors, Label: "Selectors of DKIM", Unset: "not said",
			Help: "Those of the keys that the mail provider signs with, one a line."},
	}
}

// ListsBounces returns SuppressBounces, or its default.
func (c *SMTPConfig) ListsBounces() bool { return c.SuppressBounces == nil || *c.SuppressBounces }

// smtpServerFields are the fields that say which server gets a secret.
var smtpServerFields = []string{"host", "port", "sslEnabled", "tlsEnabled"}

// Secrets lists the fields with a secret.
func (c *SMTPConfig) Secrets() (list []Field) {
	for _, f := range c.Fields() {
		if _, is := f.Value.(*Secret); is {
			list = append(list, f)
		}
	}
	return list
}

// Moved reports whether one of the fields that a secret is bound to has another value in old: the stored secret was
// meant for another destination. secret is of Secrets.
func (c *SMTPConfig) Moved(old *SMTPConfig, secret *Field) bool {
	now, was := *c, *old
	now.Port, was.Port = c.EffectivePort(), old.EffectivePort()
	fields, before := now.Fields(), was.Fields()
	return slices.ContainsFunc(secret.BoundTo, func(name string) bool {
		return !fieldNamed(fields, name).Same(*fieldNamed(before, name))
	})
}

// Clone returns a copy of c that shares no memory with it; nil of nil.
func (c *SMTPConfig) Clone() *SMTPConfig {
	copied := clone(c)
	if copied != nil {
		copied.SuppressBounces, copied.DKIMSelectors = clone(c.SuppressBounces), slices.Clone(c.DKIMSelectors)
	}
	return copied
}

// EffectivePort returns Port, or its default.
func (c *SMTPConfig) EffectivePort() int {
	switch {
	case c.Port != 0:
		return c.Port
	case c.SSLEnabled:
		return 465
	}
	return 587
}

// Validate checks the values of a config with a server and a sender. A port of 0 means the default.
func (c *SMTPConfig) Validate() Problems {
	var ps Problems
	c.validateServer(&ps)
	if c.FromEmail == "" {
		ps.Addf("fromEmail", "is required: the sender's address")
	}
	c.validateRest(&ps)
	return ps
}

func (c *SMTPConfig) validateServer(ps *Problems) {
	if c.Host == "" {
		ps.Addf("host", "is required: the name or address of the SMTP server")
	} else if _, err := netip.ParseAddr(c.Host); err != nil {
		if _, err := hostname.Parse(c.Host); err != nil {
			ps.Addf("host", "must be a host name or an IP address without a port: %v", err)
		}
	}
	if c.Port != 0 {
		validateRange(ps, "port", c.Port, 1, 65535)
	}
	c.validateLogin(ps)
	if c.EHLOName != "" {
		if _, err := hostname.Parse(c.EHLOName); err != nil {
			ps.Addf("ehloName", "must be a host name such as mail.acme.example: %v", err)
		}
	}
}

var tokenURLs = urlRule{field: "oauthTokenUrl", flag: "", example: "https://login.acme.example/oauth2/token",
	noUser: "the client id and its secret have fields of their own"}

// validateLogin checks auth and what belongs to OAuth 2.0. Its values may stay where auth is another: they are not used.
func (c *SMTPConfig) validateLogin(ps *Problems) {
	known := c.Auth == "" || slices.Contains(AuthMechanisms, c.Auth)
	if !known {
		ps.Addf("auth", "must be one of %s", strings.Join(AuthMechanisms, ", "))
	}
	if o := &c.OAuth; o.TokenURL != "" {
		if u, err := url.Parse(o.TokenURL); err == nil && u.Scheme == "http" {
			ps.Addf("oauthTokenUrl", "must begin with https: the client secret goes there")
		} else {
			tokenURLs.check(ps, o.TokenURL, nil)
		}
	}
	c.OAuth.validateTexts(ps)
	if c.Auth != AuthXOAUTH2 {
		if known && c.OAuth != (OAuthClient{}) {
			ps.Warnf("auth", "is not %q, so what is said of OAuth is not used", AuthXOAUTH2)
		}
		return
	}
	for _, f := range []Field{
		{Name: "username", Value: c.Username, Help: "the mailbox or account that the token is for"},
		{Name: "oauthTokenUrl", Value: c.OAuth.TokenURL, Help: "where access tokens are asked for"},
		{Name: "oauthClientId", Value: c.OAuth.ClientID, Help: "whom the token server knows"}} {
		if f.Value == "" {
			ps.Addf(f.Name, "is required with auth %s: %s", AuthXOAUTH2, f.Help)
		}
	}
	if c.OAuth.Secret.Source == SecretNone {
		ps.Addf("oauthClientSecret", "is required with auth %s", AuthXOAUTH2)
	}
}

func (o *OAuthClient) validateTexts(ps *Problems) {
	for _, f := range []Field{{Name: "oauthClientId", Value: o.ClientID}, {Name: "oauthScope", Value: o.Scope}} {
		if v := f.Value.(string); strings.ContainsFunc(v, BreaksLine) || len(v) > 1024 {
			ps.Addf(f.Name, "must be at most 1024 bytes and hold no control characters or line breaks")
		}
	}
	if isMask(o.Secret) {
		ps.Addf("oauthClientSecret", "consists of asterisks only: a mask was sent back instead of the secret")
	}
}

// isMask reports whether a secret in clear text is what a form shows in place of one.
func isMask(s Secret) bool {
	return s.Source == SecretPlain && s.Ref != "" && strings.Trim(s.Ref, "*") == ""
}

// maxSelectors is how many DKIM keys a sender check asks for.
const maxSelectors = 10

// validateSigning checks what a sender check looks for.
func (c *SMTPConfig) validateSigning(ps *Problems) {
	if c.SPFInclude != "" {
		if _, err := hostname.Parse(c.SPFInclude); err != nil {
			ps.Addf("spfInclude", "must be a name such as _spf.provider.example: %v", err)
		}
	}
	if n := len(c.DKIMSelectors); n > maxSelectors || n == 0 && c.DKIMSelectors != nil {
		ps.Addf("dkimSelectors", "must have 1 to %d selectors", maxSelectors)
		return
	}
	for i, selector := range c.DKIMSelectors {
		if _, err := hostname.Parse(selector + "._domainkey.example"); err != nil {
			ps.Addf("dkimSelectors", "must be selectors such as s1: %q: %v", selector, err)
			return
		}
		if slices.Contains(c.DKIMSelectors[:i], selector) {
			ps.Addf("dkimSelectors", "has %q twice", selector)
			return
		}
	}
}

// validateRest checks what may be left out.
func (c *SMTPConfig) validateRest(ps *Problems) {
	c.validateSigning(ps)
	if c.FromEmail != "" {
		if msg := CheckAddress(c.FromEmail); msg != "" {
			ps.Addf("fromEmail", "%s", msg)
		}
	}
	if c.ReplyTo != "" {
		if msg := CheckAddress(c.ReplyTo); msg != "" {
			ps.Addf("replyTo", "%s", msg)
		}
	}
	for _, f := range []Field{{Name: "fromName", Value: c.FromName}, {Name: "username", Value: c.Username}} {
		if v := f.Value.(string); strings.ContainsFunc(v, BreaksLine) || len(v) > 255 {
			ps.Addf(f.Name, "must be at most 255 bytes and hold no control characters or line breaks")
		}
	}
	if isMask(c.Password) {
		ps.Addf("password", "consists of asterisks only: a mask was sent back instead of the password")
	}
	if c.Password.Source != SecretNone && c.Username == "" {
		ps.Addf("username", "is required where there is a password")
	}
}
