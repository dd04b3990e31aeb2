package console

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"fingerpost/api/console/say"
	"fingerpost/api/login"
	"fingerpost/resolver/catalog"
)

type signInView struct {
	To, Why     string
	Name, Email string
	Demo        bool
	Link        string // the secret of a sign-in link
	Logins      []login.Button
	LoginsOff   string // why none of the logins can be used; "": they can
	KeysOff     bool
	KeyError    string
	PersonError string
}

func (c *Console) signInPage(w http.ResponseWriter, r *http.Request) error {
	v := c.signInForm(r, ownPath(r.FormValue("to")))
	v.Why, v.Link = r.FormValue("why"), r.FormValue("link")
	if cookie, err := r.Cookie(personCookie); err == nil {
		if text, err := url.QueryUnescape(cookie.Value); err == nil {
			v.Name, v.Email, _ = strings.Cut(text, "\n")
		}
	}
	return c.render(w, r, nil, http.StatusOK, "signin", "Sign in", v)
}

// signInForm is the page for signing in, which then leads to a path.
func (c *Console) signInForm(r *http.Request, to string) signInView {
	o := &c.o.SignIn
	v := signInView{To: to, Demo: c.demo(r) != "", KeysOff: o.KeysOff}
	if o.Desk != nil {
		v.Logins = o.Desk.Buttons()
	}
	if len(v.Logins) > 0 && o.PublicURL == "" {
		v.LoginsOff = "To sign in with " + cmp.Or(v.Logins[0].Label, v.Logins[0].Name) + ", the service has to know the " +
			"address at which browsers find it: start it with --public-url, such as --public-url " + origin(r) + "."
		v.Logins = nil
	}
	return v
}

// demo returns the demo key if the request comes from this machine.
func (c *Console) demo(r *http.Request) string {
	if c.o.DemoKey == nil || !isLocal(r) || c.o.SignIn.KeysOff {
		return ""
	}
	return c.o.DemoKey()
}

func peerOf(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap()
}

