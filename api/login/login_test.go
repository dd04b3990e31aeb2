package login_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api/login"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// TestSignIn: a person signs in, with PKCE, state and nonce, at the endpoints that discovery names.
func TestSignIn(t *testing.T) {
	t.Parallel()
	r := newRig(t, newHostile(t))
	if r.p.discoveries.Load() != 0 {
		t.Error("the provider was asked at the start")
	}
	if want := []login.Button{{Name: "company", Label: "Acme account"}}; !slices.Equal(r.Buttons(), want) {
		t.Errorf("buttons %+v", r.Buttons())
	}
	address, cookie := r.begin()
	u, _ := url.Parse(address)
	q := u.Query()
	for name, want := range map[string]string{"response_type": "code", "client_id": "fingerpost", "redirect_uri": callback,
		"scope": "openid email profile", "code_challenge_method": "S256"} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	if len(q.Get("state")) < 43 || len(q.Get("nonce")) < 43 || len(cookie) < 43 || strings.Contains(address, cookie) {
		t.Errorf("%s with cookie %s", address, cookie)
	}
	p, to, err := r.Finish(t.Context(), login.Callback{Login: "company", Query: r.p.signIn(t, address), Cookie: cookie})
	if err != nil || to != "/console/acme?tab=1" {
		t.Fatal(to, err)
	}
	if p.Login != "company" || p.Issuer != r.p.URL || p.ClientID != "fingerpost" || p.Subject != "ada" || p.Name != "Ada" ||
		p.Email != "ada@acme.example" || !slices.Equal(p.Claims.Values("groups"), []string{"ops"}) || len(p.Notes) > 0 {
		t.Errorf("%+v", p)
	}
	if r.p.userinfos.Load() != 0 {
		t.Error("userinfo was asked, and the ID token has all claims")
	}
}

// TestClientAuthentication: the client shows itself in a way that discovery names, and without a secret by PKCE alone.
func TestClientAuthentication(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		methods any
		secret  string
		want    string
	}{
		{nil, secret, "basic"},
		{[]string{"private_key_jwt", "client_secret_post", "client_secret_basic"}, secret, "basic"},
		{[]string{"private_key_jwt", "client_secret_post"}, secret, "post"},
		{nil, "", "public"},
		{[]string{"client_secret_basic"}, "", "public"},
	} {
		p := newHostile(t)
		if c.methods != nil {
			p.document["token_endpoint_auth_methods_supported"] = c.methods
		}
		r := newRig(t, p)
		r.secret.Store(&c.secret)
		r.signedIn()
		p.set(func() {
			if p.auth != c.want {
				t.Errorf("%+v: the client has shown itself as %s", c, p.auth)
			}
		})
	}
}

// TestRedirectURI: however the public address is written, the redirect URI is the one that people register.
func TestRedirectURI(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		publicURL: callback, publicURL + "/": callback, "https://Config.Acme.Example:443/": callback,
		"https://config.acme.example:80": "https://config.acme.example:80/console/login/company/callback",
		"http://127.0.0.1:8080":          "http://127.0.0.1:8080/console/login/company/callback",
		"http://127.0.0.1:80":            "http://127.0.0.1/console/login/company/callback",
		"https://[2001:db8::443]":        "https://[2001:db8::443]/console/login/company/callback",
	} {
		if got := login.RedirectURI(public, "company"); got != want {
			t.Errorf("%s gives %s, want %s", public, got, want)
		}
	}
}

// TestRedirectURIOfEdge: the provider sends a browser back to the edge at which it has begun.
func TestRedirectURIOfEdge(t *testing.T) {
	t.Parallel()
	r := newRigWith(t, newHostile(t), func(o *login.Options) { o.PublicURL = "" })
	address, _, err := r.Begin(t.Context(), login.Start{Login: "company", PublicURL: "https://fra1.example"})
	u, _ := url.Parse(address)
	if got := u.Query().Get("redirect_uri"); err != nil || got != "https://fra1.example/console/login/company/callback" {
		t.Errorf("the redirect URI is %s, %v", got, err)
	}
}

