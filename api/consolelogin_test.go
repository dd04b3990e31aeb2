package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fingerpost/api"
	"fingerpost/api/console"
	"fingerpost/api/login"
	"fingerpost/resolver/catalog"
)

// A deskOfTests stands in for the providers: the code of a callback is the person, or the error.
type deskOfTests struct {
	people map[string]*login.Person
	faults sync.Map // the errors of codes
	began  atomic.Int64
	open   sync.Map // where flows return to, by state
}

func (d *deskOfTests) Buttons() []login.Button {
	return []login.Button{{Name: "company", Label: "Acme account"}, {Name: "other", Label: "Other", Problem: "It is away."}}
}

// flowOf is what binds the flow with a state to its browser.
func flowOf(state string) string { return state + strings.Repeat("s", 43) }

func (d *deskOfTests) Begin(_ context.Context, s login.Start) (address, cookie string, err error) {
	if s.Login != "company" {
		return "", "", &login.Error{Status: 503, Message: "the provider does not answer", Hint: "try again in a moment"}
	}
	state := fmt.Sprintf("flow%04d", d.began.Add(1))
	d.open.Store(state, strings.Clone(s.ReturnTo)) // the request's memory is used again
	return "https://login.acme.example/authorize?state=" + state, flowOf(state), nil
}

func (d *deskOfTests) Finish(_ context.Context, c login.Callback) (*login.Person, string, error) {
	code, state := c.Query.Get("code"), c.Query.Get("state")
	if err, found := d.faults.Load(code); found {
		return nil, "", err.(error)
	}
	if p := d.people[code]; p != nil && c.Login == "company" && c.Cookie == flowOf(state) {
		if to, open := d.open.LoadAndDelete(state); open {
			return p, to.(string), nil
		}
	}
	return nil, "", &login.Error{Status: 400, Message: "this sign-in was not begun in this browser"}
}

func somebody(subject string, claims catalog.Claims) *login.Person {
	return &login.Person{Login: "company", Issuer: issuerOfTests, ClientID: "fingerpost", Subject: subject, Name: "Ada Lovelace",
		Email: "ada@acme.example", Claims: claims}
}

// companyLogin is a login with a rule for the group ops and one for whom may read acme alone.
func companyLogin() *catalog.Declared {
	return &catalog.Declared{Logins: []catalog.Login{{Name: "company", UUID: catalog.DeriveLoginUUID("company"), Issuer: issuerOfTests,
		ClientID: "fingerpost", Rules: []catalog.LoginRule{
			{Claim: "groups", Value: "ops", Allow: catalog.MayAll},
			{Claim: "groups", Value: "shop", Allow: catalog.MayRead, Projects: []string{"acme"}},
			{Claim: "groups", Value: "mailers", Allow: catalog.MayMail},
		}}}}
}

// A loginRig is a server with a console at which people sign in, and a browser.
type loginRig struct {
	*linkRig
	desk   *deskOfTests
	cookie string // of the session
}

func newLoginRig(t *testing.T, change ...func(*console.SignIn)) *loginRig {
	t.Helper()
	ada := somebody("ada", catalog.Claims{"groups": []any{"ops"}})
	ada.SignOut = "https://login.acme.example/logout?id=1"
	r := &loginRig{desk: &deskOfTests{people: map[string]*login.Person{
		"ops":  ada,
		"shop": somebody("bob", catalog.Claims{"groups": []any{"shop"}, "sub": "bob"}),
		"mail": somebody("mia", catalog.Claims{"groups": "mailers"}),
		"none": somebody("eve", catalog.Claims{"groups": []any{"/ops"}, "email": "eve@evil.example", "nonce": "n"}),
	}}}
	h := start(t, func(o *api.Options) {
		s := console.SignIn{Desk: r.desk, PublicURL: "http://127.0.0.1:1", Domain: "config.example", Declared: o.Resolver.Logins}
		for _, c := range change {
			c(&s)
		}
		o.Console = &console.Options{SignIn: s}
	})
	h.apply("login.hcl", companyLogin())
	h.addr = h.listen(api.Platform | api.Mail | api.Console)
	r.linkRig = newBrowser(h)
	return r
}

