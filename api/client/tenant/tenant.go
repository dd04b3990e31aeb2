package tenant

import (
	"errors"
	"time"
)

// A Tenant is the project that a host name belongs to, and how the project is configured. It is shared by all lookups
// of the name: read it, and do not change it. A change on the server gives another Tenant and leaves this one as it is.
type Tenant struct {
	ID     int64             `json:"id"`     // below 2^53, stays for the life of the project
	UUID   string            `json:"uuid"`   // stays for the life of the project
	Slug   string            `json:"slug"`   // unique, may be renamed
	Name   string            `json:"name"`   // for people
	Status string            `json:"status"` // DRAFT or ACTIVE; suspended projects are ErrSuspended
	Domain string            `json:"domain"` // the record that matched: the name, or a wildcard such as *.acme.example
	Labels map[string]string `json:"labels"` // never nil

	Auth     Auth     `json:"auth"`
	Services Services `json:"services"`

	ETag string    `json:"etag"` // of the answer, quoted
	AsOf time.Time `json:"asOf"` // when the server last gave or confirmed the answer
	// Stale reports that the answer may be old: the server is away or has not confirmed it yet, and without the change
	// feed it is older than Options.Fresh.
	Stale bool `json:"stale"`
}

// Auth has the project's settings for sign-up and sign-in.
type Auth struct {
	RegistrationMode          string `json:"registrationMode"` // such as OPEN
	EmailVerificationRequired bool   `json:"emailVerificationRequired"`
	PhoneVerificationRequired bool   `json:"phoneVerificationRequired"`
	ApprovalRequired          bool   `json:"approvalRequired"`
	InviteOnly                bool   `json:"inviteOnly"`
	TwoFactorRequired         bool   `json:"twoFactorRequired"`
}

// Services says which services the project uses.
type Services struct {
	AuthEnabled  bool `json:"authEnabled"`
	MailEnabled  bool `json:"mailEnabled"`
	SMSEnabled   bool `json:"smsEnabled"`
	AuditEnabled bool `json:"auditEnabled"`
}

// The errors of Lookup, for errors.Is. The first five are answers of the server about the name; the other two say that
// there is no answer.
var (
	ErrUnknown      = errors.New("no project has this host name")
	ErrInvalid      = errors.New("not a host name")
	ErrNotVerified  = errors.New("the domain is not active or not verified")
	ErrSuspended    = errors.New("the project is suspended")
	ErrForbidden    = errors.New("the key does not reach the project")
	ErrUnauthorized = errors.New("the server refuses the key")
	ErrUnavailable  = errors.New("the server is away and the name is not remembered") // wraps the cause
)

// isAnswer reports whether err says something about a name.
func isAnswer(err error) bool {
	return !errors.Is(err, ErrUnauthorized) && !errors.Is(err, ErrUnavailable)
}