// ownPath returns a path of the console, so that nobody is sent to another site after signing in.
func ownPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, Prefix) || strings.Contains(path, `\`) ||
		strings.Contains(u.Path, "//") {
		return Prefix
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." { // a browser follows them out of the console
			return Prefix
		}
	}
	return u.RequestURI()
}

// signIn exchanges a key for a session.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) error {
	v := c.signInForm(r, ownPath(r.PostFormValue("to")))
	v.Name, v.Email = strings.TrimSpace(r.PostFormValue("name")), strings.TrimSpace(r.PostFormValue("email"))
	v.Link = r.PostFormValue("link")
	text := strings.TrimSpace(r.PostFormValue("key"))
	if r.PostFormValue("demo") != "" {
		text = c.demo(r)
	}
	refuse := func(status int, message string) error {
		v.KeyError = message
		return c.render(w, r, nil, status, "signin", "Sign in", v)
	}
	actor, bad := actorOf(v.Name, v.Email)
	if v.PersonError = bad; bad != "" {
		return refuse(http.StatusBadRequest, "")
	}
	if c.o.SignIn.KeysOff && v.Link == "" {
		return refuse(http.StatusForbidden, "Keys do not sign in to this console.")
	}
	ended := func() {}
	if v.Link != "" {
		if text = ""; c.link.useUp(v.Link, isLocal(r)) {
			text, ended = c.o.Guest()
		} else if c.link.localOnly(v.Link) && !isLocal(r) {
			return refuse(http.StatusForbidden,
				"This link works in a browser on the machine that the service runs on, at an address such as 127.0.0.1. "+
					"For another one, run \"fingerpost console-link\" there.")
		}
	}
	key, good := c.o.Keys.Check(text)
	if !good {
		if wait := c.o.Keys.Fail(peerOf(r)); wait > 0 {
			seconds := strconv.Itoa(int((wait + time.Second - 1) / time.Second))
			w.Header().Set("Retry-After", seconds)
			return refuse(http.StatusTooManyRequests,
				"Too many wrong keys came from your address. Try again in "+seconds+" seconds.")
		}
		if v.Link != "" {
			v.Link = "" // what follows is the form for a key
			return refuse(http.StatusUnauthorized, "This link was used already, or has run out. \"fingerpost console-link\" "+
				"makes a new one, or sign in with a key.")
		}
		return refuse(http.StatusUnauthorized, "This key is not known here, or has expired.")
	}
	if !key.May(catalog.MayRead) {
		return refuse(http.StatusForbidden,
			`This key may not read, and the console only shows what its key may see. Use one with "read" in its allow list.`)
	}
	s := c.newSession(placeOf(r), text, actor, key)
	s.ended = ended
	if !c.sessions.add(s) {
		ended()
		return refuse(http.StatusServiceUnavailable, "Too many people are signed in. End some sessions first.")
	}
	http.SetCookie(w, c.cookie(r, cookieName, s.secret, Prefix, int(sessionTime/time.Second)))
	said := url.QueryEscape(v.Name + "\n" + v.Email)
	http.SetCookie(w, c.cookie(r, personCookie, said, Prefix, int(sessionTime/time.Second)))
	c.o.Logger.Info("console session began", "key", key.ID, "actor", actor, "peer", s.peer.String())
	return seeOther(w, r, v.To)
}

// placeOf returns where a request's browser is.
func placeOf(r *http.Request) place {
	return place{peer: peerOf(r), browser: say.Browser(r.UserAgent())}
}

// newSession makes the session of a browser.
func (c *Console) newSession(at place, text, actor string, key Key) *session {
	now := c.o.Now()
	return &session{signIn: signIn{id: random()[:12], secret: random(), token: random(), text: text, actor: actor,
		place: at, began: now, expires: now.Add(sessionTime)}, seen: now, confirmed: now, key: key}
}

// cookie makes a cookie that no script reads and, but for that of a flow, no other site sends.
func (c *Console) cookie(r *http.Request, name, value, path string, age int) *http.Cookie {
	k := &http.Cookie{Name: name, Value: value, Path: path, MaxAge: age, //nolint:gosec // for Secure, see below
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode}
	if k.Secure = c.secure(r); name == flowCookie {
		k.SameSite = http.SameSiteLaxMode
	}
	if name != personCookie {
		if k.Name = prefixed(name, k.Secure); k.Secure {
			k.Path = "/" // the prefix asks for it
		}
	}
	return k
}

// actorOf returns the X-Actor of a person, "" without a name. bad says what is wrong with it.
func actorOf(name, email string) (actor, bad string) {
	if name == "" && email == "" {
		return "", ""
	}
	if name == "" || email == "" {
		return "", "Give both your name and your mail address, or neither."
	}
	a := mail.Address{Name: name, Address: email}
	actor = name + " <" + email + ">"
	if strings.ContainsAny(name, `"(),:;<>@[\]`) || strings.ContainsFunc(name, func(r rune) bool { return r > 0x7e }) {
		actor = a.String()
	}
	if parsed, err := mail.ParseAddress(actor); err != nil || parsed.Address != email {
		return "", "The mail address must look like ada@example.com."
	}
	if len(actor) > 256 || strings.ContainsFunc(name, catalog.BreaksLine) {
		return "", "The name is too long, or has characters that cannot be shown."
	}
	return actor, ""
}

// random returns 128 bits that nobody can guess, in letters that need no escape.
func random() string {
	b := make([]byte, 24)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

func (c *Console) signOut(w http.ResponseWriter, r *http.Request) error {
	end := ""
	if s, _ := c.session(r); s != nil {
		if !s.hasToken(r.PostFormValue("token")) {
			return &failure{Status: http.StatusForbidden,
				Message: "This form is not of your session: nothing was done."}
		}
		c.sessions.end(s)
		if s.person != nil {
			end = s.person.SignOut
		}
	}
	http.SetCookie(w, c.cookie(r, cookieName, "", Prefix, -1))
	http.SetCookie(w, c.cookie(r, personCookie, "", Prefix, -1))
	if end != "" { // not by a redirect: the policy keeps forms from leading to another site
		return c.leadOn(w, r, onwardView{Title: "You are signed out here", To: end, Do: "Sign out at the provider, too"})
	}
	return seeOther(w, r, Prefix+"sign-in?why=out")
}
