package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/oauth"
)

// A rig is Tokens with a clock, and a token server.
type rig struct {
	*oauth.Tokens
	server *testrig.TokenServer

	mu  sync.Mutex
	now time.Time
}

func newRig(t *testing.T, change ...func(*oauth.Options)) *rig {
	t.Helper()
	r := &rig{server: testrig.NewTokenServer(t), now: time.Now()}
	o := oauth.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: r.server.Roots,
		Now: func() time.Time {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.now
		}}
	for _, f := range change {
		f(&o)
	}
	r.Tokens = oauth.New(o)
	return r
}

func (r *rig) forward(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rig) account() oauth.Account {
	return oauth.Account{TokenURL: r.server.URL, ClientID: testrig.TokenClient, Secret: testrig.TokenClientSecret}
}

// want asks for a token.
func (r *rig) want(t *testing.T, want string, fresh bool) {
	t.Helper()
	text, isFresh, err := r.Token(t.Context(), r.account())
	if text != want || isFresh != fresh || err != nil {
		t.Errorf("token %q, fresh %v, %v; want %q, %v", text, isFresh, err, want, fresh)
	}
}

// fails asks for a token that there is none of.
func (r *rig) fails(t *testing.T, a oauth.Account) *oauth.Error {
	t.Helper()
	text, _, err := r.Token(t.Context(), a)
	var e *oauth.Error
	if text != "" || !errors.As(err, &e) {
		t.Fatalf("token %q, %v; want an Error", text, err)
	}
	if s := fmt.Sprintf("%v %+v %#v", err, a, a); strings.Contains(s, testrig.TokenClientSecret) {
		t.Errorf("a secret is shown: %s", s)
	}
	return e
}

// TestLifetime: a token serves until shortly before its end, and not beyond what a server refuses.
func TestLifetime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.want(t, "token-1", true)
	r.want(t, "token-1", false)
	r.forward(58 * time.Minute)
	r.want(t, "token-1", false)
	r.forward(90 * time.Second) // 30 s before the end
	r.want(t, "token-2", true)
	r.Forget(r.account(), "token-1") // late: it was replaced
	r.want(t, "token-2", false)
	r.Forget(r.account(), "token-2")
	r.want(t, "token-3", true)
	if text, _, err := r.Ask(t.Context(), r.account()); text != "token-4" || err != nil {
		t.Errorf("asked for: %q, %v", text, err)
	}
	r.want(t, "token-3", false)
	if n := r.server.Asked(); n != 4 {
		t.Errorf("%d questions", n)
	}
}

// TestMost: accounts without end do not fill the memory, and the latest has its token.
func TestMost(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *oauth.Options) { o.Most = 2 })
	ask := func(scope string) (fresh bool) {
		t.Helper()
		a := r.account()
		a.Scope = scope
		_, fresh, err := r.Token(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		return fresh
	}
	for _, scope := range []string{"a", "b", "c"} {
		if !ask(scope) || ask(scope) {
			t.Errorf("the token of %s is not that of a question", scope)
		}
	}
	dropped := 0
	for _, scope := range []string{"c", "a", "b"} {
		if ask(scope) {
			dropped++
		}
	}
	if dropped == 0 {
		t.Error("all three are kept")
	}
}

