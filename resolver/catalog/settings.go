package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// The values of AuthSettings.RegistrationMode.
const (
	RegistrationOpen             = "OPEN"
	RegistrationApprovalRequired = "APPROVAL_REQUIRED"
	RegistrationInviteOnly       = "INVITE_ONLY"
)

// RegistrationModes are the allowed values of AuthSettings.RegistrationMode.
var RegistrationModes = []string{RegistrationOpen, RegistrationApprovalRequired, RegistrationInviteOnly}

// ServiceSettings are the services that a project uses. SMSProvider and AuditRetentionDays are in the flat form only.
type ServiceSettings struct {
	_                  struct{} `cbor:",toarray"`
	ID                 int64
	UUID               UUID
	AuthEnabled        bool
	MailEnabled        bool
	SMSEnabled         bool
	AuditEnabled       bool
	SMSProvider        *string
	AuditRetentionDays int
	Said               FieldSet // which Fields the block has
}

// Fields lists the attributes of the block.
func (s *ServiceSettings) Fields() []Field {
	return []Field{
		{Name: "authEnabled", Value: &s.AuthEnabled, Label: "Auth service"},
		{Name: "mailEnabled", Value: &s.MailEnabled, Label: "Mail service"},
		{Name: "smsEnabled", Value: &s.SMSEnabled, Label: "SMS service"},
		{Name: "auditEnabled", Value: &s.AuditEnabled, Label: "Audit service"},
		{Name: "smsProvider", Value: &s.SMSProvider, FileOnly: true, Label: "SMS provider"},
		{Name: "auditRetentionDays", Value: &s.AuditRetentionDays, FileOnly: true,
			Label: "Days that audit entries are kept"},
	}
}

// Same reports whether the Fields have the same values.
func (s *ServiceSettings) Same(o *ServiceSettings) bool {
	return *s == *o || SameFields(s.Fields(), o.Fields()) // the first is nearly always true and costs nothing
}

// NewServiceSettings returns the built-in defaults.
func NewServiceSettings() ServiceSettings { return ServiceSettings{AuditRetentionDays: 90} }

// Over returns the settings in force: the values of s, then those of defaults, then the built-in ones.
func (s ServiceSettings) Over(defaults *ServiceSettings) ServiceSettings {
	if defaults != nil {
		copyMissing(s.Fields(), s.Said, defaults.Fields(), defaults.Said)
	}
	return s
}

// Validate checks the values.
func (s *ServiceSettings) Validate() Problems {
	var ps Problems
	validateRange(&ps, "auditRetentionDays", s.AuditRetentionDays, 1, 36500)
	if s.SMSProvider != nil && (*s.SMSProvider == "" || len(*s.SMSProvider) > 64) {
		ps.Addf("smsProvider", "must have 1 to 64 characters")
	}
	return ps
}

// AuthSettings are a project's sign-in rules. The fields from JWTEnabled on are in the flat form only.
type AuthSettings struct {
	_                         struct{} `cbor:",toarray"`
	ID                        int64
	UUID                      UUID
	RegistrationMode          string
	EmailVerificationRequired bool
	PhoneVerificationRequired bool
	ApprovalRequired          bool
	InviteOnly                bool
	TwoFactorRequired         bool
	Token                     TokenSettings
	Password                  PasswordRules
	Rules                     TokenRules
	Said                      FieldSet // which Fields the block has
}

// TokenSettings configure how the auth service signs in a project's users. Lifetimes are strings such as "15m" or
// "30d".
type TokenSettings struct {
	_                     struct{} `cbor:",toarray"`
	JWTEnabled            bool
	JWTSecret             Secret
	JWTExpiresIn          string
	RefreshTokenEnabled   bool
	RefreshTokenExpiresIn string
	SessionTimeout        int // seconds
}

// PasswordRules apply to the passwords of a project's users.
type PasswordRules struct {
	_                struct{} `cbor:",toarray"`
	MinLength        int      // characters
	RequireUppercase bool
	RequireNumbers   bool
}

