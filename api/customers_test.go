package api_test

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/api/console"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
)

// A customerRig is a server with its console, and a person who is signed in.
type customerRig struct {
	*desk
	t      *testing.T
	script *script
	url    string
	cookie string // of the person
}

const twoShops = `project "acme" {
  name   = "Acme Secret Name"
  status = "ACTIVE"
  domain "shop.acme.example" {}
  domain "other.acme.example" {}
}
`

func newCustomerRig(t *testing.T) *customerRig {
	s := &script{}
	r := &customerRig{desk: &desk{dir: t.TempDir(), verifier: s, console: &console.Options{}}, t: t, script: s}
	r.open(t, map[string]string{"acme.hcl": twoShops, "globex.hcl": "project \"globex\" {\n  name = \"Globex\"\n}\n"})
	r.url = "http://" + r.listen(api.Platform|api.Mail|api.Console)
	res, _ := r.visit("POST", "/console/sign-in", "", url.Values{"key": {r.key}})
	for _, c := range res.Cookies() {
		if c.Name == "fingerpost" {
			r.cookie = c.Name + "=" + c.Value
		}
	}
	if r.cookie == "" {
		t.Fatalf("sign in: %d", res.StatusCode)
	}
	return r
}

// visit opens a page, and follows no redirect.
func (r *customerRig) visit(method, path, cookie string, form url.Values, headers ...string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		r.t.Fatal(err)
	}
	if method == "POST" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res, string(body)
}

var sharedLink = regexp.MustCompile(`/console/domain/[A-Za-z0-9_-]+`)

// link makes a link to shop.acme.example as a person does.
func (r *customerRig) link() string {
	r.t.Helper()
	_, page := r.visit("GET", acmeDomainPage(), r.cookie, nil)
	link := sharedLink.FindString(page)
	if link == "" {
		r.t.Fatalf("no link on %s", page)
	}
	return link
}

func (r *customerRig) opens(link string, want int) string {
	r.t.Helper()
	res, page := r.visit("GET", link, "", nil)
	if res.StatusCode != want {
		r.t.Errorf("%s: %d, want %d: %s", link, res.StatusCode, want, page)
	}
	if h := res.Header; h.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(h.Get("X-Robots-Tag"), "noindex") ||
		h.Get("Cache-Control") != "no-store" || len(res.Cookies()) > 0 {
		r.t.Errorf("%s: %v", link, h)
	}
	return page
}