// TestOddLifetimes: no end, an end long after the longest use, and one that has come already.
func TestOddLifetimes(t *testing.T) {
	t.Parallel()
	for expires, use := range map[string]time.Duration{"": 5 * time.Minute, `,"expires_in":864000`: time.Hour, `,"expires_in":-5`: 0,
		`,"expires_in":"100"`: 90 * time.Second} {
		r := newRig(t)
		r.server.Answer(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"access_token":"t"`+expires+`}`)
		})
		r.want(t, "t", true)
		if use > 0 {
			r.forward(use - 3*time.Second)
			r.want(t, "t", false)
		}
		r.forward(4 * time.Second)
		r.want(t, "t", true)
	}
}

// TestSingleFlight: callers of one account share a question, and one who gives up ends it for nobody else. The server of
// another account, which hangs, does not matter to them.
func TestSingleFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slow := r.account()
	slow.Scope = "slow"
	release := make(chan struct{})
	r.server.Answer(func(w http.ResponseWriter, req *http.Request) {
		if req.PostFormValue("scope") == "slow" {
			<-release
		}
		r.server.Grant(w, req)
	})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			ctx := ctx
			if i > 0 {
				ctx = t.Context()
			}
			_, fresh, err := r.Token(ctx, slow)
			if gaveUp := i == 0; (err != nil) != gaveUp || fresh == gaveUp {
				t.Errorf("caller %d: fresh %v, %v", i, fresh, err)
			}
		})
	}
	testrig.Eventually(t, "the slow question", func() bool { return r.server.Asked() == 1 })
	cancel()
	r.want(t, "token-1", true)
	close(release)
	all.Wait()
	if n := r.server.Asked(); n != 2 {
		t.Errorf("%d questions", n)
	}
}

// TestRefusals: what token servers do instead of giving a token.
func TestRefusals(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		answer    http.HandlerFunc
		temporary bool
		code      string
		reason    string
	}{
		"wrong client": {status(401, `{"error":"invalid_client"}`), false, "invalid_client", "answered 401"},
		"error in 200": {status(200, `{"error":"invalid_scope"}`), false, "invalid_scope", "answered 200"},
		"no code":      {status(400, `{"error":"`+testrig.TokenClientSecret+`"}`), false, "an error without a code", "answered 400"},
		"busy":         {status(400, `{"error":"temporarily_unavailable"}`), true, "temporarily_unavailable", "answered 400"},
		"down":         {status(503, "<html>"), true, "", "answered 503"},
		"too many":     {status(429, ""), true, "", "answered 429"},
		"not there":    {status(404, ""), false, "", "answered 404"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/token2", http.StatusTemporaryRedirect)
		},
			false, "", "answered 307; redirects are not followed"},
		"HTML":       {status(200, "<html>"), false, "", "answers without an access token"},
		"empty":      {status(200, "{}"), false, "", "answers without an access token"},
		"other type": {status(200, `{"access_token":"t","token_type":"mac"}`), false, "", "gives a token that is none for mail servers"},
		"control characters": {status(200, `{"access_token":"t\u0001auth=x","token_type":"bearer"}`), false, "",
			"gives a token that is none for mail servers"},
		"long token": {status(200, `{"access_token":"`+strings.Repeat("t", 9<<10)+`"}`), false, "", "gives a token that is none for mail servers"},
		"much":       {status(200, `{"access_token":"t"`+strings.Repeat(" ", 64<<10)+`}`), false, "", "answers with more than 65536 bytes"},
		"hangs":      {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, true, "", "does not answer: no answer within 2s"},
		"breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "{")
		}, true, "", "does not answer: the connection ended before an answer came"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(o *oauth.Options) { o.Timeout = 2 * time.Second })
			r.server.Answer(c.answer)
			e := r.fails(t, r.account())
			if e.Temporary != c.temporary || e.Code != c.code || e.Reason != c.reason {
				t.Errorf("%+v", e)
			}
			r.server.Answer(nil)
			r.want(t, "token-1", true) // nothing is remembered of it
		})
	}
}

// TestAddresses: an address inside is not connected to, with one text for all of them; http never.
func TestAddresses(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *oauth.Options) { o.Allow = nil })
	for _, url := range []string{r.server.URL, "https://localhost:1/", "https://169.254.169.254/", "https://missing.invalid/"} {
		a := r.account()
		a.TokenURL = url
		if e := r.fails(t, a); !e.Temporary || e.Reason != "does not answer: the address cannot be asked" {
			t.Errorf("%s: %+v", url, e)
		}
	}
	a := r.account()
	a.TokenURL = strings.Replace(a.TokenURL, "https", "http", 1)
	if e := r.fails(t, a); e.Temporary {
		t.Errorf("http: %+v", e)
	}
	if n := r.server.Asked(); n != 0 {
		t.Errorf("%d questions", n)
	}
}

// TestParameters: a server that takes the credentials in the form alone gets them there.
func TestParameters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.Answer(func(w http.ResponseWriter, req *http.Request) {
		if _, _, basic := req.BasicAuth(); basic {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if req.PostFormValue("client_secret") != testrig.TokenClientSecret || req.PostFormValue("scope") != "a b" {
			t.Errorf("form %v", req.PostForm)
		}
		_, _ = io.WriteString(w, `{"access_token":"t"}`)
	})
	a := r.account()
	a.Scope = "a b"
	if text, _, err := r.Token(t.Context(), a); text != "t" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
