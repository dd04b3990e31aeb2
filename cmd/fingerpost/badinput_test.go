package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// TestBadInput goes through everything malformed that a client can send: each gets the error of api/README.md, Errors,
// and afterwards the files, the answers and the process are as they were.
func TestBadInput(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := newRig(t, nil)
	before := r.footprint()
	group := func(name string, f func(*rig)) {
		t.Run(name, func(t *testing.T) {
			mine := *r
			mine.t = t
			f(&mine)
			mine.unchanged(before)
		})
	}
	group("domains", badDomains)
	group("good domains", goodDomains)
	group("forms", badForms)
	group("order of errors", errorOrder)
	group("routes", badRoutes)
	group("methods", badMethods)
	group("request ids", requestIDs)
	group("framing", badFraming)
	group("keys", badKeys)
	group("rights", badRights)
	group("throttling", throttling)
	group("lists", badLists)
	group("ids", badIDs)
	group("conditions", etags)
	group("batch bodies", badBatches)
	group("batch answers", batchAnswers)
	for line := range strings.Lines(r.logged()) {
		if !json.Valid([]byte(line)) || catalog.KeyPattern.MatchString(line) || strings.Contains(line, "panic") || strings.Contains(line, `"status":500`) {
			t.Errorf("a line of the log: %s", cutMiddle(line, 500))
		}
	}
}

// long makes a name of the given number of octets from labels of at most 49.
func long(octets int) string {
	s := strings.Repeat(strings.Repeat("a", 49)+".", octets/50+1)[:octets]
	return strings.TrimSuffix(s, ".") + strings.Repeat("a", octets-len(strings.TrimSuffix(s, ".")))
}

// badDomains: raw query values, each with its error.
func badDomains(r *rig) {
	bad := func(why string, values ...string) {
		r.t.Helper()
		for _, v := range values {
			refused(r.t, why+": domain="+cutMiddle(v, 80), r.get(resolvePath+v), 400, "VALIDATION_ERROR", "domain")
		}
	}
	bad("empty", "", "%20", "+")
	bad("only dots", ".", "..", "...", "%2e", "%2E%2e")
	bad("empty label", "a..b", ".shop.acme.example", "shop..acme.example", "shop.acme.example..", "shop.acme.example..:80", "%E3%80%82shop.acme.example")
	bad("too long", long(254), long(300), long(254)+".", long(300)+":80", long(6000), strings.Repeat("a.", 126)+"ab")
	bad("label too long", strings.Repeat("a", 64)+".example", "a."+strings.Repeat("b", 64), strings.Repeat("%C3%BC", 60)+".example")
	bad("control byte", "%00", "shop.acme.example%00", "shop%00.acme.example", "%00shop.acme.example", "shop%01.acme.example",
		"shop.acme.example%0a", "shop.acme.example%0d%0aX-Evil:%201", "shop%09.acme.example", "shop%1b.acme.example", "shop%7f.acme.example", "shop%C2%85.acme.example")
	bad("bad escape", "%zz", "shop.acme.example%", "shop.acme.example%2", "%shop.acme.example", "shop%u002eacme.example", "shop.acme.example%G0")
	bad("invalid UTF-8", "%ff", "shop%c3.acme.example", "%c3%28.example", "shop%c0%aeacme.example", "%ed%a0%80.example", "%f4%90%80%80.example", "%EF%BF%BD.example", "%EF%BF%BF.example")
	bad("IPv4", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.", "1.2.3.4", "255.255.255.255", "0.0.0.0", "127.1", "127.0.1", "2130706433",
		"0x7f000001", "0x7f.0.0.1", "0X7F.1", "0177.0.0.1", "017700000001", "127.0.0.0x1", "0", "%31.2.3.4", "1%2e2%2e3%2e4")
	bad("IPv6", "::1", "%5B::1%5D", "[::1]", "[::1]:443", "2001:db8::1", "::ffff:1.2.3.4", "[fe80::1%25eth0]", "::", "[::]", "[]", "[shop.acme.example]")
	bad("IPv4 in other digits", "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1", "127%E3%80%820%E3%80%820%E3%80%821", "%E2%91%A0.2.3.4")
	bad("wildcard", "*", "*.acme.example", "%2a.acme.example", "a.*.example", "sh*p.acme.example", "*.", "**.acme.example", "%EF%BC%8A.acme.example", "*.acme.example:80")
	bad("punycode", "xn--.example", "xn--a.example", "%EF%BD%98n--a.example", "xn--bu%CC%88cher.example", "xn--bucher-xyd.example", "xn--cher-zra77610b.example", "xn--ab-m1t.example", "xn--99999999.example", "xn--shop-.example", "XN--.example", "xn--b%C3%BCcher-kva.example", "xn--"+strings.Repeat("z", 200)+".example")
	bad("IDNA", "%CC%80a.example", "a%D7%90.example", "a%E2%80%8Db.example", "a%E2%84%80b.example", "a%EF%BC%8Fb.example", "shop.acme.example%EF%BC%9A80", "%E2%80%AEshop.acme.example")
	bad("port", ":80", "shop.acme.example:65536", "shop.acme.example:abc", "shop.acme.example:80:80", "shop.acme.example:-1", "shop.acme.example:+80",
		"shop.acme.example:99999999999999999999", "shop.acme.example:80.", "shop.acme.example:8%200", "shop.acme.example:0x50", "shop.acme.example:%EF%BC%98%EF%BC%90")
	bad("space", "shop%20acme.example", "%20shop.acme.example", "shop.acme.example%20", "shop+acme.example", "+shop.acme.example", "shop.acme.example+", "shop%C2%A0.acme.example", "shop.acme.example%20:80")
	bad("no host name", "http://shop.acme.example", "https:%2f%2fshop.acme.example/", "shop.acme.example/", "shop.acme.example%2f..", "user@shop.acme.example", "a%3Fb", "a%23b", "a%5Cb.example",
		"a,b.example", "shop.acme.example;x=1", "a%26b.example", "a%3Db", "%3Cscript%3E", "%22", "a'b.example", "a(b.example", "a%25b.example", "%7B%7D", "$%7Bjndi:ldap://x%7D", "a!b.example", "~.example", "a%60b.example", "a%7Cb.example")
	badQueries(r)
}