// A customer sees the domain and nothing else of the project, and nothing leads further.
func TestCustomerLink(t *testing.T) {
	t.Parallel()
	r := newCustomerRig(t)
	at := catalog.JSONMoment{Time: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}
	r.script.set(func() {
		r.script.answer = &catalog.VerificationView{Ownership: catalog.OwnershipView{State: dcv.Pending}, Pointing: catalog.PointingView{State: dcv.Unknown},
			Certificate: catalog.CertificateView{State: dcv.Unknown}, CheckedAt: &at,
			Records: []catalog.RecordView{{Purpose: "ownership", Type: "TXT", Name: "_x.shop.acme.example", Value: "token=abc"}}}
	})
	link := r.link()
	page := r.opens(link, 200)
	for _, want := range []string{"shop.acme.example", "token=abc", "Not proven yet", "Check now", `name="robots" content="noindex`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	for _, no := range []string{"Secret", "other.acme", "/console/projects", "/console/lookup", "/console/\"", "/docs/", "acme.hcl", "name=\"token\""} {
		if strings.Contains(page, no) {
			t.Errorf("the page has %q: %s", no, page)
		}
	}
	// A cookie of a session, good or not, changes nothing.
	for _, cookie := range []string{r.cookie, "fingerpost=stolen"} {
		if _, with := r.visit("GET", link, cookie, nil); with != page {
			t.Errorf("with a cookie: %s", with)
		}
	}
	// The link is no session, and opens no other page.
	for _, path := range []string{"/console/", acmeDomainPage(), "/console/projects/acme", link + "/edit"} {
		if res, _ := r.visit("GET", path, "", nil); res.StatusCode == 200 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	if res, _ := r.visit("HEAD", link, "", nil); res.StatusCode != 200 {
		t.Errorf("HEAD: %d", res.StatusCode)
	}
}

// A flood of checks, by several links of the domain, makes one check in 30 s. Another site's form makes none.
func TestCustomerChecks(t *testing.T) {
	t.Parallel()
	r := newCustomerRig(t)
	link := r.link()
	if res, _ := r.visit("POST", link, "", nil, "Sec-Fetch-Site", "cross-site"); res.StatusCode != 403 || r.script.made() != 0 {
		t.Errorf("another site's form: %d, %d checks", res.StatusCode, r.script.made())
	}
	var links []string
	for range 20 {
		links = append(links, r.link())
	}
	began := time.Now()
	res, _ := r.visit("POST", link, "", nil)
	if res.StatusCode != 303 || res.Header.Get("Location") != link || r.script.made() != 1 {
		t.Fatalf("a check: %d to %q, %d checks", res.StatusCode, res.Header.Get("Location"), r.script.made())
	}
	for _, other := range links {
		res, page := r.visit("POST", other, "", nil)
		if time.Since(began) > 30*time.Second { // the machine is busy, and the next check is allowed
			break
		}
		if res.StatusCode != 429 || res.Header.Get("Retry-After") == "" || !strings.Contains(page, "was checked a moment ago") ||
			!strings.Contains(page, `href="/console/domain/`) {
			t.Fatalf("at once again: %d %v", res.StatusCode, res.Header)
		}
	}
	if made := r.script.made(); made > 1+int(time.Since(began)/(30*time.Second)) {
		t.Errorf("%d checks were made in %v", made, time.Since(began))
	}
	if res, _ := r.visit("POST", link, "", url.Values{"x": {strings.Repeat("a", 5000)}}); res.StatusCode < 400 {
		t.Errorf("a large form: %d", res.StatusCode)
	}
}

// A link ends with its week, with all links, and while the domain is not the project's. One of another key, or a changed
// one, opens nothing.
func TestCustomerLinkEnds(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	r := newCustomerRig(t)
	of := signedlink.Domain{Project: catalog.DeriveProjectUUID("acme"), Name: "shop.acme.example"}
	links := signedlink.NewCustomers(r.resolver)
	made := func(of signedlink.Domain, at time.Time) string {
		t.Helper()
		link, err := links.Make(of, at)
		if err != nil {
			t.Fatal(err)
		}
		return "/console/domain/" + link
	}
	old := made(of, time.Now().Add(-signedlink.CustomerLife))
	if page := r.opens(old, 404); !strings.Contains(page, "This link has ended") || strings.Contains(page, "shop.acme") {
		t.Errorf("an old link: %s", page)
	}
	r.opens(made(signedlink.Domain{Project: catalog.DeriveProjectUUID("globex"), Name: of.Name}, time.Now()), 404)
	r.opens(made(signedlink.Domain{Project: of.Project, Name: "none.example"}, time.Now()), 404)

	link := r.link()
	r.opens(link, 200)
	rewrite := func(file, text string, want int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.source.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.opens(link, want)
		if want == 404 {
			if res, _ := r.visit("POST", link, "", nil); res.StatusCode != 404 {
				t.Errorf("a check: %d", res.StatusCode)
			}
		}
	}
	renamed := strings.Replace(twoShops, "shop.acme", "store.acme", 1)
	rewrite("acme.hcl", renamed, 404)
	rewrite("globex.hcl", "project \"globex\" {\n  name = \"Globex\"\n  domain \"shop.acme.example\" {}\n}\n", 404) // it has moved
	rewrite("globex.hcl", "project \"globex\" {\n  name = \"Globex\"\n}\n", 404)
	rewrite("acme.hcl", twoShops, 200)
	if r.script.made() != 0 {
		t.Errorf("%d checks of a domain that was not there", r.script.made())
	}

	_, page := r.visit("GET", acmeDomainPage(), r.cookie, nil)
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(page)[1]
	if res, _ := r.visit("POST", "/console/domain-links", "", nil); res.StatusCode != 303 || res.Header.Get("Location") == acmeDomainPage() {
		t.Errorf("end all without a session: %d", res.StatusCode)
	}
	r.opens(link, 200)
	res, _ := r.visit("POST", "/console/domain-links", r.cookie, url.Values{"token": {token}, "to": {"//evil.example/"}})
	if res.StatusCode != 303 || res.Header.Get("Location") != "/console/" {
		t.Errorf("end all: %d to %q", res.StatusCode, res.Header.Get("Location"))
	}
	r.opens(link, 404)
	r.opens(old, 404)
	r.opens(r.link(), 200)
	trail, err := r.resolver.Audit(catalog.AuditQuery{Action: catalog.AuditEndLinks, Limit: 10})
	if err != nil || trail.Total != 1 {
		t.Fatalf("the audit trail: %+v, %v", trail, err)
	}
	if e := trail.Entries[0]; e.Door != catalog.DoorConsole || e.Key == "" || e.Actor != e.Key || e.ProjectID != 0 || len(e.Changes) > 0 {
		t.Errorf("the audit trail has %+v", e)
	}
	if _, page := r.visit("GET", "/console/changes", r.cookie, nil); !strings.Contains(page, "ended the links of all customers") {
		t.Errorf("the page of changes: %s", page)
	}
}

// Guesses are throttled like bad keys, and good links are opened all the same.
func TestCustomerLinkGuesses(t *testing.T) {
	t.Parallel()
	r := newCustomerRig(t)
	link := r.link()
	last := link[len(link)-1:]
	guess := strings.TrimSuffix(link, last) + map[bool]string{true: "B", false: "A"}[last == "A"]
	status := 0
	for deadline := time.Now().Add(testrig.Patience); status != 429 && time.Now().Before(deadline); {
		res, page := r.visit("GET", guess, "", nil)
		if status = res.StatusCode; status != 404 && status != 429 || strings.Contains(page, "acme") {
			t.Fatalf("a guess: %d %s", status, page)
		}
	}
	if status != 429 {
		t.Error("guesses are not throttled")
	}
	r.opens(link, 200)
}

// A server without a Verifier, and an edge, have no such page.
func TestCustomerLinkOff(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*api.Options){
		"no verifier": func(*api.Options) {},
		"edge":        func(o *api.Options) { o.Config.Verifier, o.Cluster.Edge = &script{}, &standIn{} },
	} {
		h := start(t, func(o *api.Options) { o.Console = &console.Options{}; change(o) })
		r := &customerRig{desk: &desk{house: h}, t: t, url: "http://" + h.listen(api.Console)}
		link, err := signedlink.NewCustomers(h.resolver).Make(signedlink.Domain{Project: catalog.DeriveProjectUUID("acme"), Name: "shop.acme.example"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if res, page := r.visit("GET", "/console/domain/"+link, "", nil); res.StatusCode == 200 || strings.Contains(page, "shop.acme") {
			t.Errorf("%s: %d %s", name, res.StatusCode, page)
		}
	}
}