// TestFlowsAreBound: a callback counts once, within 10 minutes, with its state, for its login, in its browser.
func TestFlowsAreBound(t *testing.T) {
	t.Parallel()
	r := newRig(t, newHostile(t))
	r.declare(company(r.p.URL), func() catalog.Login { l := company(r.p.URL); l.Name = "other"; return l }())
	address, cookie := r.begin()
	_, stranger := r.begin()
	query := r.p.signIn(t, address)
	refused := func(name string, change url.Values, cookie string) {
		t.Helper()
		q := maps.Clone(query)
		maps.Copy(q, change)
		p, to, err := r.Finish(t.Context(), login.Callback{Login: name, Query: q, Cookie: cookie})
		wantError(t, err, http.StatusBadRequest, "Begin again")
		if p != nil || to != "" {
			t.Errorf("%v, to %q", p, to)
		}
	}
	refused("company", nil, "")
	refused("company", nil, stranger)
	refused("other", nil, cookie)
	refused("nothing", nil, cookie)
	refused("company", url.Values{"state": {"x"}}, cookie)
	refused("company", url.Values{"state": nil}, cookie)
	if r.p.tokens.Load() != 0 {
		t.Error("a code was redeemed")
	}
	if _, _, err := r.Finish(t.Context(), login.Callback{Login: "company", Query: query, Cookie: cookie}); err != nil {
		t.Fatal("after what strangers have tried: ", err)
	}
	refused("company", nil, cookie)

	address, cookie = r.begin()
	query = r.p.signIn(t, address)
	r.clock.Advance(10 * time.Minute)
	refused("company", nil, cookie)

	address, cookie = r.begin()
	query = r.p.signIn(t, address)
	refused("company", url.Values{"state": {query.Get("state"), "x"}}, cookie)
	refused("company", nil, cookie)
}

// TestFlowsFinishOnce: of many callbacks at once, one signs in.
func TestFlowsFinishOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, newHostile(t))
	address, cookie := r.begin()
	query := r.p.signIn(t, address)
	var done sync.WaitGroup
	good := make(chan *login.Person, 20)
	for range 20 {
		done.Go(func() {
			if p, _, err := r.Finish(t.Context(), login.Callback{Login: "company", Query: query, Cookie: cookie}); err == nil {
				good <- p
			}
		})
	}
	done.Wait()
	if len(good) != 1 || r.p.tokens.Load() != 1 {
		t.Errorf("%d sign-ins, %d codes redeemed", len(good), r.p.tokens.Load())
	}
}

// TestFlowsAreBounded: there are 10,000 flows. A peer that floods them, with addresses of one /64 too, ends flows of its own
// alone, the oldest first, and where peers have as many, the oldest of them ends.
func TestFlowsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, newHostile(t))
	type begun struct{ address, cookie string }
	from := func(peer string) (b begun) {
		t.Helper()
		var err error
		if b.address, b.cookie, err = r.Begin(t.Context(), login.Start{Login: "company", Peer: netip.MustParseAddr(peer)}); err != nil {
			t.Fatal(err)
		}
		return b
	}
	finish := func(b begun) error {
		_, _, err := r.Finish(t.Context(), login.Callback{Login: "company", Query: r.p.signIn(t, b.address), Cookie: b.cookie})
		return err
	}
	ada, bob := from("192.0.2.1"), from("2001:db8:1::1")
	first, second := from("2001:db8:2::1"), from("2001:db8:2::2")
	for i := range 9_999 {
		from(fmt.Sprintf("2001:db8:2::%x", i+1))
	}
	wantError(t, finish(first), http.StatusBadRequest, "Begin again")
	wantError(t, finish(second), http.StatusBadRequest, "Begin again")
	for _, b := range []begun{ada, bob, from("192.0.2.9"), from("2001:db8:2::1")} {
		if err := finish(b); err != nil {
			t.Error(err)
		}
	}
	if r.p.discoveries.Load() != 1 {
		t.Errorf("%d discoveries", r.p.discoveries.Load())
	}

	r = newRig(t, newHostile(t))
	first, second = from("10.0.0.0"), from("10.0.0.1")
	for i := range 9_999 {
		from(fmt.Sprintf("10.1.%d.%d", i/256, i%256))
	}
	wantError(t, finish(first), http.StatusBadRequest, "Begin again")
	if err := finish(second); err != nil {
		t.Error(err)
	}
}

