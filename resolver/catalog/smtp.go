package catalog

import (
	"net/netip"
	"strings"
)

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
}

// Fields lists the attributes of the block.
func (c *SMTPConfig) Fields() []Field {
	return []Field{
		{Name: "host", Value: &c.Host, Label: "Host", Required: true, Group: "Server"},
		{Name: "port", Value: &c.Port, Label: "Port", Help: "587 for STARTTLS, 465 for TLS from the first byte."},
		{Name: "username", Value: &c.Username, Label: "User name", Help: "Empty: the server asks for none."},
		{Name: "password", Value: &c.Password, Label: "Password",
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
	}
}

// ListsBounces returns SuppressBounces, or its default.
func (c *SMTPConfig) ListsBounces() bool { return c.SuppressBounces == nil || *c.SuppressBounces }

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
		if _, err := ParseHost(c.Host); err != nil {
			ps.Addf("host", "must be a host name or an IP address without a port: %v", err)
		}
	}
	if c.Port != 0 {
		validateRange(ps, "port", c.Port, 1, 65535)
	}
	if c.EHLOName != "" {
		if _, err := ParseHost(c.EHLOName); err != nil {
			ps.Addf("ehloName", "must be a host name such as mail.acme.example: %v", err)
		}
	}
}

// validateRest checks what may be left out.
func (c *SMTPConfig) validateRest(ps *Problems) {
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
	if c.Password.Source == SecretPlain && c.Password.Ref != "" && strings.Trim(c.Password.Ref, "*") == "" {
		ps.Addf("password", "consists of asterisks only: a mask was sent back instead of the password")
	}
	if c.Password.Source != SecretNone && c.Username == "" {
		ps.Addf("username", "is required where there is a password")
	}
}
