package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"fingerpost/api/console/say"
	"fingerpost/api/login"
	"fingerpost/resolver/catalog"
)

// A Desk lets people sign in at providers of OpenID Connect; *login.Desk is behind it.
type Desk interface {
	Buttons() []login.Button
	Begin(ctx context.Context, s login.Start) (address, cookie string, err error)
	Finish(ctx context.Context, c login.Callback) (p *login.Person, returnTo string, err error)
}

// SignIn says how people sign in. The zero SignIn is for keys alone.
type SignIn struct {
	// Desk knows the providers. Nil: people sign in at none of them.
	Desk Desk
	// Declared are the login blocks, as they are now. Needed with Desk.
	Declared func() []catalog.Login
	// Person makes a key for a session of a person, and end ends it. The key is good while a rule lets the person in. Needed
	// with Desk.
	Person func(p *login.Person) (text string, end func())
	// PublicURL is where browsers find the service. "": it is not known, and no provider could send them back.
	PublicURL string
	// Domain is that of the addresses of people without a verified one.
	Domain string
	// KeysOff leaves sign-in to the providers and to sign-in links.
	KeysOff bool
}

// flowCookie binds flows of sign-in to their browser, one in each tab. Another site leads back from the provider, so it
// is SameSite=Lax.
const (
	flowCookie = "fingerpost-login"
	flowTime   = 10 * time.Minute
)

// secure reports whether a browser reaches the console by https: through the listener's TLS, or by the public address,
// whose TLS somebody else ends. A browser on this machine may come without.
func (c *Console) secure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(c.o.SignIn.PublicURL, "https://") && !isLocal(r)
}

// loginName returns the name of the login that a request is about, "" if it cannot be one.
func loginName(r *http.Request) string { return strings.Clone(r.PathValue("name")) }

// startLogin leads to the provider of a login.
func (c *Console) startLogin(w http.ResponseWriter, r *http.Request) error {
	if c.o.SignIn.Desk == nil {
		return c.noLogin(w, r)
	}
	address, secret, err := c.o.SignIn.Desk.Begin(r.Context(), login.Start{Login: loginName(r),
		ReturnTo: ownPath(r.FormValue("to")), Peer: peerOf(r)})
	if err != nil {
		return c.loginFailed(w, r, err)
	}
	c.keepFlows(w, r, login.AddFlow(c.only(r, flowCookie), secret))
	return seeOther(w, r, address)
}

// keepFlows has the browser keep its flows of sign-in.
func (c *Console) keepFlows(w http.ResponseWriter, r *http.Request, flows string) {
	age := int(flowTime / time.Second)
	if flows == "" {
		age = -1
	}
	http.SetCookie(w, c.cookie(r, flowCookie, flows, Prefix+"login/", age))
}

// noLogin answers on a node without sign-in at providers.
func (c *Console) noLogin(w http.ResponseWriter, r *http.Request) error {
	return c.loginFailed(w, r, &login.Error{Status: http.StatusNotFound,
		Message: "This service has no login of this name."})
}

// A loginFailure is a page that says why a sign-in at a provider has failed.
type loginFailure struct {
	Login, Message, Hint string
}

// loginFailed shows why a sign-in has failed. It is not counted as a bad key: the browser guesses nothing.
func (c *Console) loginFailed(w http.ResponseWriter, r *http.Request, err error) error {
	e, is := errors.AsType[*login.Error](err)
	if !is {
		c.o.Logger.Warn("sign-in at a provider", "login", loginName(r), "error", err)
		e = &login.Error{Status: http.StatusBadGateway,
			Message: "The sign-in did not work; the log of the service says more."}
	}
	status := e.Status
	if status < 400 || status >= 600 || status == http.StatusInternalServerError {
		status = http.StatusBadGateway
	}
	return c.render(w, r, nil, status, "loginfailed", "Sign in", loginFailure{loginName(r), say.AsSentence(e.Message),
		say.AsSentence(e.Hint)})
}

// finishLogin ends a flow: the provider has sent the browser back. The session's cookie is not sent by a browser that comes
// from another site, so the answer is a page of this one, which goes on by itself.
func (c *Console) finishLogin(w http.ResponseWriter, r *http.Request) error {
	if c.o.SignIn.Desk == nil {
		return c.noLogin(w, r)
	}
	secret, others := login.TakeFlow(c.only(r, flowCookie), r.URL.Query().Get("state"))
	c.keepFlows(w, r, others)
	p, to, err := c.o.SignIn.Desk.Finish(r.Context(), login.Callback{Login: loginName(r), Query: r.URL.Query(),
		Cookie: secret, Peer: peerOf(r)})
	if err != nil {
		return c.loginFailed(w, r, err)
	}
	s, err := c.admit(p, placeOf(r))
	switch {
	case err != nil:
		return c.loginFailed(w, r, err)
	case s == nil:
		return c.notLetIn(w, r, p)
	}
	http.SetCookie(w, c.cookie(r, cookieName, s.secret, Prefix, int(sessionTime/time.Second)))
	return c.leadOn(w, r, onwardView{Title: "You are signed in", To: ownPath(to), Do: "Go on to the console"})
}

