package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// nameServer is where the servers of these tests listen, at the port of DNS, since the program asks no other; and that of
// the pages of the console.
const (
	nameServer       = "127.53.3.1"
	nameServerOfDesk = "127.53.3.2"
)

// A dnsZone is the zone "example" on one server, which is also the resolver.
type dnsZone struct {
	at  string // the server's address
	mu  sync.Mutex
	txt map[string]string // by name
}

// newDNSZone serves the zone at an address that no other test has.
func newDNSZone(t *testing.T, at string) *dnsZone {
	t.Helper()
	z := &dnsZone{at: at, txt: map[string]string{}}
	udp, err := net.ListenPacket("udp", net.JoinHostPort(at, "53"))
	if err != nil {
		testrig.Missing(t, "port53", "port 53 of a loopback address: "+err.Error())
	}
	tcp, err := net.Listen("tcp", net.JoinHostPort(at, "53"))
	if err != nil {
		udp.Close()
		testrig.Missing(t, "port53", "port 53 of a loopback address: "+err.Error())
	}
	for _, s := range []*dns.Server{{PacketConn: udp, Handler: z}, {Listener: tcp, Handler: z}} {
		started := make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		go func() { _ = s.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return z
}

// set makes a name have a TXT record; "": none.
func (z *dnsZone) set(name, value string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.txt[name] = value; value == "" {
		delete(z.txt, name)
	}
}

// ServeDNS implements dns.Handler.
func (z *dnsZone) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	z.mu.Lock()
	defer z.mu.Unlock()
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	question := q.Question[0]
	name := strings.ToLower(question.Name)
	add := func(text string) {
		rr, err := dns.NewRR(text)
		if err != nil {
			panic(err)
		}
		m.Answer = append(m.Answer, rr)
	}
	switch value := z.txt[strings.TrimSuffix(name, ".")]; {
	case name == "example." && question.Qtype == dns.TypeNS:
		add("example. 60 NS ns.example.")
	case name == "ns.example." && question.Qtype == dns.TypeA:
		add("ns.example. 60 A " + z.at)
	case value != "" && question.Qtype == dns.TypeTXT:
		add(name + ` 60 TXT "` + value + `"`)
	}
	if len(m.Answer) == 0 {
		soa, _ := dns.NewRR("example. 60 SOA ns.example. mail.example. 1 60 60 60 60")
		m.Ns = []dns.RR{soa}
	}
	_ = w.WriteMsg(m)
}

func id(n int64) string { return strconv.FormatInt(n, 10) }

// A verified is a customer's domain in a rig.
type verified struct {
	*rig
	name, target string // and the path of its verification
	label, token string // of its record
}

const customerFile = `project "customer" {
  name = "Customer"
  domain "shop.customer.example" { verified = "pending" }
}
`

func newVerified(t *testing.T) *verified {
	uuid := catalog.DeriveProjectUUID("customer")
	name := "shop.customer.example"
	v := &verified{name: name, label: "_fingerpost-challenge." + name,
		token: "token=" + dcv.Token(uuid, dcv.ScopeExact, name)}
	v.target = "/api/platform/projects/" + id(catalog.DeriveID(catalog.KindProject, uuid)) + "/domains/" +
		id(catalog.DeriveID(catalog.KindDomain, catalog.DeriveDomainUUID(uuid, name))) + "/verification"
	v.rig = idleRig(t, t.TempDir(), map[string]string{"customer.hcl": customerFile, "defaults.hcl": `defaults {
  verification {
    require = "project-keys"
    targets = ["192.0.2.0/24"]
    on_lost = "block"
    grace   = "3s"
  }
}
`})
	v.flags = []string{"--dns-resolver", nameServer, "--dns-allow", "127.0.0.0/8"}
	return v
}

// check checks the domain, and returns the state of its ownership.
func (v *verified) check() string {
	v.t.Helper()
	got := v.ask(http.MethodPost, v.target+"/check", v.keys["write"], "")
	var answer struct{ Data catalog.VerificationView }
	if err := json.Unmarshal([]byte(got.body), &answer); got.status != http.StatusOK || err != nil {
		v.t.Fatalf("check: %d %s", got.status, got.body)
	}
	return answer.Data.Ownership.State
}

func (v *verified) view() catalog.VerificationView {
	v.t.Helper()
	got := v.get(v.target)
	var answer struct{ Data catalog.VerificationView }
	if err := json.Unmarshal([]byte(got.body), &answer); got.status != http.StatusOK || err != nil {
		v.t.Fatalf("view: %d %s", got.status, got.body)
	}
	return answer.Data
}

func (v *verified) resolves() int { return v.get(resolvePath + v.name).status }

// actions lists what the audit trail has of the door dns, the oldest first.
func (v *verified) actions() (all []string) {
	v.t.Helper()
	var page struct {
		Data []struct {
			Action, Object, Door string
			Actor                *string
		}
	}
	got := v.get("/api/platform/audit?limit=100")
	if err := json.Unmarshal([]byte(got.body), &page); err != nil {
		v.t.Fatal(got.body, err)
	}
	for _, e := range page.Data {
		if e.Door == "dns" {
			if e.Actor != nil || e.Object != v.name {
				v.t.Errorf("%+v", e)
			}
			all = append(all, e.Action)
		}
	}
	slices.Reverse(all)
	return all
}

// TestVerification follows a customer's domain from "pending" to served, to a lost proof and back: the files, the answers,
// the feed, the audit trail, the metrics and the status tell the same, also after a restart.
func TestVerification(t *testing.T) {
	testrig.Thorough(t) // it waits for states that change by the clock; package verify has a clock of its own
	zone := newDNSZone(t, nameServer)
	v := newVerified(t)
	v.start()
	if status := v.resolves(); status != http.StatusForbidden {
		t.Errorf("pending: resolve is %d", status)
	}
	events := v.follow()
	zone.set(v.label, v.token+" expiry=never")
	if state := v.check(); state != dcv.Proven {
		t.Fatalf("with the record it is %s: %+v", state, v.view().Records)
	}
	if status := v.resolves(); status != http.StatusOK {
		t.Errorf("proven: resolve is %d", status)
	}
	today := time.Now().UTC().Format(time.DateOnly)
	if want := strings.Replace(customerFile, "pending", today, 1); readText(t, v.path("customer.hcl")) != want {
		t.Errorf("the file is\n%s", readText(t, v.path("customer.hcl")))
	}
	if event := <-events; !strings.Contains(event, v.name) {
		t.Errorf("the event is %s", event)
	}
	v.counts(`fingerpost_domains{ownership="proven"}`, "1")
	v.counts(`fingerpost_domains{ownership="pending"}`, "0")
	v.counts(`fingerpost_domains{pointing="nowhere"}`, "1")

	zone.set(v.label, "")
	testrig.Eventually(t, "a check misses the proof", func() bool { return v.check() != dcv.Proven })
	testrig.Eventually(t, "it is lost by itself", func() bool { return v.resolves() == http.StatusForbidden })
	if text := readText(t, v.path("customer.hcl")); !strings.Contains(text, `verified = "lost"`) {
		t.Errorf("the file is\n%s", text)
	}
	v.counts(`fingerpost_domains{ownership="lost"}`, "1") // the file is written before the service has taken it in
	if lost, is := v.conditions()["domain-lost domain "+v.name]; !is || lost.Since == nil {
		t.Errorf("the conditions are %+v", v.conditions())
	}
	var status struct {
		Verification struct {
			Domains int
			Trouble []struct{ Domain, Project, Ownership string }
		}
	}
	r, err := v.client.Get(v.ops + "/status")
	must(t, err)
	must(t, json.NewDecoder(r.Body).Decode(&status))
	r.Body.Close()
	if trouble := status.Verification.Trouble; len(trouble) != 1 || trouble[0].Domain != v.name ||
		trouble[0].Project != "customer" || trouble[0].Ownership != dcv.Lost || status.Verification.Domains < 5 {
		t.Errorf("the status has %+v", status.Verification)
	}

	v.halt()
	v.start()
	if state := v.view().Ownership.State; state != dcv.Lost {
		t.Errorf("after a restart it is %s", state)
	}
	zone.set(v.label, v.token)
	testrig.Eventually(t, "it is found again", func() bool { return v.check() == dcv.Proven })
	if status := v.resolves(); status != http.StatusOK {
		t.Errorf("found again: resolve is %d", status)
	}
	if got, want := strings.Join(v.actions(), " "), "domain.verify domain.failing domain.lost domain.verify"; got != want {
		t.Errorf("the audit trail has %s, want %s", got, want)
	}
	v.halt()

	v.flags = append(v.flags, "--read-only")
	v.start()
	if state := v.view().Ownership.State; state != dcv.Proven {
		t.Errorf("a node that may not write shows %s", state)
	}
	if got := v.ask(http.MethodPost, v.target+"/check", v.keys["write"], ""); got.status != http.StatusConflict {
		t.Errorf("a check on a node that may not write: %d %s", got.status, got.body)
	}
}

// counts waits for a series of /metrics to have a value.
func (v *verified) counts(series, want string) {
	v.t.Helper()
	name, _, _ := strings.Cut(series, "{")
	testrig.Eventually(v.t, series+" is "+want, func() bool {
		metrics, _ := metricsAt(v.t, v.rig)
		return metrics[name] != nil && metrics[name].values[series] == want
	})
}

// follow returns the events about domains, each with its data.
func (v *verified) follow() <-chan string {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.url+"/api/platform/events", nil)
	must(v.t, err)
	request.Header.Set("X-PLATFORM-KEY", v.keys["all"])
	response, err := new(http.Client).Do(request)
	must(v.t, err)
	if response.StatusCode != http.StatusOK {
		v.t.Fatalf("the feed is answered %d", response.StatusCode)
	}
	events := make(chan string, 100)
	go func() {
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		for changed := false; lines.Scan(); {
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "event: domain.changed"):
				changed = true
			case strings.HasPrefix(line, "data: ") && changed:
				events <- line
				changed = false
			}
		}
	}()
	return events
}
