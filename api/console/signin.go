package console

import (
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
	"fingerpost/resolver/catalog"
)

type signInView struct {
	To, Why     string
	Name, Email string
	Demo        bool
	Link        string // the secret of a sign-in link
	KeyError    string
	PersonError string
}

func (c *Console) signInPage(w http.ResponseWriter, r *http.Request) error {
	v := signInView{To: ownPath(r.FormValue("to")), Why: r.FormValue("why"), Demo: c.demo(r) != "",
		Link: r.FormValue("link")}
	if cookie, err := r.Cookie(personCookie); err == nil {
		if text, err := url.QueryUnescape(cookie.Value); err == nil {
			v.Name, v.Email, _ = strings.Cut(text, "\n")
		}
	}
	return c.render(w, r, nil, http.StatusOK, "signin", "Sign in", v)
}

// demo returns the demo key if the request comes from this machine.
func (c *Console) demo(r *http.Request) string {
	if c.o.DemoKey == nil || !isLocal(r) {
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
	v := signInView{To: ownPath(r.PostFormValue("to")), Name: strings.TrimSpace(r.PostFormValue("name")),
		Email: strings.TrimSpace(r.PostFormValue("email")), Demo: c.demo(r) != "", Link: r.PostFormValue("link")}
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
	now := c.o.Now()
	s := &session{signIn: signIn{id: random()[:12], secret: random(), token: random(), text: text, actor: actor,
		peer: peerOf(r), browser: say.Browser(r.UserAgent()), began: now, expires: now.Add(sessionTime), ended: ended},
		seen: now, key: key}
	if !c.sessions.add(s) {
		ended()
		return refuse(http.StatusServiceUnavailable, "Too many people are signed in. End some sessions first.")
	}
	http.SetCookie(w, cookie(r, cookieName, s.secret, Prefix, int(sessionTime/time.Second)))
	http.SetCookie(w, cookie(r, personCookie, url.QueryEscape(v.Name+"\n"+v.Email), Prefix, int(sessionTime/time.Second)))
	c.o.Logger.Info("console session began", "key", key.ID, "actor", actor, "peer", s.peer.String())
	return seeOther(w, r, v.To)
}

// cookie makes a cookie that no script reads and no other site sends.
func cookie(r *http.Request, name, value, path string, age int) *http.Cookie {
	k := &http.Cookie{Name: name, Value: value, Path: path, MaxAge: age, //nolint:gosec // for Secure, see below
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode}
	k.Secure = r.TLS != nil
	if name == cookieName {
		if k.Name = sessionCookie(k.Secure); k.Secure {
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
	if s, _ := c.session(r); s != nil {
		if !s.hasToken(r.PostFormValue("token")) {
			return &failure{Status: http.StatusForbidden,
				Message: "This form is not of your session: nothing was done."}
		}
		c.sessions.end(s)
	}
	http.SetCookie(w, cookie(r, cookieName, "", Prefix, -1))
	http.SetCookie(w, cookie(r, personCookie, "", Prefix, -1))
	return seeOther(w, r, Prefix+"sign-in?why=out")
}
