package login

import (
	"container/list"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"sync"
	"time"
)

// Bounds of flows.
const (
	flowTime    = 10 * time.Minute
	maxFlows    = 10_000
	maxReturnTo = 1024 // bytes
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
	began    time.Time
}

// A flows holds the sign-ins under way, each until it is finished, for 10 minutes at most. Everybody who reaches the
// page of sign-in can fill it: then the oldest flow ends, and the person begins again. Sessions are not concerned.
type flows struct {
	now func() time.Time

	mu    sync.Mutex               // guards what follows
	open  map[string]*list.Element // by state
	order list.List                // of *flow, the oldest first
}

// put adds a flow.
func (s *flows) put(f *flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.order.Front(); e != nil && (s.ended(e.Value.(*flow)) || len(s.open) >= maxFlows); e = s.order.Front() {
		s.remove(e)
	}
	s.open[f.state] = s.order.PushBack(f)
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
	delete(s.open, e.Value.(*flow).state)
	s.order.Remove(e)
}

// random returns 256 bits that cannot be guessed, in letters that need no escape.
func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
