package console

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fingerpost/api/console/words"
	"fingerpost/resolver/catalog"
)

const (
	sessionTime = 8 * time.Hour
	maxSessions = 1000
	// sessionsOfKey bounds the sessions of one key, and with it what its holders can keep in memory; the oldest ends.
	sessionsOfKey = 20
	// The live pages that are open: of a session, of a key, and in all.
	sessionStreams = 8
	keyStreams     = 64
	maxStreams     = 256
	cookieName     = "fingerpost"
	// personCookie keeps the name and the address of the person, as long as the session at most: after a restart of the
	// service they are not asked again.
	personCookie = "fingerpost-person"
)

// A signIn is what a session was begun with. It does not change.
type signIn struct {
	id      string // public: names it in the list
	secret  string // the cookie's value
	token   string // that every form carries
	text    string // of the key
	actor   string // "Name <address>", or ""
	peer    netip.Addr
	browser string // as words has it
	began   time.Time
	expires time.Time
	ended   func() // ends the key, if it is the session's own
}

// A session is a person who has signed in with a key.
type session struct {
	signIn

	mu           sync.Mutex // guards what follows, but streams
	key          Key        // as it was at the last request
	seen         time.Time
	notice       string    // shown on the next page
	secretNotice string    // a new key, shown once
	proposal     string    // that the person works in, or ""
	kept         []kept    // the oldest first, see keep.go
	test         *smtpTest // the last one

	streams int // live pages that are open; guarded by sessions.mu
}

func (s *session) hasToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

// Key returns the key as it was at the last request.
func (s *session) Key() Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// Proposal returns the name of the proposal that the person works in: projects are shown as its branch has them, and
// what is saved goes there. "": none, everything is live.
func (s *session) Proposal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proposal
}

func (s *session) workIn(proposal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proposal = strings.Clone(proposal) // a path's text is the server's, which uses its memory again
}

// say keeps a notice for the next page.
func (s *session) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice = text
}

// sessions are all sessions by their secret. Safe for concurrent use.
type sessions struct {
	now func() time.Time

	mu     sync.Mutex // guards what follows; taken before a session's
	all    map[string]*session
	orders uint64 // how much was kept so far
}

// sessionCookie returns the name of the cookie with the secret. Under TLS it has the prefix that keeps other hosts of
// the domain, and whoever answers for this one without TLS, from setting it.
func sessionCookie(secure bool) string {
	if secure {
		return "__Host-" + cookieName
	}
	return cookieName
}

// find returns the session that a Cookie header names, nil if there is none. Where two cookies have the name, somebody
// else has set one of them: neither counts.
func (x *sessions) find(cookies string, secure bool) *session {
	parsed, err := http.ParseCookie(cookies)
	if err != nil {
		return nil
	}
	name := sessionCookie(secure)
	parsed = slices.DeleteFunc(parsed, func(c *http.Cookie) bool { return c.Name != name })
	if len(parsed) != 1 {
		return nil
	}
	return x.with(parsed[0].Value)
}

// with returns the session that has a secret, nil if it has ended.
func (x *sessions) with(secret string) *session {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.all[secret]; s != nil && x.now().Before(s.expires) {
		return s
	}
	return nil
}

// beginStream counts one more live page of a session, unless the session, its key or all have too many.
func (x *sessions) beginStream(s *session) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	key, ofKey, all := s.Key().ID, 0, 0
	for _, o := range x.all {
		all += o.streams
		if o.Key().ID == key {
			ofKey += o.streams
		}
	}
	if s.streams >= sessionStreams || ofKey >= keyStreams || all >= maxStreams {
		return false
	}
	s.streams++
	return true
}

func (x *sessions) endStream(s *session) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s.streams--
}

// add forgets sessions that have ended, and the oldest of a key that has many. It reports false if there are too many.
func (x *sessions) add(s *session) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	now, same, oldest := x.now(), 0, (*session)(nil)
	for _, old := range x.all {
		if now.After(old.expires) {
			x.drop(old)
		} else if old.Key().ID == s.key.ID {
			if same++; oldest == nil || old.began.Before(oldest.began) {
				oldest = old
			}
		}
	}
	if same >= sessionsOfKey {
		x.drop(oldest)
	}
	if len(x.all) >= maxSessions {
		return false
	}
	x.all[s.secret] = s
	return true
}

func (x *sessions) end(s *session) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(s)
}

