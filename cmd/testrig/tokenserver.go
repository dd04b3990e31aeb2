package testrig

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A TokenServer is a token endpoint of OAuth 2.0 at 127.0.0.1, over TLS. It gives the client "client" with the secret
// "client-secret" the tokens "token-1", "token-2" and so on, which live for an hour, unless a test says otherwise with
// Answer. Safe for concurrent use.
type TokenServer struct {
	URL   string
	Roots *x509.CertPool // trust it

	mu     sync.Mutex
	asked  int
	given  int
	answer http.HandlerFunc
}

// The client of a TokenServer.
const (
	TokenClient       = "client"
	TokenClientSecret = "client-secret-9z"
)

// NewTokenServer returns one that runs until the test ends.
func NewTokenServer(t testing.TB) *TokenServer {
	t.Helper()
	s := &TokenServer{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	server.StartTLS()
	t.Cleanup(server.Close)
	s.URL = server.URL + "/token"
	s.Roots = x509.NewCertPool()
	s.Roots.AddCert(server.Certificate())
	return s
}

// Answer has a test answer requests; nil: as the type says.
func (s *TokenServer) Answer(f http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// Asked returns how many requests it has had.
func (s *TokenServer) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *TokenServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked++
	answer := s.answer
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if answer != nil {
		_ = r.ParseForm() // a body that is not read hides that the client has gone
		answer(w, r)
		return
	}
	s.Grant(w, r)
}

// Grant answers a request as the type says.
func (s *TokenServer) Grant(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	if r.Method != http.MethodPost || r.PostFormValue("grant_type") != "client_credentials" || id != TokenClient ||
		secret != TokenClientSecret {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided."}`)
		return
	}
	s.mu.Lock()
	s.given++
	n := s.given
	s.mu.Unlock()
	fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, n)
}