// as signs somebody in, and keeps the session's cookie.
func (r *loginRig) as(code string) *http.Response {
	r.t.Helper()
	begun := r.send("/console/login/company?to=/console/projects", nil)
	state, found := strings.CutPrefix(begun.Header.Get("Location"), "https://login.acme.example/authorize?state=")
	if begun.StatusCode != http.StatusSeeOther || !found {
		r.t.Fatalf("the start: %d, %v", begun.StatusCode, begun.Header)
	}
	flow := begun.Cookies()[0]
	if !flow.HttpOnly || flow.SameSite != http.SameSiteLaxMode || flow.MaxAge != 600 {
		r.t.Errorf("the flow's cookie is %v", flow)
	}
	res := r.send("/console/login/company/callback?state="+state+"&code="+code, nil, "Cookie", flow.Name+"="+flow.Value)
	for _, c := range res.Cookies() {
		if c.Name == flow.Name {
			if c.MaxAge >= 0 {
				r.t.Errorf("the flow's cookie stays: %v", c)
			}
			continue
		}
		if r.cookie = c.Name + "=" + c.Value; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
			r.t.Errorf("the session's cookie is %v", c)
		}
	}
	return res
}

// open asks for a page of the session.
func (r *loginRig) open(path string) *http.Response {
	r.t.Helper()
	return r.send(path, nil, "Cookie", r.cookie)
}

// A person signs in at a provider, sees by the rules of this moment, and signs out by the provider's page.
func TestConsoleLogin(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	r.send("/console/sign-in?to=/console/projects", nil)
	for _, want := range []string{`href="/console/login/company?to=%2Fconsole%2Fprojects">Sign in with Acme account`, "It is away.", `id="key"`} {
		if !strings.Contains(r.page, want) {
			t.Errorf("the sign-in page lacks %q:\n%s", want, r.page)
		}
	}
	res := r.as("shop")
	if res.StatusCode != http.StatusOK || res.Header.Get("Refresh") != "0;url=/console/projects" || res.Header.Get("Location") != "" {
		t.Fatalf("the callback: %d, %v", res.StatusCode, res.Header)
	}
	if r.open("/console/projects"); !strings.Contains(r.page, "Acme Shop") || strings.Contains(r.page, "Globex") ||
		!strings.Contains(r.page, "Ada Lovelace") || !strings.Contains(r.page, `login <span class="mono">company`) {
		t.Errorf("whom a rule lets read one project sees:\n%s", r.page)
	}
	if r.open("/console/sessions"); !strings.Contains(r.page, "login company") {
		t.Errorf("the sessions:\n%s", r.page)
	}
	// The rules are those of now.
	d := companyLogin()
	d.Logins[0].Rules[1].Projects = []string{"globex"}
	r.apply("login.hcl", d)
	if r.open("/console/projects"); strings.Contains(r.page, "Acme Shop") || !strings.Contains(r.page, "Globex") {
		t.Errorf("after the rule changed:\n%s", r.page)
	}
	d.Logins[0].Rules = d.Logins[0].Rules[:1]
	r.apply("login.hcl", d)
	if res := r.open("/console/projects"); res.StatusCode != http.StatusSeeOther || !strings.Contains(res.Header.Get("Location"), "why=rules") {
		t.Errorf("after the rule went: %d, %v", res.StatusCode, res.Header)
	}
	if r.send("/console/sign-in?why=rules", nil); !strings.Contains(r.page, "do not let you in any more") {
		t.Error(r.page)
	}
	r.apply("login.hcl", companyLogin())
	if res := r.open("/console/projects"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("a session that has ended is back with its rule: %d", res.StatusCode)
	}

	r.as("ops")
	r.open("/console/keys")
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(r.page)
	if token == nil {
		t.Fatalf("as ops:\n%s", r.page)
	}
	out := r.send("/console/sign-out", url.Values{"token": token[1:]}, "Cookie", r.cookie)
	if out.StatusCode != http.StatusOK || out.Header.Get("Refresh") != "0;url=https://login.acme.example/logout?id=1" {
		t.Errorf("sign-out: %d, %v", out.StatusCode, out.Header)
	}
	if res := r.open("/console/keys"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("after signing out: %d", res.StatusCode)
	}
	for _, changed := range []func(l *catalog.Login){
		func(l *catalog.Login) { l.Issuer = "https://other.example" }, func(l *catalog.Login) { l.ClientID = "other" },
		func(l *catalog.Login) { l.Name, l.UUID = "else", catalog.DeriveLoginUUID("else") },
	} {
		r.as("ops")
		d := companyLogin()
		changed(&d.Logins[0])
		r.apply("login.hcl", d)
		r.apply("login.hcl", companyLogin())
		if res := r.open("/console/keys"); res.StatusCode != http.StatusSeeOther {
			t.Errorf("with %v for a while: %d", d.Logins[0], res.StatusCode)
		}
	}
}

