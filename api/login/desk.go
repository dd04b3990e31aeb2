package login

import (
	"cmp"
	"container/list"
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"fingerpost/api/gate"
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
	d.flows.now, d.flows.open, d.flows.of = o.Now, map[string]*list.Element{}, map[netip.Addr]int{}
	return d
}

// RedirectURI returns the address of the callback of a login, which its provider must know. Providers compare it letter by
// letter, and people register it without the port that the scheme has anyway.
func RedirectURI(publicURL, name string) string {
	origin := strings.ToLower(strings.TrimRight(publicURL, "/"))
	for scheme, port := range map[string]string{"https://": ":443", "http://": ":80"} {
		if strings.HasPrefix(origin, scheme) {
			origin = strings.TrimSuffix(origin, port)
		}
	}
	return origin + "/console/login/" + name + "/callback"
}

// A Button is a login block on the page of sign-in.
type Button struct {
	Name, Label string
	Problem     string // why the last sign-in failed, as a sentence; "": it did not
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
			buttons[i].Problem = NoPublicURL().Message
		}
	}
	return buttons
}

// NoPublicURL is the error of a node to which a provider cannot send browsers back.
func NoPublicURL() *Error {
	return &Error{Status: http.StatusServiceUnavailable,
		Message: "The provider cannot send browsers back: the service was started without --public-url.",
		Hint: "Start the service with --public-url and the address at which browsers find it, such as " +
			"https://config.acme.example"}
}

// A Start is what a browser asks for as it begins a flow.
type Start struct {
	Login    string     // the name of the block
	ReturnTo string     // where the browser goes on after the flow, a path of this service; anything else counts as ""
	Peer     netip.Addr // of the browser: peers share the places of flows
	// PublicURL is where the browser finds the edge that it looks at. "": it looks at this node, see Options.
	PublicURL string
}

// Begin starts a flow. The browser goes to address, and keeps cookie, which binds the flow to it, for 10 minutes: see
// AddFlow and TakeFlow. The error is an *Error.
func (d *Desk) Begin(ctx context.Context, s Start) (address, cookie string, err error) {
	l := d.login(s.Login)
	switch {
	case l == nil:
		return "", "", &Error{Status: http.StatusNotFound, Message: "No login block has this name."}
	case cmp.Or(s.PublicURL, d.o.PublicURL) == "":
		return "", "", NoPublicURL()
	}
	if _, failed := d.secret(l); failed != nil { // before the person has been to the provider and back
		d.note(l, nil, failed)
		return "", "", failed
	}
	p, failed := d.provider(ctx, l)
	if failed != nil {
		return "", "", failed
	}
	d.note(l, p, nil)
	f := &flow{state: random(), provider: p, login: l.Name, clientID: l.ClientID,
		redirect: RedirectURI(cmp.Or(s.PublicURL, d.o.PublicURL), l.Name), nonce: random(),
		verifier: oauth2.GenerateVerifier(), returnTo: localPath(s.ReturnTo), peer: gate.Network(s.Peer), began: d.o.Now()}
	cookie = f.state[:tagLen] + random()
	f.cookie = sha256.Sum256([]byte(cookie))
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

// A Callback is how a provider has sent a browser back.
type Callback struct {
	Login  string // the name of the block
	Query  url.Values
	Cookie string     // that Begin gave
	Peer   netip.Addr // of the browser
}

// Finish ends a flow. The error is an *Error.
func (d *Desk) Finish(ctx context.Context, c Callback) (p *Person, returnTo string, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	l, f, failed := d.resume(c.Login, c.Query, c.Cookie)
	if failed == nil {
		p, failed = d.finish(ctx, l, f, c.Query)
	}
	if failed != nil {
		if failed.Status != http.StatusBadRequest {
			d.warn("a sign-in failed", c.Login, failed)
		}
		return nil, "", failed
	}
	return p, f.returnTo, nil
}

// warn logs an error with its cause.
func (d *Desk) warn(what, name string, e *Error) {
	args := []any{"login", name, "status", e.Status, "error", e.Message}
	if e.cause != nil {
		args = append(args, "cause", e.cause)
	}
	d.o.Logger.Warn(what, args...)
}

// resume takes the flow that a callback belongs to. It is finished then, whatever follows.
func (d *Desk) resume(name string, query url.Values, cookie string) (*catalog.Login, *flow, *Error) {
	const again = "Begin again at the page of sign-in."
	state, single := one(query, "state")
	f := d.flows.take(name, state, cookie)
	if f == nil || !single {
		return nil, nil, &Error{Status: http.StatusBadRequest, Hint: again,
			Message: "This sign-in is over: it was finished already, or began more than 10 minutes ago or in another browser."}
	}
	l := d.login(name)
	if l == nil || l.Issuer != f.provider.issuer || l.ClientID != f.clientID {
		return nil, nil, &Error{Status: http.StatusBadRequest, Hint: again,
			Message: "The login block has changed since the sign-in began."}
	}
	return l, f, nil
}

// one returns the value of a parameter, which must not be given twice (RFC 6749 3.1).
func one(query url.Values, name string) (value string, single bool) {
	return query.Get(name), len(query[name]) <= 1
}

// finish reads the callback of a flow, and asks the provider who has signed in.
func (d *Desk) finish(ctx context.Context, l *catalog.Login, f *flow, query url.Values) (*Person, *Error) {
	// RFC 9207 before all else: a callback of another provider, an error as well, says nothing about this one.
	issuer, single := one(query, "iss")
	if !single || issuer != "" && issuer != l.Issuer || issuer == "" && f.provider.document.SendsIssuer {
		return nil, &Error{Status: http.StatusBadGateway, Hint: "Begin again. If it happens each time, the issuer of the " +
			"block must be what the provider sends as iss.",
			Message: "The callback does not name the issuer of the block in its parameter iss."}
	}
	if code, _ := one(query, "error"); code != "" {
		return nil, refusal(code, query.Get("error_description"), []string{f.nonce, f.verifier})
	}
	code, single := one(query, "code")
	if code == "" || !single {
		return nil, &Error{Status: http.StatusBadGateway, Message: "The callback has neither a code nor an error."}
	}
	secret, failed := d.secret(l)
	if failed != nil {
		return nil, failed
	}
	token, err := f.provider.config(l, secret, f.redirect).Exchange(f.provider.with(ctx), code,
		oauth2.VerifierOption(f.verifier))
	if err != nil {
		return nil, asking("tokens", err, secret, code, f.verifier)
	}
	return d.person(ctx, l, f, token)
}

// refusal is an error that the provider sends with the browser.
func refusal(code, description string, secrets []string) *Error {
	e := &Error{Status: http.StatusForbidden}
	if code == "temporarily_unavailable" || code == "server_error" {
		e.Status = http.StatusServiceUnavailable
	}
	e.Message, e.Hint = refused(code, description, secrets)
	e.Message = "The provider refused the sign-in: " + e.Message + "."
	return e
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
