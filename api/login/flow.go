package login

import (
	"container/list"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Bounds of flows.
const (
	flowTime    = 10 * time.Minute
	maxFlows    = 10_000
	maxReturnTo = 1024 // bytes
	maxTabs     = 5    // flows under way in one browser
	tagLen      = 8    // of a state, in letters; a cookie begins with them
)

// A flow is a sign-in under way.
type flow struct {
	state    string
	cookie   [sha256.Size]byte // the hash of the browser's cookie
	provider *provider         // as it was at the start: it does not change between the steps
	login    string            // the name of the block
	clientID string
	redirect string // the redirect URI
	nonce    string
	verifier string // of PKCE
	returnTo string
	peer     netip.Addr // the network of the browser's address
	began    time.Time
}

// A flows holds the sign-ins under way, each until it is finished, for 10 minutes at most. Everybody who reaches the
// page of sign-in can fill it: then the peer with the most flows loses its oldest one, and the person there begins again.
// So a peer that floods it ends flows of its own alone. Sessions are not concerned.
type flows struct {
	now func() time.Time

	mu    sync.Mutex               // guards what follows
	open  map[string]*list.Element // by state
	order list.List                // of *flow, the oldest first
	of    map[netip.Addr]int       // how many a peer has
}

// put adds a flow.
func (s *flows) put(f *flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.order.Front(); e != nil && s.ended(e.Value.(*flow)); e = s.order.Front() {
		s.remove(e)
	}
	if len(s.open) >= maxFlows {
		s.dropOne()
	}
	s.open[f.state] = s.order.PushBack(f)
	s.of[f.peer]++
}

// dropOne removes the oldest flow of the peers that have the most. The caller holds mu.
func (s *flows) dropOne() {
	most := 0
	for _, n := range s.of {
		most = max(most, n)
	}
	for e := s.order.Front(); e != nil; e = e.Next() {
		if s.of[e.Value.(*flow).peer] == most {
			s.remove(e)
			return
		}
	}
}

// take removes the flow of a login with this state and cookie, and returns it; nil: there is none. With another cookie
// it stays: who learns a state cannot end the flow of somebody else.
func (s *flows) take(login, state, cookie string) *flow {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.open[state]
	if e == nil {
		return nil
	}
	f := e.Value.(*flow)
	hash := sha256.Sum256([]byte(cookie))
	if f.login != login || subtle.ConstantTimeCompare(hash[:], f.cookie[:]) == 0 {
		return nil
	}
	s.remove(e)
	if s.ended(f) {
		return nil
	}
	return f
}

func (s *flows) ended(f *flow) bool { return s.now().Sub(f.began) >= flowTime }

func (s *flows) remove(e *list.Element) {
	f := e.Value.(*flow)
	delete(s.open, f.state)
	s.order.Remove(e)
	if s.of[f.peer]--; s.of[f.peer] == 0 {
		delete(s.of, f.peer)
	}
}

// cookieLen is the length of what binds one flow to its browser: the tag of its state, and a secret.
const cookieLen = tagLen + 43

// AddFlow adds a flow to what a browser keeps, as Begin gave it. A browser has a flow in each of several tabs; beyond 5
// the oldest one is left out.
func AddFlow(cookie, added string) string {
	all := flowsIn(cookie)
	return strings.Join(append(all[max(0, len(all)-maxTabs+1):], added), ".")
}

// TakeFlow takes the flow that a callback belongs to out of what a browser keeps; "" if it is not there. state is that
// of the callback.
func TakeFlow(cookie, state string) (taken, rest string) {
	var others []string
	for _, one := range flowsIn(cookie) {
		if len(state) >= tagLen && strings.HasPrefix(one, state[:tagLen]) {
			taken = one
		} else {
			others = append(others, one)
		}
	}
	return taken, strings.Join(others, ".")
}

// flowsIn lists the flows that a browser keeps, the oldest first.
func flowsIn(cookie string) (all []string) {
	for one := range strings.SplitSeq(cookie, ".") {
		if len(one) == cookieLen {
			all = append(all, one)
		}
	}
	return all
}

// random returns 256 bits that cannot be guessed, in letters that need no escape.
func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