// TestTabs: a browser has a flow in each of five tabs, whatever order they end in, and no callback counts with the flow of
// another one.
func TestTabs(t *testing.T) {
	t.Parallel()
	r := newRig(t, newHostile(t))
	other := company(r.p.URL)
	other.Name = "other"
	r.declare(company(r.p.URL), other)
	names := []string{"company", "other", "company", "company", "other", "company"}
	browser, queries := "", make([]url.Values, len(names))
	for i, name := range names {
		address, cookie, err := r.Begin(t.Context(), login.Start{Login: name})
		if err != nil {
			t.Fatal(err)
		}
		browser, queries[i] = login.AddFlow(browser, cookie), r.p.signIn(t, address)
	}
	if n := strings.Count(browser, "."); n != 4 {
		t.Fatalf("the browser keeps %q", browser)
	}
	kept := browser
	callback := func(i int, name string) error {
		cookie, rest := login.TakeFlow(kept, queries[i].Get("state"))
		kept = rest
		_, _, err := r.Finish(t.Context(), login.Callback{Login: name, Query: queries[i], Cookie: cookie})
		return err
	}
	wantError(t, callback(0, "company"), http.StatusBadRequest, "Begin again") // a sixth tab
	for _, i := range []int{4, 1, 5, 3} {
		if err := callback(i, names[i]); err != nil {
			t.Error(i, err)
		}
	}
	wantError(t, callback(2, "other"), http.StatusBadRequest, "Begin again") // mixed up
	if kept != "" {
		t.Errorf("the browser keeps %q", kept)
	}
	kept = browser
	for i := range names { // replayed
		if err := callback(i, names[i]); (err == nil) != (i == 2) {
			t.Error(i, err)
		}
	}
	for _, bad := range []string{"", ".", "x", strings.Repeat(".", 1000), strings.Repeat("x", 10_000)} {
		one, _, _ := strings.Cut(browser, ".")
		if got := login.AddFlow(bad, one); got != one {
			t.Errorf("%.20q becomes %.100q", bad, got)
		}
		if taken, rest := login.TakeFlow(bad, "state"); taken+rest != "" {
			t.Errorf("%.20q has %q and %q", bad, taken, rest)
		}
	}
	if taken, _ := login.TakeFlow(browser, ""); taken != "" {
		t.Errorf("without a state: %q", taken)
	}
}

