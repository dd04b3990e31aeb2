package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/cluster"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// A countingResolver is a resolver of names that knows none.
type countingResolver struct {
	addr  string
	asked atomic.Int64
}

func newCountingResolver(t *testing.T) *countingResolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	r := &countingResolver{addr: conn.LocalAddr().String()}
	started := make(chan struct{})
	s := &dns.Server{PacketConn: conn, Handler: r, NotifyStartedFunc: func() { close(started) }}
	go func() { _ = s.ActivateAndServe() }()
	<-started
	t.Cleanup(func() { _ = s.Shutdown() })
	return r
}

// ServeDNS implements dns.Handler.
func (r *countingResolver) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	r.asked.Add(1)
	_ = w.WriteMsg(new(dns.Msg).SetRcode(q, dns.RcodeNameError))
}

// TestVerificationAtEdge: a project's key adds a domain at an edge. It is pending at the authority, in the file and in the
// answers of both nodes. What is known of it, and a check, come from the authority; the edge asks no name server. Nobody
// gets past the proof at the edge who would not at the authority.
func TestVerificationAtEdge(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	c := idleCluster(t, "fra1")
	c.put("defaults.hcl", "defaults {\n  verification {\n    require = \"project-keys\"\n    targets = [\"192.0.2.0/24\"]\n  }\n}\n")
	const rights = "allow = [\"resolve\", \"read\", \"write\"]\n  projects = [\"%\"]"
	c.put("tenants.hcl", c.newKey("tenant", strings.Replace(rights, "%", "acme", 1))+
		c.newKey("stranger", strings.Replace(rights, "%", "other", 1)))
	tenant, stranger := c.keys["tenant"], c.keys["stranger"]
	atAuthority, atEdge := newCountingResolver(t), newCountingResolver(t)
	c.flags = append(c.flags, "--dns-resolver", atAuthority.addr)
	c.begin()
	fra := c.idleEdge("fra1", "")
	fra.flags = append(fra.flags, "--dns-resolver", atEdge.addr)
	fra.start()
	fra.resolves("shop.acme.example")

	const asJSON, name = "Content-Type: application/json", "new.customer.example"
	domains := "/api/platform/projects/" + c.projectID("acme") + "/domains"
	for _, value := range []string{`"2026-01-24"`, `"lost"`} {
		got := fra.ask(http.MethodPost, domains, tenant, `{"domain":"`+name+`","verified":`+value+`}`, asJSON)
		refused(t, "a proof in the body, "+value, got, 403, "FORBIDDEN", "verified")
	}
	refused(t, "another project's key", fra.ask(http.MethodPost, domains, stranger, `{"domain":"`+name+`"}`, asJSON), 403, "FORBIDDEN")
	refused(t, "before", fra.get(resolvePath+name), 404, "NOT_FOUND")
	added := fra.ask(http.MethodPost, domains, tenant, `{"domain":"New.Customer.example."}`, asJSON)
	var row struct {
		Data struct{ ID, Verified json.RawMessage }
	}
	if err := json.Unmarshal([]byte(added.body), &row); added.status != http.StatusCreated || err != nil ||
		string(row.Data.Verified) != `"pending"` {
		t.Fatalf("a domain added at the edge: %d %s", added.status, added.body)
	}
	for what, node := range map[string]*rig{"the edge": fra, "the authority": c.rig} {
		refused(t, "resolve at "+what, node.get(resolvePath+name), 403, "DOMAIN_NOT_VERIFIED")
	}
	text, err := os.ReadFile(c.path("acme.hcl"))
	if err != nil || !regexp.MustCompile(`domain "new\.customer\.example" \{\s*verified = "pending"\s*\}`).Match(text) {
		t.Errorf("the file is, %v:\n%s", err, text)
	}

	one := domains + "/" + strings.Trim(string(row.Data.ID), `"`)
	for _, value := range []string{`"2026-01-24"`, "null"} {
		refused(t, "a proof in the body of a change, "+value,
			fra.ask(http.MethodPut, one, tenant, `{"verified":`+value+`}`, asJSON), 403, "FORBIDDEN", "verified")
	}
	verification := one + "/verification"
	view := func(node *rig, method, target string) (v catalog.VerificationView) {
		t.Helper()
		data := granted(t, method+" "+target, node.ask(method, target, tenant, ""))
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if v.Ownership.State != dcv.Pending || len(v.Records) == 0 {
			t.Errorf("%s %s: %s", method, target, data)
		}
		return v
	}
	before := atAuthority.asked.Load()
	if v := view(fra, http.MethodPost, verification+"/check"); v.CheckedAt == nil || atAuthority.asked.Load() == before {
		t.Errorf("a check at the edge: %+v, %d questions", v, atAuthority.asked.Load()-before)
	}
	if v, want := view(fra, http.MethodGet, verification), view(c.rig, http.MethodGet, verification); v.CheckedAt == nil ||
		want.CheckedAt == nil || v.Records[0].Value != want.Records[0].Value {
		t.Errorf("the edge knows %+v, the authority %+v", v, want)
	}
	for method, target := range map[string]string{http.MethodGet: verification, http.MethodPost: verification + "/check"} {
		refused(t, "another project's key", fra.ask(method, target, stranger, ""), 403, "FORBIDDEN")
		refused(t, "no key", fra.ask(method, target, "", ""), 401, "UNAUTHORIZED")
	}
	refused(t, "a check with a key that may not write", fra.ask(http.MethodPost, verification+"/check", c.keys["all"], ""), 403, "FORBIDDEN")

	_ = c.cmd.Process.Kill()
	<-c.exited
	fra.untilStatus("the edge knows that it is cut off", func(s cluster.Status) bool { return !s.Connected })
	refused(t, "without the authority", fra.ask(http.MethodGet, verification, tenant, ""), 503, "UNAVAILABLE")
	refused(t, "a check without the authority", fra.ask(http.MethodPost, verification+"/check", tenant, ""), 503, "UNAVAILABLE")
	refused(t, "a list without the authority", fra.ask(http.MethodGet, "/api/platform/domains?ownership=pending", tenant, ""), 503, "UNAVAILABLE")
	refused(t, "resolve without the authority", fra.get(resolvePath+name), 403, "DOMAIN_NOT_VERIFIED")
	if n := atEdge.asked.Load(); n > 0 {
		t.Errorf("the edge has asked name servers %d times", n)
	}
}