func badQueries(r *rig) {
	const path = "/api/platform/projects/resolve"
	for _, q := range []string{
		"", "?", "?domain", "?domain=", "?domain&domain", "?Domain=shop.acme.example", "?DOMAIN=shop.acme.example", "?domain[]=shop.acme.example", "?%20domain=shop.acme.example",
		"?domain=shop.acme.example&domain=shop.acme.example", "?domain=shop.acme.example&domain=other.example", "?domain=shop.acme.example&domain=", "?domain&domain=shop.acme.example",
		"?domain=shop.acme.example&%64omain=shop.acme.example", "?%64%6f%6d%61%69%6e=other.example&domain=shop.acme.example", "?domain=" + strings.Repeat("&domain=shop.acme.example", 100),
		"?x=1&domain=&y=2", "?=shop.acme.example", "?domain==shop.acme.example", "?domain=shop.acme.example=",
	} {
		refused(r.t, "query "+cutMiddle(q, 80), r.get(path+q), 400, "VALIDATION_ERROR", "domain")
	}
}

// goodDomains: odd, but valid; each with the record that it matches, "" for none.
func goodDomains(r *rig) {
	good := func(record string, values ...string) {
		r.t.Helper()
		for _, v := range values {
			got := r.get(resolvePath + v)
			if record == "" {
				refused(r.t, "domain="+cutMiddle(v, 80), got, 404, "NOT_FOUND")
			} else if data := granted(r.t, "domain="+v, got); !strings.Contains(data, `"domain":"`+record+`"`) {
				r.t.Errorf("domain=%s: %s\nwant a match of %s", v, data, record)
			}
		}
	}
	good("shop.acme.example", "Shop.ACME.example", "shop.acme.example.", "shop.acme.example:8443", "Shop.Acme.Example.:8443", "shop.acme.example:1", "shop.acme.example:65535", "%73hop%2eacme.example",
		"shop.acme.example&x=1", "shop.acme.example&&", "shop.acme.example%3a443",
		"%EF%BD%93%EF%BD%88%EF%BD%8F%EF%BD%90.acme.example", "shop%E3%80%82acme%E3%80%82example", "shop%EF%BC%8Eacme.example", "shop.acme%EF%BD%A1example", "shop.acme.example%E3%80%82")
	good("xn--bcher-kva.example", "b%C3%BCcher.example", "B%C3%9CCHER.Example.:80", "xn--bcher-kva.example", "XN--BCHER-KVA.EXAMPLE", "bu%CC%88cher.example", "b%c3%bccher.example")
	good("*.acme.example", "a.acme.example", "a.b.c.d.acme.example", "_dmarc.acme.example", "a.shop.acme.example", "x-1.acme.example:80", "%D0%B0.acme.example")
	good("under_score.example", "under_score.example", "UNDER_SCORE.example.")
	good("localhost", "localhost", "LOCALHOST:3000", "localhost.")
	good("", "acme.example", "example", "nowhere.example", "%D0%B0cme.example", "p%D0%B0ypal.example", "xn--e1afmkfd.example", "fa%C3%9F.example", long(253), long(253)+".", long(253)+".:65535",
		strings.Repeat("a", 63)+".example", strings.Repeat("a.", 126)+"a", "0x7f000001.example", "1.2.3.4.example", "shop.acme.example.evil.example")
	if got := r.get("/api/platform/projects/resolve?%64omain=shop.acme.example"); got.status != 200 {
		r.t.Errorf("an escaped parameter's name: %d %s", got.status, got.body)
	}
	for domain, code := range map[string]string{"old.acme.example": "DOMAIN_NOT_VERIFIED", "OLD.acme.example.:1": "DOMAIN_NOT_VERIFIED", "gone.example": "PROJECT_SUSPENDED"} {
		refused(r.t, domain, r.get(resolvePath+domain), 403, code)
	}
}