// TestReturnTo: a sign-in goes on at a path of this service, or where the caller decides.
func TestReturnTo(t *testing.T) {
	t.Parallel()
	r := newRig(t, newHostile(t))
	f := func(to, want string) {
		t.Helper()
		address, cookie, err := r.Begin(t.Context(), login.Start{Login: "company", ReturnTo: to})
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := r.Finish(t.Context(), login.Callback{Login: "company", Query: r.p.signIn(t, address), Cookie: cookie}); err != nil || got != want {
			t.Errorf("%q leads to %q (%v), want %q", to, got, err, want)
		}
	}
	f("/console/projects?q=a%20b#c", "/console/projects?q=a%20b#c")
	f("/", "/")
	f("/"+strings.Repeat("x", 1023), "/"+strings.Repeat("x", 1023))
	for _, bad := range []string{"", "console/", "//evil.example", "///evil.example", `/\evil.example`, `/console\..\`, "https://evil.example/",
		"javascript:alert(1)", "/\t/evil.example", "/\n", " /", "/%zz", "/console/\x00", "/ä", "/" + strings.Repeat("x", 1024)} {
		f(bad, "")
	}
}

// FuzzReturnTo: whatever it is given, the desk returns a path of this service.
func FuzzReturnTo(f *testing.F) {
	for _, to := range []string{"/console/", "//evil.example", `/\evil`, "/..//evil.example", "/;@evil.example", "/?//"} {
		f.Add(to)
	}
	r := newRig(f, newHostile(f))
	base, _ := url.Parse(publicURL)
	f.Fuzz(func(t *testing.T, to string) {
		address, cookie, err := r.Begin(t.Context(), login.Start{Login: "company", ReturnTo: to})
		if err != nil {
			t.Fatal(err)
		}
		_, got, err := r.Finish(t.Context(), login.Callback{Login: "company", Query: r.p.signIn(t, address), Cookie: cookie})
		if err != nil || got != "" && got != to {
			t.Fatalf("%q leads to %q: %v", to, got, err)
		}
		u, err := base.Parse(got)
		if err != nil || u.Host != base.Host || u.Scheme != base.Scheme || strings.HasPrefix(got, "//") ||
			strings.ContainsAny(got, "\\\t\r\n") {
			t.Errorf("%q leads to %v: %v", got, u, err)
		}
	})
}

// TestChangedBlock: a callback counts for the block as it was at the begin.
func TestChangedBlock(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(l *catalog.Login){
		"issuer":    func(l *catalog.Login) { l.Issuer += "/" },
		"client id": func(l *catalog.Login) { l.ClientID = "another" },
		"name":      func(l *catalog.Login) { l.Name = "renamed" },
	} {
		r := newRig(t, newHostile(t))
		address, cookie := r.begin()
		l := company(r.p.URL)
		change(&l)
		r.declare(l)
		_, _, err := r.Finish(t.Context(), login.Callback{Login: "company", Query: r.p.signIn(t, address), Cookie: cookie})
		wantError(t, err, http.StatusBadRequest, "has changed")
		if r.p.tokens.Load() != 0 {
			t.Errorf("%s: the code was redeemed", name)
		}
	}
}

// TestCannotBegin: what is missing is told before a person goes to the provider.
func TestCannotBegin(t *testing.T) {
	t.Parallel()
	r := newRig(t, newHostile(t))
	_, _, err := r.Begin(t.Context(), login.Start{Login: "nothing", ReturnTo: "/"})
	wantError(t, err, http.StatusNotFound, "No login block")
	r.secret.Store(nil)
	_, _, err = r.Begin(t.Context(), login.Start{Login: "company", ReturnTo: "/"})
	wantError(t, err, http.StatusServiceUnavailable, "client_secret of the block cannot be opened")
	r.ca.Store(nil)
	good := secret
	r.secret.Store(&good)
	_, _, err = r.Begin(t.Context(), login.Start{Login: "company", ReturnTo: "/"})
	wantError(t, err, http.StatusServiceUnavailable, "ca_file cannot be read")
	if problem := r.Buttons()[0].Problem; !strings.Contains(problem, "ca_file") || strings.Contains(problem, "is gone") {
		t.Errorf("the button says %q", problem)
	}
	if log := r.log.String(); strings.Count(log, "the file is gone") != 2 {
		t.Errorf("the log has not each cause once: %s", log)
	}
	r.ca.Store(new([]byte))
	r.signedIn()
	if problem := r.Buttons()[0].Problem; problem != "" {
		t.Errorf("the button says %q", problem)
	}

	r = newRigWith(t, newHostile(t), func(o *login.Options) { o.PublicURL = "" })
	_, _, err = r.Begin(t.Context(), login.Start{Login: "company", ReturnTo: "/"})
	wantError(t, err, http.StatusServiceUnavailable, "--public-url")
	if problem := r.Buttons()[0].Problem; !strings.Contains(problem, "--public-url") {
		t.Errorf("the button says %q", problem)
	}
}

// TestProviderComesBack: a provider that is away stops nothing but sign-in, the button says so, and the first sign-in when
// it is back works.
func TestProviderComesBack(t *testing.T) {
	t.Parallel()
	p := newHostile(t)
	r := newRig(t, p)
	discovery := "/.well-known/openid-configuration"
	p.set(func() { p.handlers[discovery] = say(503, "") })
	for range 3 {
		_, _, err := r.Begin(t.Context(), login.Start{Login: "company", ReturnTo: "/"})
		wantError(t, err, http.StatusServiceUnavailable, "answered 503")
	}
	if problem := r.Buttons()[0].Problem; !strings.Contains(problem, "answered 503") {
		t.Errorf("the button says %q", problem)
	}
	if n := strings.Count(r.log.String(), "cannot be used for sign-in"); n != 1 {
		t.Errorf("one failure is logged %d times", n)
	}
	p.set(func() { delete(p.handlers, discovery) })
	r.signedIn()
	if problem := r.Buttons()[0].Problem; problem != "" {
		t.Errorf("the button says %q", problem)
	}
	if n := p.discoveries.Load(); n != 4 {
		t.Errorf("%d discoveries", n)
	}

	p.set(func() { p.handlers[discovery] = say(503, "") })
	r.clock.Advance(59 * time.Minute)
	r.signedIn()
	r.clock.Advance(time.Minute)
	_, _, err := r.Begin(t.Context(), login.Start{Login: "company", ReturnTo: "/"})
	wantError(t, err, http.StatusServiceUnavailable, "answered 503")
}

// TestOneDiscovery: people who begin at once wait for one discovery, and who leaves ends it for nobody.
func TestOneDiscovery(t *testing.T) {
	t.Parallel()
	p := newHostile(t)
	r := newRig(t, p)
	discovery, wait := "/.well-known/openid-configuration", make(chan struct{})
	p.set(func() {
		p.handlers[discovery] = func(w http.ResponseWriter, _ *http.Request) {
			<-wait
			p.set(func() { answer(w, 200, p.document) })
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, _, err := r.Begin(ctx, login.Start{Login: "company", ReturnTo: "/"})
		left <- err
	}()
	testrig.Eventually(t, "a discovery", func() bool { return p.discoveries.Load() == 1 })
	leave()
	wantError(t, <-left, http.StatusServiceUnavailable, "the wait has ended")
	var done sync.WaitGroup
	for range 20 {
		done.Go(func() {
			if _, _, err := r.Begin(t.Context(), login.Start{Login: "company", ReturnTo: "/"}); err != nil {
				t.Error(err)
			}
		})
	}
	close(wait)
	done.Wait()
	if n := p.discoveries.Load(); n != 1 {
		t.Errorf("%d discoveries", n)
	}
}

// TestOneProviderAway: a provider that hangs delays no sign-in at another one.
func TestOneProviderAway(t *testing.T) {
	t.Parallel()
	slow := newHostile(t)
	slow.handlers["/.well-known/openid-configuration"] = hang
	r := newRig(t, newHostile(t))
	away := company(slow.URL)
	away.Name = "away"
	r.declare(away, company(r.p.URL))
	ctx, leave := context.WithCancel(t.Context())
	var done sync.WaitGroup
	for range 50 {
		done.Go(func() { _, _, _ = r.Begin(ctx, login.Start{Login: "away", ReturnTo: "/"}) })
	}
	testrig.Eventually(t, "a discovery", func() bool { return slow.discoveries.Load() == 1 })
	r.signedIn()
	leave()
	done.Wait()
}

// TestOwnAuthority: the certificate of ca_file is trusted, no other one, and a new file counts with the next sign-in.
func TestOwnAuthority(t *testing.T) {
	t.Parallel()
	p := newHostile(t)
	p.Server.Close()
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail
	p.StartTLS()
	p.begin(t)
	r := newRig(t, p)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	foreign := []byte("-----BEGIN CERTIFICATE-----\n")
	for _, c := range []struct {
		ca   []byte
		want string
	}{{nil, "not trusted"}, {foreign, "no certificate in PEM"}, {own, ""}, {nil, "not trusted"}} {
		r.ca.Store(&c.ca)
		_, _, err := r.Begin(t.Context(), login.Start{Login: "company", ReturnTo: "/"})
		if c.want != "" {
			wantError(t, err, http.StatusServiceUnavailable, c.want)
			continue
		}
		r.signedIn()
	}
}

// TestSignOut: sign-out goes to the page that discovery names, with a token that is not too long for an address.
func TestSignOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, newHostile(t))
	u, err := url.Parse(r.signedIn().SignOut)
	if err != nil || !strings.HasPrefix(u.String(), r.p.URL+"/logout?") || u.Query().Get("a") != "b" ||
		u.Query().Get("client_id") != "fingerpost" || !strings.HasPrefix(u.Query().Get("id_token_hint"), "eyJ") {
		t.Errorf("sign-out goes to %v", u)
	}
	r.p.set(func() { r.p.claims["groups"] = slices.Repeat([]string{"ops"}, 1000) })
	if u, _ := url.Parse(r.signedIn().SignOut); u.Query().Has("id_token_hint") || u.Query().Get("client_id") == "" {
		t.Errorf("sign-out goes to %v", u)
	}
	p := newHostile(t)
	delete(p.document, "end_session_endpoint")
	r = newRig(t, p)
	if to := r.signedIn().SignOut; to != "" {
		t.Errorf("sign-out goes to %v", to)
	}
}