// Fields lists the attributes of the block.
func (a *AuthSettings) Fields() []Field {
	return append([]Field{
		{Name: "registrationMode", Value: &a.RegistrationMode, OneOf: RegistrationModes, Label: "Registration",
			Group: "Who may register",
			Help:  "Approval and invitation below follow it where the file does not set them."},
		{Name: "emailVerificationRequired", Value: &a.EmailVerificationRequired, Label: "Mail addresses are verified"},
		{Name: "phoneVerificationRequired", Value: &a.PhoneVerificationRequired, Label: "Phone numbers are verified"},
		{Name: "approvalRequired", Value: &a.ApprovalRequired, Follows: "registrationMode",
			Label: "Somebody approves each registration"},
		{Name: "inviteOnly", Value: &a.InviteOnly, Follows: "registrationMode", Label: "Only invited people register"},
		{Name: "twoFactorRequired", Value: &a.TwoFactorRequired, Label: "A second factor is required",
			Group: "Signing in"},
		{Name: "jwtEnabled", Value: &a.Token.JWTEnabled, FileOnly: true, Label: "Tokens (JWT)",
			Group: "Tokens and sessions"},
		{Name: "jwtSecret", Value: &a.Token.JWTSecret, FileOnly: true, Label: "Secret of the tokens"},
		{Name: "jwtExpiresIn", Value: &a.Token.JWTExpiresIn, FileOnly: true, Label: "Tokens expire after"},
		{Name: "refreshTokenEnabled", Value: &a.Token.RefreshTokenEnabled, FileOnly: true, Label: "Refresh tokens"},
		{Name: "refreshTokenExpiresIn", Value: &a.Token.RefreshTokenExpiresIn, FileOnly: true,
			Label: "Refresh tokens expire after"},
		{Name: "sessionTimeout", Value: &a.Token.SessionTimeout, FileOnly: true, Label: "Session timeout in seconds"},
		{Name: "passwordMinLength", Value: &a.Password.MinLength, FileOnly: true, Group: "Passwords",
			Label: "Characters of the shortest password"},
		{Name: "passwordRequireUppercase", Value: &a.Password.RequireUppercase, FileOnly: true,
			Label: "Passwords need a capital letter"},
		{Name: "passwordRequireNumbers", Value: &a.Password.RequireNumbers, FileOnly: true,
			Label: "Passwords need a digit"},
	}, a.Rules.Fields()...)
}

// Same reports whether the Fields have the same values.
func (a *AuthSettings) Same(o *AuthSettings) bool { return SameFields(a.Fields(), o.Fields()) }

// NewAuthSettings returns the built-in defaults.
func NewAuthSettings() AuthSettings {
	return AuthSettings{
		RegistrationMode: RegistrationOpen,
		Token: TokenSettings{
			JWTEnabled: true, JWTExpiresIn: "15m",
			RefreshTokenEnabled: true, RefreshTokenExpiresIn: "30d",
			SessionTimeout: 3600,
		},
		Password: PasswordRules{MinLength: 8},
		Rules:    NewTokenRules(),
	}
}

// Over returns the settings in force: the values of a, then those of defaults, then the built-in ones.
func (a AuthSettings) Over(defaults *AuthSettings) AuthSettings {
	if defaults != nil {
		copyMissing(a.Fields(), a.Said, defaults.Fields(), defaults.Said)
	}
	return a
}

var lifetime = regexp.MustCompile(`^[1-9][0-9]{0,5}[smhdw]$`)

// Validate checks the values but the Rules, which have a Validate of their own.
func (a *AuthSettings) Validate() Problems {
	var ps Problems
	if !slices.Contains(RegistrationModes, a.RegistrationMode) {
		ps.Addf("registrationMode", "must be one of %s", strings.Join(RegistrationModes, ", "))
	}
	for _, f := range []Field{{Name: "jwtExpiresIn", Value: a.Token.JWTExpiresIn}, {Name: "refreshTokenExpiresIn",
		Value: a.Token.RefreshTokenExpiresIn}} {
		if !lifetime.MatchString(f.Value.(string)) {
			ps.Addf(f.Name, `must be a number with a unit of s, m, h, d or w, such as "15m" or "30d"`)
		}
	}
	validateRange(&ps, "sessionTimeout", a.Token.SessionTimeout, 1, 31536000)
	validateRange(&ps, "passwordMinLength", a.Password.MinLength, 1, 1024)
	return ps
}

func validateRange(ps *Problems, path string, value, low, high int) {
	if value < low || value > high {
		ps.Addf(path, "must be from %d to %d", low, high)
	}
}

// Defaults is the defaults block: values for what a project does not set. A nil part sets nothing.
type Defaults struct {
	Service *ServiceSettings
	Auth    *AuthSettings
	SMTP    *SMTPConfig `cbor:",omitempty"` // the relay of projects without a server of their own
	// Verification says which domains must be proven. Nil: none, and nothing is checked in the background.
	Verification *Verification `cbor:",omitempty"`
}

// InForce returns a project's settings in force: its own, then those of the defaults block, then the built-in ones. d may
// be nil.
func (d *Defaults) InForce(p *ProjectConfig) (ServiceSettings, AuthSettings) {
	if d == nil {
		return p.Service, p.Auth
	}
	return p.Service.Over(d.Service), p.Auth.Over(d.Auth)
}
