package api_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// askMe asks me with a token about a domain.
func (h *house) askMe(domain, token string) *answer {
	return h.ask("GET", mePath+"?domain="+domain, "", bearer(token))
}

// A token that was verified is good for its project alone, until its exp and the leeway are over.
func TestVerifiedTokenEnds(t *testing.T) {
	t.Parallel()
	h := startAuth(t)
	token := hs256(t, shopSecret, claims(11, "exp", time.Now().Unix()-28)) // the leeway is 30 s
	for range 2 {
		h.askMe("shop.example", token).check(t, 200, "")
		refusedToken(t, "another project", h.askMe("bank.example", token))
		refusedToken(t, "another project with the secret", h.askMe("twin.example", token))
		h.askMe("off.shop.example", token).check(t, 403, "DOMAIN_NOT_VERIFIED")
	}
	testrig.Eventually(t, "the end of the token", func() bool { return h.askMe("shop.example", token).StatusCode == 401 })
}

// The state of a domain and of its project counts at once for a token that was verified.
func TestVerifiedTokenOfDomain(t *testing.T) {
	t.Parallel()
	h := startAuth(t)
	p := project(21, "moving", "Moving", catalog.StatusActive, "moving.example")
	p.Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: shopSecret}
	token := hs256(t, shopSecret, claims(21))
	for _, c := range []struct {
		change func(p *catalog.ProjectConfig)
		status int
		code   string
	}{
		{func(p *catalog.ProjectConfig) { p.Domains[0].Active = false }, 403, "DOMAIN_NOT_VERIFIED"},
		{func(p *catalog.ProjectConfig) { p.Project.Status = catalog.StatusSuspended }, 403, "PROJECT_SUSPENDED"},
		{func(p *catalog.ProjectConfig) { p.Auth.Token.JWTEnabled = false }, 403, "AUTH_DISABLED"},
		{func(p *catalog.ProjectConfig) { p.Auth.Token.JWTSecret = catalog.Secret{} }, 503, "UNAVAILABLE"},
		{func(p *catalog.ProjectConfig) { p.Domains = nil }, 404, "NOT_FOUND"},
	} {
		h.apply("moving.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{p}})
		h.askMe("moving.example", token).check(t, 200, "")
		changed := p
		changed.Domains = append([]catalog.Domain(nil), p.Domains...)
		c.change(&changed)
		h.apply("moving.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{changed}})
		h.askMe("moving.example", token).check(t, c.status, c.code)
	}
}

// While the secret changes, requests with the old and the new token go on: after a change the old one is refused.
func TestVerifiedTokenRotates(t *testing.T) {
	t.Parallel()
	h := startAuth(t)
	p := project(21, "moving", "Moving", catalog.StatusActive, "moving.example")
	var secrets, tokens [2]string
	for i := range secrets {
		secrets[i] = fmt.Sprint(shopSecret, i)
		tokens[i] = hs256(t, secrets[i], claims(21))
	}
	rotate := func(i int) {
		p.Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: secrets[i]}
		h.apply("moving.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{p}})
	}
	rotate(0)
	gate := h.gate()
	open := func() (check func(token string) (status int)) {
		w := gate.dial()
		t.Cleanup(func() { w.Close() })
		return func(token string) int {
			return onWire(w, "GET", "/check?auth=required", "moving.example", bearer(token)).StatusCode
		}
	}
	done := make(chan struct{})
	var asking sync.WaitGroup
	for i := range 4 {
		check := open()
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if status := check(tokens[i%2]); status != 200 && status != 401 {
					t.Errorf("status %d", status)
					return
				}
			}
		})
	}
	check := open()
	for i := range 50 {
		rotate(i % 2)
		for range 3 {
			if now, old := check(tokens[i%2]), check(tokens[1-i%2]); now != 200 || old != 401 {
				t.Errorf("change %d: %d with the token of the secret, %d with the one before", i, now, old)
			}
		}
	}
	close(done)
	asking.Wait()
}
