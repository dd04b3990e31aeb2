package console

import (
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"fingerpost/api/login"
	"fingerpost/resolver/catalog"
)

const (
	sessionTime = 8 * time.Hour
	maxSessions = 1000
	// sessionsOfKey bounds the sessions of one key, or of one person who signs in at a provider, and with it what they can
	// keep in memory; the oldest ends.
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
	id     string // public: names it in the list
	secret string // the cookie's value
	token  string // that every form carries
	text   string // of the key
	actor  string // "Name <address>", or ""
	place
	began   time.Time
	expires time.Time
	ended   func()        // ends the key, if it is the session's own
	person  *login.Person // who has signed in at a provider; nil: with a key
}

// A place is where the browser of a session is.
type place struct {
	peer    netip.Addr
	browser string // as words has it
	edge    bool   // the browser is at an edge of this authority; the rest is empty then
}

// String returns the address of the browser, or where it is.
func (p place) String() string {
	if p.edge {
		return "at an edge"
	}
	return p.peer.String()
}

// A session is a person who has signed in, with a key or at a provider.
type session struct {
	signIn

	mu        sync.Mutex // guards what follows, but streams
	key       Key        // as it was at the last request
	seen      time.Time
	confirmed time.Time // when an edge has asked the authority about it, see askAuthority
	notice    string    // shown on the next page
	once      onceShown // shown on the next page
	proposal  string    // that the person works in, or ""
	kept      []kept    // the oldest first, see keep.go
	test      *smtpTest // the last one

	streams int // live pages that are open; guarded by sessions.mu
}

// login returns the name of the login at which the person has signed in, "" for a session with a key.
func (s *session) login() string {
	if s.person == nil {
		return ""
	}
	return s.person.Login
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

// A onceShown is a secret that the service has made, and what it is.
type onceShown struct{ What, Text string }

// show keeps a new secret for the next page.
func (s *session) show(once onceShown) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.once = once
}

// sessions are all sessions by their secret. Safe for concurrent use.
type sessions struct {
	now func() time.Time

	mu     sync.Mutex // guards what follows; taken before a session's
	all    map[string]*session
	ended  map[string]string // why sessions have ended by themselves, by their secret; at most maxSessions
	orders uint64            // how much was kept so far
}

// prefixed returns the name of a cookie with a secret. Under TLS it has the prefix that keeps other hosts of the domain,
// and whoever answers for this one without TLS, from setting it.
func prefixed(name string, secure bool) string {
	if secure {
		return "__Host-" + name
	}
	return name
}

// find returns the session that a Cookie header names, nil if there is none.
func (x *sessions) find(cookies string, secure bool) *session {
	return x.with(secretIn(cookies, secure))
}

// secretIn returns the secret of a session that a Cookie header has, "" for none. Where two cookies have the name,
// somebody else has set one of them: neither counts.
func secretIn(cookies string, secure bool) string {
	parsed, err := http.ParseCookie(cookies)
	if err != nil {
		return ""
	}
	name := prefixed(cookieName, secure)
	parsed = slices.DeleteFunc(parsed, func(c *http.Cookie) bool { return c.Name != name })
	if len(parsed) != 1 {
		return ""
	}
	return parsed[0].Value
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

// endBecause ends a session that no person has ended. The reason stays for its next requests: the first one to find out
// may be a live page, which shows nothing.
func (x *sessions) endBecause(s *session, why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(s)
	if len(x.ended) >= maxSessions {
		clear(x.ended)
	}
	x.ended[s.secret] = why
}

// whyEnded returns why the session that had a secret has ended by itself, "" if it has not.
func (x *sessions) whyEnded(secret string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ended[secret]
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
	secret := secretIn(strings.Join(r.Header.Values("Cookie"), "; "), c.secure(r))
	if s = c.sessions.with(secret); s == nil {
		return nil, c.sessions.whyEnded(secret)
	}
	key, good := c.o.Keys.Check(s.text)
	if !good || !key.May(catalog.MayRead) {
		if why = "revoked"; s.person != nil {
			why = "rules"
		}
		c.sessions.endBecause(s, why)
		return nil, why
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.seen = key, c.o.Now()
	if c.byAuthority(s) && s.seen.Sub(s.confirmed) >= confirmEvery {
		s.confirmed = s.seen
		go c.askAuthority(s)
	}
	return s, ""
}