// admit begins the session of a person; nil if no rule of the login lets the person read. The error is a *login.Error.
func (c *Console) admit(p *login.Person, at place) (*session, error) {
	text, end := c.o.SignIn.Person(p)
	key, good := c.o.Keys.Check(text)
	if !good || !key.May(catalog.MayRead) {
		go end() // it may wait for a reload
		return nil, nil
	}
	s := c.newSession(at, text, personActor(p, c.o.SignIn.Domain), key)
	s.person, s.ended = p, end
	if at.edge { // what comes with the key asks for no session
		over := time.AfterFunc(sessionTime, func() { c.sessions.end(s) })
		s.ended = func() { over.Stop(); end() }
	}
	if !c.sessions.add(s) {
		s.ended()
		return nil, &login.Error{Status: http.StatusServiceUnavailable,
			Message: "Too many people are signed in.", Hint: "Somebody has to end some sessions first."}
	}
	c.o.Logger.Info("console session began", "login", p.Login, "subject", key.Subject, "actor", s.actor,
		"peer", at.String())
	return s, nil
}

// only returns the value of the request's cookie with a name, "" if there is none, or more: somebody else has set one of
// them.
func (c *Console) only(r *http.Request, name string) string {
	all := r.CookiesNamed(prefixed(name, c.secure(r)))
	if len(all) != 1 {
		return ""
	}
	return strings.Clone(all[0].Value)
}

// An onwardView is a page that leads on by itself.
type onwardView struct{ Title, To, Do string }

// leadOn answers with a page that leads on by itself, also without a script.
func (c *Console) leadOn(w http.ResponseWriter, r *http.Request, v onwardView) error {
	w.Header().Set("Refresh", "0;url="+v.To)
	return c.render(w, r, nil, http.StatusOK, "onward", v.Title, v)
}

// A claimRow is a claim that has arrived, with its values as the provider sent them.
type claimRow struct{ Name, Value string }

// A refusedView explains to a person why the sign-in was refused. Only that person sees the values.
type refusedView struct {
	Login   string
	Reads   bool // rules match, but none lets the person read
	Subject string
	Claims  []claimRow
	More    int // claims that are not listed
	Rules   []catalog.ClaimValue
	Hints   []string
}

// notLetIn shows which claims have arrived and which rules were tried.
func (c *Console) notLetIn(w http.ResponseWriter, r *http.Request, p *login.Person) error {
	v := refusedView{Login: p.Login, Subject: p.Subject, Hints: slices.Clone(p.Notes)}
	v.Claims, v.More = claimRows(p.Claims)
	var names []string
	for _, l := range c.o.SignIn.Declared() {
		if l.Name != p.Login {
			continue
		}
		for i := range l.Rules {
			v.Rules = append(v.Rules, catalog.ClaimValue{Claim: l.Rules[i].Claim, Value: l.Rules[i].Value})
		}
		v.Reads = len(l.Matched(p.Claims)) > 0
		v.Hints = append(v.Hints, login.RefusalHints(&l, p.Claims)...)
	}
	for _, row := range v.Claims {
		names = append(names, row.Name)
	}
	c.o.Logger.LogAttrs(context.Background(), slog.LevelInfo, "sign-in refused: no rule of the login lets the person read",
		slog.String("login", p.Login), slog.String("subject", p.Issuer+"|"+p.Subject), slog.Any("claims", names))
	return c.render(w, r, nil, http.StatusForbidden, "notletin", "Not allowed", v)
}

// Bounds of the page that shows claims.
const (
	maxClaims     = 60
	maxClaimBytes = 400
)

// protocolClaims are about the token and not about the person.
var protocolClaims = []string{"at_hash", "c_hash", "nonce", "exp", "iat", "nbf", "jti", "auth_time", "sid", "session_state"}

func claimRows(claims catalog.Claims) (rows []claimRow, more int) {
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if slices.Contains(protocolClaims, name) {
			continue
		}
		if len(rows) == maxClaims {
			more++
			continue
		}
		value, isText := claims[name].(string)
		if !isText {
			b, _ := json.Marshal(claims[name]) // it was JSON
			value = string(b)
		}
		rows = append(rows, claimRow{cutText(name, maxClaimBytes), cutText(value, maxClaimBytes)})
	}
	return rows, more
}

// cutText cuts a text to a number of bytes, between two characters.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// personActor returns the X-Actor of a person. An address that the provider has not verified is never in it.
func personActor(p *login.Person, domain string) string {
	address := localPart(p.Subject) + "@" + cmp.Or(domain, "localhost")
	for _, try := range [][2]string{{p.Name, p.Email}, {p.Name, address}, {p.Subject, p.Email}, {p.Subject, address}} {
		name := strings.TrimSpace(cutText(strings.ToValidUTF8(strings.Map(printable, try[0]), "\ufffd"), maxPersonName))
		if name == "" || try[1] == "" {
			continue
		}
		if actor, bad := actorOf(name, try[1]); bad == "" {
			return actor
		}
	}
	return localPart(p.Subject) + " <" + address + ">"
}

// maxPersonName leaves room for an address in an X-Actor, also where the name is encoded.
const maxPersonName = 60

func printable(r rune) rune {
	if catalog.BreaksLine(r) {
		return -1
	}
	return r
}

// localPart makes the first part of a mail address of a subject, which can be any text. Two subjects have two.
func localPart(subject string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, subject)
	if plain == subject && len(plain) <= 48 && plain != "" {
		return plain
	}
	sum := sha256.Sum256([]byte(subject))
	return strings.Trim(plain[:min(len(plain), 40)]+"-"+hex.EncodeToString(sum[:4]), "-")
}
