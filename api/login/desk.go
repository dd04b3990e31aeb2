package login

import (
	"cmp"
	"container/list"
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"fingerpost/resolver/catalog"
)

// Options are what a Desk needs. Logins, Secret and ReadCA are required.
type Options struct {
	Logins    func() []catalog.Login                 // live; not changed
	Secret    func(l *catalog.Login) (string, error) // opens client_secret; "" where there is none
	ReadCA    func(l *catalog.Login) ([]byte, error) // PEM of ca_file; nil where there is none
	PublicURL string                                 // where browsers find the service: https://config.acme.example
	Allow     *catalog.HTTPAllow                     // private networks that may be connected to; nil: none
	Version   string                                 // of the program, for User-Agent
	Now       func() time.Time                       // nil: time.Now
	Logger    *slog.Logger                           // nil: slog.Default
	Resolver  *net.Resolver                          // nil: the system's
	Timeout   time.Duration                          // of what one call asks a provider; 0: 10 s
}

// A Desk runs the flows of sign-in. Safe for concurrent use.
type Desk struct {
	o       Options
	flows   flows
	flights singleflight.Group // one discovery at a time for a login

	mu        sync.Mutex         // guards what follows
	providers map[string]outcome // by the name of the login
}

// New returns a desk. It asks no provider.
func New(o Options) *Desk {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.Timeout = cmp.Or(o.Timeout, askTime)
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Desk{o: o, providers: map[string]outcome{}}
	d.flows.now, d.flows.open = o.Now, map[string]*list.Element{}
	return d
}

// RedirectURI returns the address of the callback of a login, which its provider must know.
func RedirectURI(publicURL, name string) string {
	return strings.TrimSuffix(publicURL, "/") + "/console/login/" + name + "/callback"
}

// A Button is a login block on the page of sign-in.
type Button struct {
	Name, Label string
	Problem     string // a sentence on why nobody could sign in when it was last tried; "": nothing is known against it
}

// Buttons lists the login blocks, in their order. It asks no provider.
func (d *Desk) Buttons() []Button {
	logins := d.o.Logins()
	buttons := make([]Button, len(logins))
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range logins {
		l := &logins[i]
		buttons[i] = Button{Name: l.Name, Label: cmp.Or(l.Label, l.Name)}
		if last := d.providers[l.Name]; last.issuer == l.Issuer {
			buttons[i].Problem = last.problem
		}
		if d.o.PublicURL == "" {
			buttons[i].Problem = noPublicURL().Message
		}
	}
	return buttons
}

func noPublicURL() *Error {
	return &Error{Status: http.StatusServiceUnavailable,
		Message: "The provider cannot send browsers back: the service was started without --public-url.",
		Hint: "Start the service with --public-url and the address at which browsers find it, such as " +
			"https://config.acme.example"}
}

// Begin starts a flow. The browser goes to address, and keeps cookie, which binds the flow to it, for 10 minutes. After
// the flow it goes on to returnTo, a path of this service; anything else counts as "". The error is an *Error.
func (d *Desk) Begin(ctx context.Context, name, returnTo string) (address, cookie string, err error) {
	l := d.login(name)
	switch {
	case l == nil:
		return "", "", &Error{Status: http.StatusNotFound, Message: "No login block has this name."}
	case d.o.PublicURL == "":
		return "", "", noPublicURL()
	}
	if _, failed := d.secret(l); failed != nil { // before the person has been to the provider and back
		return "", "", failed
	}
	p, failed := d.provider(ctx, l)
	if failed != nil {
		return "", "", failed
	}
	cookie = random()
	f := &flow{state: random(), cookie: sha256.Sum256([]byte(cookie)), provider: p, login: l.Name, clientID: l.ClientID,
		redirect: RedirectURI(d.o.PublicURL, l.Name), nonce: random(), verifier: oauth2.GenerateVerifier(),
		returnTo: localPath(returnTo), began: d.o.Now()}
	d.flows.put(f)
	return p.config(l, "", f.redirect).AuthCodeURL(f.state, oidc.Nonce(f.nonce), oauth2.S256ChallengeOption(f.verifier)),
		cookie, nil
}

// localPath returns a path of this service, or "". Browsers read "//" and "/\" as the begin of another host.
func localPath(to string) string {
	if len(to) > maxReturnTo || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, `\`) ||
		strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return ""
	}
	if u, err := url.Parse(to); err != nil || u.Scheme != "" || u.Host != "" {
		return ""
	}
	return strings.Clone(to) // the text may be of a request, whose memory is used again
}

// Finish ends a flow with the query of the callback, and the cookie that Begin gave. The error is an *Error.
func (d *Desk) Finish(ctx context.Context, name string, query url.Values, cookie string) (p *Person, returnTo string,
	err error) {
	return nil, "", &Error{Status: http.StatusServiceUnavailable, Message: "Sign-in cannot be finished yet."}
}

// login returns the live block with a name; nil: there is none.
func (d *Desk) login(name string) *catalog.Login {
	logins := d.o.Logins()
	for i := range logins {
		if logins[i].Name == name {
			return &logins[i]
		}
	}
	return nil
}

func (d *Desk) secret(l *catalog.Login) (string, *Error) {
	secret, err := d.o.Secret(l)
	if err != nil {
		return "", &Error{Status: http.StatusServiceUnavailable, Message: "The client_secret of the block cannot be opened.",
			Hint: "The log of the service says why.", cause: err}
	}
	return secret, nil
}

// EndAddress returns where a browser ends its session at the provider, "" if the provider has no such page. It asks no
// provider.
func (d *Desk) EndAddress(_ context.Context, p *Person) string { return "" }

// A Person is what a provider says about who has signed in. It is not changed.
type Person struct {
	Login                     string // the name of the block
	Issuer, ClientID, Subject string
	// Name and Email are for X-Actor. Name is preferred_username or Subject where the provider gives no name; Email is ""
	// unless it is an address, and verified.
	Name, Email string
	Claims      catalog.Claims // of the ID token, and further ones of userinfo
	Notes       []string       // sentences on what could not be learned, for the page that refuses the person
}

// RefusalHints says which claims nearly match rules of the block, for a person whom no rule lets in.
func RefusalHints(l *catalog.Login, c catalog.Claims) []string { return nil }
