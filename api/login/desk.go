package login

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"time"

	"fingerpost/resolver/catalog"
)

// Options are what a Desk needs. Logins, Secret and ReadCA are required.
type Options struct {
	Logins    func() []catalog.Login                 // live; not changed
	Secret    func(l *catalog.Login) (string, error) // opens client_secret; "" where there is none
	ReadCA    func(l *catalog.Login) ([]byte, error) // PEM of ca_file; nil where there is none
	PublicURL string                                 // where browsers find the service, such as https://config.acme.example
	Allow     *catalog.HTTPAllow                     // networks that may be connected to although they are private; nil: none
	Version   string                                 // of the program, for User-Agent
	Now       func() time.Time                       // nil: time.Now
	Logger    *slog.Logger                           // nil: slog.Default
	Resolver  *net.Resolver                          // nil: the system's
	Timeout   time.Duration                          // of what one call asks a provider; 0: 10 s
}

// A Desk runs the flows of sign-in. Safe for concurrent use.
type Desk struct{ o Options }

// New returns a desk. It asks no provider.
func New(o Options) *Desk { return &Desk{o: o} }

// A Button is a login block on the page of sign-in.
type Button struct {
	Name, Label string
	Problem     string // why the provider cannot be used now, in words; "": nothing is known against it
}

// Buttons lists the login blocks, in their order. It asks no provider.
func (d *Desk) Buttons() []Button { return nil }

// Begin starts a flow. The browser goes to address, and keeps cookie, which binds the flow to it, for 10 minutes. After
// the flow it goes on to returnTo, a path of this service. The error is an *Error.
func (d *Desk) Begin(ctx context.Context, name, returnTo string) (address, cookie string, err error) {
	return "", "", &Error{Status: 503}
}

// Finish ends a flow with the query of the callback, and the cookie that Begin gave. The error is an *Error.
func (d *Desk) Finish(ctx context.Context, name string, query url.Values, cookie string) (p *Person, returnTo string,
	err error) {
	return nil, "", &Error{Status: 503}
}

// EndAddress returns where a browser ends its session at the provider, "" if the provider has no such page. It asks no
// provider.
func (d *Desk) EndAddress(ctx context.Context, p *Person) string { return "" }

// A Person is what a provider says about who has signed in. It is not changed.
type Person struct {
	Login                     string // the name of the block
	Issuer, ClientID, Subject string
	// Name and Email are for X-Actor. Name is preferred_username or Subject where the provider gives no name; Email is ""
	// unless it is an address, and verified.
	Name, Email string
	Claims      catalog.Claims // of the ID token, and further ones of userinfo
	Notes       []string       // sentences for the person and the operator, on what could not be learned

	idToken string // for the provider's page of sign-out; "": too long for an address
	end     string // the provider's page of sign-out
}

// An Error is why a sign-in failed. Its cause is in the log.
type Error struct {
	Status        int    // 400 the flow, 403 refused by the provider, 502 a bad answer or token, 503 no answer
	Message, Hint string // for people; Hint may be ""
}

func (e *Error) Error() string { return e.Message }

// RefusalHints says which claims nearly match rules of the block, for a person whom no rule lets in.
func RefusalHints(l *catalog.Login, c catalog.Claims) []string { return nil }
