package smtp_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/oauth"
	"fingerpost/mailer/smtp"
)

// A tokenRig is an SMTP server that takes tokens, and the token server.
type tokenRig struct {
	sink   *testrig.Sink
	tokens *testrig.TokenServer
	*smtp.Transport
}

func newTokenRig(t *testing.T) *tokenRig {
	t.Helper()
	r := &tokenRig{sink: testrig.NewSink(t), tokens: testrig.NewTokenServer(t)}
	r.take("token-1")
	r.Transport = newTestTransport(t, smtp.TransportOptions{TokenRoots: r.tokens.Roots})
	return r
}

// take has the SMTP server take these tokens alone.
func (r *tokenRig) take(tokens ...string) {
	r.sink.Set(func(rules *testrig.SinkRules) { rules.User, rules.Tokens, rules.Chatty = testUser, tokens, true })
}

func (r *tokenRig) server() smtp.Server {
	return smtp.Server{Host: "127.0.0.1", Port: r.sink.Port(), Username: testUser, Auth: "xoauth2",
		OAuth: oauth.Account{TokenURL: r.tokens.URL, ClientID: testrig.TokenClient, Secret: testrig.TokenClientSecret}}
}

// send sends a mail over a new connection, and checks that the outcome shows no token and no secret.
func (r *tokenRig) send(t *testing.T) smtp.Outcome {
	t.Helper()
	r.sink.Down()
	if err := r.sink.Up(); err != nil {
		t.Fatal(err)
	}
	return noToken(t, r.Send(t.Context(), r.server(), testEnvelope, testMessage))
}

func noToken(t *testing.T, out smtp.Outcome) smtp.Outcome {
	t.Helper()
	if s := dump(out); strings.Contains(s, "token-") || strings.Contains(s, "dG9rZW4t") || strings.Contains(s, testrig.TokenClientSecret) {
		t.Errorf("a token or a secret is shown: %s", s)
	}
	return out
}

// TestToken: a mail is sent with an access token, which serves for the next connection, and is replaced once if the
// server refuses it.
func TestToken(t *testing.T) {
	t.Parallel()
	r := newTokenRig(t)
	for range 2 {
		if out := r.send(t); out.Class != smtp.Accepted || stepNames(out) != "dns connect token auth send" {
			t.Fatalf("%+v", out)
		}
	}
	if n := r.tokens.Asked(); n != 1 {
		t.Errorf("%d questions", n)
	}
	r.take("token-2") // the one in memory has ended early
	if out := r.send(t); out.Class != smtp.Accepted || stepNames(out) != "dns connect token auth token auth send" {
		t.Errorf("%+v", out)
	}
	r.take("token-none") // token-2 is from memory, token-3 is new
	out := r.send(t)
	row{class: smtp.BadConfig, stage: smtp.StageAuth, code: smtp.CodeAuthFailed, fields: "username,oauthScope", smtp: 535,
		says: "rejected the access token (535)", hint: "the application may send mail for", reply: "(withheld: it repeats a secret)"}.compare(t, out)
	if n := r.tokens.Asked(); n != 3 {
		t.Errorf("%d questions", n)
	}
	row{class: smtp.BadConfig, stage: smtp.StageAuth, code: smtp.CodeAuthFailed, fields: "username,oauthScope", smtp: 535,
		reply: "(withheld: it repeats a secret)"}.compare(t, r.send(t))
	if n := r.tokens.Asked(); n != 4 {
		t.Errorf("a new token that was refused was replaced: %d questions", n)
	}
}

// TestTokenOfTest: a test of settings asks for a token of its own, and shows the step.
func TestTokenOfTest(t *testing.T) {
	t.Parallel()
	r := newTokenRig(t)
	if out := r.send(t); out.Class != smtp.Accepted {
		t.Fatalf("%+v", out)
	}
	var mu sync.Mutex
	var told []string
	test := func() smtp.Outcome {
		return noToken(t, r.SendAlone(t.Context(), r.server(), testEnvelope, testMessage, func(s smtp.Step) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, s.Name)
		}))
	}
	r.take("token-2")
	if out := test(); out.Class != smtp.Accepted || stepNames(out) != "dns connect token auth send" || strings.Join(told, " ") != stepNames(out) {
		t.Errorf("%+v, told %v", out, told)
	}
	r.take("token-1")
	if out := r.send(t); out.Class != smtp.Accepted || r.tokens.Asked() != 2 {
		t.Errorf("the test has changed the token in memory: %+v", out)
	}
	r.tokens.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if out := test(); out.Code != smtp.CodeAuthTemporary || stepNames(out) != "dns connect token" {
		t.Errorf("%+v", out)
	}
}

// TestTokenServerFails: what a token server does instead of giving a token decides about the mail.
func TestTokenServerFails(t *testing.T) {
	t.Parallel()
	const auth = smtp.StageAuth
	for _, r := range []struct {
		row
		status int
		body   string
	}{
		{row{name: "OAuth error", class: smtp.BadConfig, stage: auth, code: smtp.CodeAuthFailed, fields: "oauthClientId,oauthClientSecret",
			says: "refuses with invalid_client", hint: "may be wrong, or have expired", reply: "AADSTS7000222:  expired."}, 401,
			`{"error":"invalid_client","error_description":"AADSTS7000222:\r\nexpired."}`},
		{row{name: "wrong scope", class: smtp.BadConfig, stage: auth, code: smtp.CodeAuthFailed, fields: "oauthScope"}, 400, `{"error":"invalid_scope"}`},
		{row{name: "it repeats the secret", class: smtp.BadConfig, stage: auth, code: smtp.CodeAuthFailed, fields: "oauthTokenUrl,oauthScope",
			reply: "(withheld: it repeats a secret)"}, 400, `{"error":"invalid_grant","error_description":"no ` + testrig.TokenClientSecret + ` here"}`},
		{row{name: "no OAuth", class: smtp.BadConfig, stage: auth, code: smtp.CodeAuthFailed, fields: "oauthTokenUrl", says: "answered 404"}, 404, "no"},
		{row{name: "5xx", class: smtp.Temporary, stage: auth, code: smtp.CodeAuthTemporary, fields: "oauthTokenUrl", says: "answered 502"}, 502, ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			rig := newTokenRig(t)
			rig.tokens.Answer(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(r.status)
				_, _ = io.WriteString(w, r.body)
			})
			r.compare(t, rig.send(t))
			rig.tokens.Answer(nil)
			if out := rig.send(t); out.Class != smtp.Accepted {
				t.Errorf("%+v", out)
			}
		})
	}
}

// TestSlowTokenServer: mail with a login by password goes on while a token server hangs.
func TestSlowTokenServer(t *testing.T) {
	t.Parallel()
	r := newTokenRig(t)
	release := make(chan struct{})
	r.tokens.Answer(func(w http.ResponseWriter, req *http.Request) {
		<-release
		r.tokens.Grant(w, req)
	})
	slow := make(chan smtp.Outcome, 1)
	go func() { slow <- r.Send(t.Context(), r.server(), testEnvelope, testMessage) }()
	testrig.Eventually(t, "the question", func() bool { return r.tokens.Asked() == 1 })
	peer := newPeer(t, nil, false)
	if out := r.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Class != smtp.Accepted {
		t.Errorf("%+v", out)
	}
	close(release)
	select {
	case out := <-slow:
		if out.Class != smtp.Accepted {
			t.Errorf("%+v", out)
		}
	case <-time.After(testrig.Patience):
		t.Fatal("the mail with a token waits")
	}
}