// Each failure has its status and its words, and none is counted against a good sign-in.
func TestConsoleLoginFails(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	for status, err := range map[int]error{
		400: &login.Error{Status: 400, Message: "the sign-in has run out"}, 403: &login.Error{Status: 403, Message: "the provider refuses"},
		502: &login.Error{Status: 502, Message: "the token is not good", Hint: "the clock may be wrong"},
		503: &login.Error{Status: 503, Message: "the provider is away"},
	} {
		code := fmt.Sprint("fault", status)
		r.desk.faults.Store(code, err)
		for range 40 {
			res := r.as(code)
			words := err.(*login.Error).Message[4:]
			if res.StatusCode != status || !strings.Contains(r.page, words) || r.cookie != "" {
				t.Fatalf("%d: %d, cookie %q\n%s", status, res.StatusCode, r.cookie, r.page)
			}
		}
	}
	r.desk.faults.Store("odd", errors.New("canary of the inside"))
	if res := r.as("odd"); res.StatusCode != http.StatusBadGateway || strings.Contains(r.page, "canary") {
		t.Errorf("an unknown error: %d\n%s", res.StatusCode, r.page)
	}
	if res := r.send("/console/login/other", nil); res.StatusCode != 503 || !strings.Contains(r.page, "Try again in a moment") {
		t.Errorf("a provider that is away: %d\n%s", res.StatusCode, r.page)
	}
	begun := r.send("/console/login/company", nil)
	_, state, _ := strings.Cut(begun.Header.Get("Location"), "state=")
	flow := begun.Cookies()[0].Value
	for _, cookies := range []string{"", "fingerpost-login=wrong", "fingerpost-login=" + flow + "; fingerpost-login=x"} {
		if res := r.send("/console/login/company/callback?state="+state+"&code=ops", nil, "Cookie", cookies); res.StatusCode != 400 {
			t.Errorf("with the cookies %q: %d", cookies, res.StatusCode)
		}
	}

	if res := r.as("none"); res.StatusCode != http.StatusForbidden || r.cookie != "" {
		t.Fatalf("without a rule: %d, %q", res.StatusCode, r.cookie)
	}
	for _, want := range []string{"no rule of the login", "eve@evil.example", `[&#34;/ops&#34;]`, ">ops<", ">shop<"} {
		if !strings.Contains(r.page, want) {
			t.Errorf("the page lacks %q:\n%s", want, r.page)
		}
	}
	if strings.Contains(r.page, "nonce") || strings.Contains(r.page, "globex") || strings.Contains(r.log.String(), "evil.example") {
		t.Errorf("too much is told:\n%s\n%s", r.page, r.log.String())
	}
	if res := r.as("mail"); res.StatusCode != http.StatusForbidden || !strings.Contains(r.page, "none of them lets you read") {
		t.Errorf("with a rule, and without read: %d\n%s", res.StatusCode, r.page)
	}
	if res := r.send(signIn, url.Values{"key": {r.all}}); res.StatusCode != http.StatusSeeOther {
		t.Errorf("a good key after all this: %d", res.StatusCode)
	}
	if res := r.as("ops"); res.StatusCode != http.StatusOK {
		t.Errorf("a good sign-in after all this: %d", res.StatusCode)
	}
}

// The scheme of the public address decides on the cookies where another program ends TLS, but for browsers on this machine.
func TestConsoleLoginCookies(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, func(s *console.SignIn) { s.PublicURL = "https://config.acme.example" })
	header := []string{"Host", "config.acme.example"}
	begun := r.send("/console/login/company?to=https://evil.example/", nil, header...)
	flow := begun.Cookies()[0]
	if flow.Name != "__Host-fingerpost-login" || !flow.Secure || flow.Path != "/" || flow.Domain != "" {
		t.Errorf("the flow's cookie: %v", flow)
	}
	_, state, _ := strings.Cut(begun.Header.Get("Location"), "state=")
	res := r.send("/console/login/company/callback?state="+state+"&code=ops", nil, append(header, "Cookie", flow.Name+"="+flow.Value)...)
	if res.Header.Get("Refresh") != "0;url=/console/" {
		t.Errorf("another site was asked for: %v", res.Header)
	}
	session := res.Cookies()[1]
	if session.Name != "__Host-fingerpost" || !session.Secure || session.Path != "/" {
		t.Errorf("the session's cookie: %v", session)
	}
	if res := r.send("/console/keys", nil, append(header, "Cookie", session.Name+"="+session.Value)...); res.StatusCode != 200 {
		t.Errorf("the session: %d", res.StatusCode)
	}
	if res := r.send("/console/keys", nil, append(header, "Cookie", "fingerpost="+session.Value)...); res.StatusCode != 303 {
		t.Errorf("the session's cookie without its prefix: %d", res.StatusCode)
	}
	local := r.send("/console/login/company", nil)
	if c := local.Cookies()[0]; c.Name != "fingerpost-login" || c.Secure {
		t.Errorf("on this machine: %v", c)
	}
}