func badForms(r *rig) {
	for _, q := range []string{"form=FLAT", "form=x", "form=flat%20", "form=flat&form=flat", "form=flat&form=x", "form=%00", "form=%zz", "form=flat%00"} {
		refused(r.t, q, r.get(resolvePath+"shop.acme.example&"+q), 400, "VALIDATION_ERROR", "form")
	}
	refused(r.t, "both are wrong", r.get(resolvePath+"..&form=x"), 400, "VALIDATION_ERROR", "domain", "form")
	flat := granted(r.t, "flat", r.get(resolvePath+"shop.acme.example&form=flat"))
	for _, want := range []string{`"matchedDomain":"shop.acme.example"`, `"status":"active"`, `"jwtSecret":null`, `"sessionTimeout":3600`} {
		if !strings.Contains(flat, want) {
			r.t.Errorf("the flat form lacks %s: %s", want, flat)
		}
	}
}

// errorOrder: 404/405 of the route, 401, 400 of path and query, 403, 404 of the resource, then the body.
func errorOrder(r *rig) {
	const path = "/api/platform/projects/resolve"
	r.from = "127.0.1.1"
	for _, key := range []string{"", "nonsense"} {
		refused(r.t, "route before key", r.ask("GET", "/api/platform/nothing", key, ""), 404, "NOT_FOUND")
		refused(r.t, "method before key", r.ask("PATCH", path+"?domain=..", key, ""), 405, "METHOD_NOT_ALLOWED")
		refused(r.t, "key before query", r.ask("GET", path+"?domain=..&form=x", key, ""), 401, "UNAUTHORIZED")
		refused(r.t, "key before path", r.ask("GET", "/api/platform/projects/x", key, ""), 401, "UNAUTHORIZED")
		refused(r.t, "key before body", r.ask("POST", path, key, "{", "Content-Type: text/plain"), 401, "UNAUTHORIZED")
	}
	for _, name := range []string{"mail", "write"} {
		refused(r.t, "query before right", r.ask("GET", path+"?domain=..", r.keys[name], ""), 400, "VALIDATION_ERROR", "domain")
		refused(r.t, "right before match", r.ask("GET", path+"?domain=nowhere.example", r.keys[name], ""), 403, "FORBIDDEN")
		refused(r.t, "path before right", r.ask("GET", "/api/platform/projects/x", r.keys[name], ""), 400, "VALIDATION_ERROR", "id")
		refused(r.t, "right before resource", r.ask("GET", "/api/platform/projects/1", r.keys[name], ""), 403, "FORBIDDEN")
		refused(r.t, "right before type of body", r.ask("POST", path, r.keys[name], "{", "Content-Type: text/plain"), 403, "FORBIDDEN")
	}
	refused(r.t, "lists need read", r.ask("GET", "/api/platform/projects?page=0", r.keys["resolve"], ""), 400, "VALIDATION_ERROR", "page")
	refused(r.t, "lists need read", r.ask("GET", "/api/platform/projects", r.keys["resolve"], ""), 403, "FORBIDDEN")
}

// requestIDs: the client's own is used if it is harmless, on failures, too.
func requestIDs(r *rig) {
	for _, target := range []string{resolvePath + "shop.acme.example", resolvePath + "..", "/nothing", "/api/mail/nothing", "/api/platform/health"} {
		for _, id := range []string{"a", "Abc.1_2-3", "..", strings.Repeat("x", 128)} {
			if got := r.get(target, "X-Request-Id: "+id); got.header.Get("X-Request-Id") != id {
				r.t.Errorf("%s: id %q came back as %q", target, id, got.header.Get("X-Request-Id"))
			}
		}
		for _, id := range []string{"", "a b", "a/b", strings.Repeat("x", 129), "a\tb", "ü", "a;b", "<x>", "a\"b"} {
			got := r.get(target, "X-Request-Id: "+id)
			sound(r.t, target+" with id "+id, got)
			if got.header.Get("X-Request-Id") == id {
				r.t.Errorf("%s: id %q was taken", target, id)
			}
		}
	}
	if a, b := r.get("/nothing"), r.get("/nothing"); a.header.Get("X-Request-Id") == b.header.Get("X-Request-Id") {
		r.t.Error("two requests got the same id")
	}
}

// TestNetHTTPClient: requests of a usual client library get the same answers as bytes on the wire, on one connection.
func TestNetHTTPClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	client := &http.Client{CheckRedirect: func(req *http.Request, via []*http.Request) error {
		t.Errorf("%s redirects to %s", via[0].URL, req.URL)
		return http.ErrUseLastResponse
	}}
	defer client.CloseIdleConnections()
	for domain, status := range map[string]int{"shop.acme.example": 200, "": 400, "a b": 400, "bücher.example": 200, "x%": 400, "gone.example": 403, "..": 400, "nowhere.example": 404, "\x00": 400, "a&b": 400} {
		req, err := http.NewRequest(http.MethodGet, r.url+resolvePath+url.QueryEscape(domain), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Platform-Key", r.keys["all"])
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("%q: %s, want %d", domain, res.Status, status)
		}
	}
}