// drop ends a session. The caller holds mu. Its own key ends a moment later, because that may wait for a reload; nobody
// has the text of the key by then.
func (x *sessions) drop(s *session) {
	if x.all[s.secret] == s {
		delete(x.all, s.secret)
		go s.ended()
	}
}

// list returns the sessions of a key, or all, the latest first.
func (x *sessions) list(key string) (list []*session) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.all {
		if key == "" || s.Key().ID == key {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *session) int { return b.began.Compare(a.began) })
	return list
}

// session returns the session of a request, if its key is still good; else why there is none.
func (c *Console) session(r *http.Request) (s *session, why string) {
	if s = c.sessions.find(strings.Join(r.Header.Values("Cookie"), "; "), r.TLS != nil); s == nil {
		return nil, ""
	}
	key, good := c.o.Keys.Check(s.text)
	if !good || !key.May(catalog.MayRead) {
		c.sessions.end(s)
		return nil, "revoked"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.seen = key, c.o.Now()
	return s, ""
}

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
		if text = ""; c.link.take(v.Link, isLocal(r)) {
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
		peer: peerOf(r), browser: words.Browser(r.UserAgent()), began: now, expires: now.Add(sessionTime), ended: ended},
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

// A sessionRow is a line of the list of sessions.
type sessionRow struct {
	ID, Key, Actor, Peer, Browser string
	Began, Seen                   time.Time
	Own                           bool
	Person                        int // sessions of the same person that can be ended, if there are several
}

// A sessionsView lists sessions.
type sessionsView struct {
	Rows   []sessionRow
	All    bool // of all keys
	Others int  // of the session's key
}

// listSessions shows the sessions of the same key; to a key that may write on every project, those of all keys.
func (c *Console) listSessions(w http.ResponseWriter, r *http.Request, s *session) error {
	v, key := sessionsView{All: c.sees(s) == ""}, s.Key().ID
	for _, o := range c.sessions.list(c.sees(s)) {
		o.mu.Lock()
		v.Rows = append(v.Rows, sessionRow{o.id, o.key.Name, o.actor, o.peer.String(), o.browser, o.began, o.seen, o == s, 0})
		if o != s && o.key.ID == key {
			v.Others++
		}
		o.mu.Unlock()
	}
	of := map[string]int{}
	for _, row := range v.Rows {
		if row.Actor != "" && !row.Own {
			of[row.Actor]++
		}
	}
	for i := range v.Rows {
		if n := of[v.Rows[i].Actor]; n > 1 {
			v.Rows[i].Person = n
		}
	}
	return c.render(w, r, s, http.StatusOK, "sessions", "Sessions", v)
}

// sees returns the id of the key whose sessions a session may see, "" for all.
func (c *Console) sees(s *session) string {
	if k := s.Key(); !k.Everything || !k.May(catalog.MayWrite) {
		return k.ID
	}
	return ""
}

// endOthers ends the other sessions of the same key.
func (c *Console) endOthers(w http.ResponseWriter, r *http.Request, s *session) error {
	for _, o := range c.sessions.list(s.Key().ID) {
		if o != s {
			c.sessions.end(o)
		}
	}
	s.say("All other sessions with your key have ended.")
	return seeOther(w, r, Prefix+"sessions")
}

// endPerson ends the sessions of the person of one of them, with whatever key, but not the one that asks. Persons are what
// they said at sign-in.
func (c *Console) endPerson(w http.ResponseWriter, r *http.Request, s *session) error {
	list, ended := c.sessions.list(c.sees(s)), 0
	i := slices.IndexFunc(list, func(o *session) bool { return o.id == r.PostFormValue("session") && o.actor != "" })
	for _, o := range list {
		if i >= 0 && o != s && o.actor == list[i].actor {
			c.sessions.end(o)
			ended++
		}
	}
	if i >= 0 {
		s.say("Sessions of " + visible(list[i].actor) + " that have ended: " + itoa(ended) + ".")
	}
	return seeOther(w, r, Prefix+"sessions")
}

func (c *Console) endSession(w http.ResponseWriter, r *http.Request, s *session) error {
	for _, o := range c.sessions.list(c.sees(s)) {
		if o.id == r.PathValue("id") {
			c.sessions.end(o)
			s.say("The session has ended.")
		}
	}
	return seeOther(w, r, Prefix+"sessions")
}