// What is missing for a sign-in at a provider is said in words, and keys can be left out.
func TestConsoleLoginOff(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, func(s *console.SignIn) { s.PublicURL = "" })
	if r.send(signIn, nil); !strings.Contains(r.page, "start it with --public-url") || strings.Contains(r.page, "/console/login/") {
		t.Errorf("without a public address:\n%s", r.page)
	}
	r = newLoginRig(t, func(s *console.SignIn) { s.KeysOff = true })
	if r.send(signIn, nil); strings.Contains(r.page, `id="key"`) || !strings.Contains(r.page, "/console/login/company") {
		t.Errorf("without keys:\n%s", r.page)
	}
	if res := r.send(signIn, url.Values{"key": {r.all}}); res.StatusCode != http.StatusForbidden ||
		!strings.Contains(r.page, "Keys do not sign in") {
		t.Errorf("a key: %d\n%s", res.StatusCode, r.page)
	}
	if res := r.send(signIn, url.Values{"link": {r.secret()}}); res.StatusCode != http.StatusSeeOther {
		t.Errorf("a link: %d\n%s", res.StatusCode, r.page)
	}
}

// A person who begins in a second tab finishes in both, in each once. Another browser finishes in none.
func TestConsoleLoginTabs(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	var states []string
	cookie := ""
	for _, page := range []string{"/console/projects", "/console/keys"} {
		begun := r.send("/console/login/company?to="+page, nil, "Cookie", cookie)
		_, state, _ := strings.Cut(begun.Header.Get("Location"), "state=")
		states, cookie = append(states, state), "fingerpost-login="+begun.Cookies()[0].Value
	}
	before := cookie
	callback := func(tab int, cookie string) *http.Response {
		t.Helper()
		return r.send("/console/login/company/callback?code=ops&state="+states[tab], nil, "Cookie", cookie)
	}
	for _, stranger := range []string{"", "fingerpost-login=" + flowOf("flow9999"), "fingerpost-login=" + flowOf("flow9999") + "." + flowOf("flow9998")} {
		if res := callback(0, stranger); res.StatusCode != http.StatusBadRequest {
			t.Errorf("with %q: %d", stranger, res.StatusCode)
		}
	}
	if res := callback(0, "fingerpost-login="+flowOf(states[1])); res.StatusCode != http.StatusBadRequest {
		t.Errorf("with the flow of the other tab: %d", res.StatusCode)
	}
	for tab, page := range []string{"/console/projects", "/console/keys"} {
		res := callback(tab, cookie)
		if res.StatusCode != http.StatusOK || res.Header.Get("Refresh") != "0;url="+page {
			t.Errorf("tab %d: %d, %v", tab, res.StatusCode, res.Header)
		}
		cookie = "fingerpost-login=" + res.Cookies()[0].Value
	}
	if cookie != "fingerpost-login=" {
		t.Errorf("the browser keeps %q", cookie)
	}
	for tab := range states {
		if res := callback(tab, before); res.StatusCode != http.StatusBadRequest {
			t.Errorf("tab %d again: %d", tab, res.StatusCode)
		}
	}
}

// A person has twenty sessions, the oldest ends, and others notice nothing of it.
func TestConsoleLoginMany(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	r.as("ops")
	ada := r.cookie
	r.as("shop")
	first := r.cookie
	for range 20 {
		r.as("shop")
	}
	if res := r.open("/console/projects"); res.StatusCode != 200 {
		t.Errorf("the newest: %d", res.StatusCode)
	}
	if r.cookie = first; r.open("/console/projects").StatusCode != http.StatusSeeOther {
		t.Error("the oldest session of 21 goes on")
	}
	if r.cookie = ada; r.open("/console/projects").StatusCode != 200 {
		t.Error("another person's session has ended")
	}
}
