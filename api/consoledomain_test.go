package api_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/api/platform"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// newDomainDesk is a desk with a domain whose verification a script tells.
func newDomainDesk(t *testing.T) (*consoleRig, *script) {
	s := &script{standings: []platform.Standing{{Ownership: dcv.Failing, Pointing: dcv.Here, Certificate: dcv.Good}}}
	d := &desk{dir: t.TempDir(), verifier: s}
	reader, text := catalog.Key{Name: "reader", Allow: catalog.MayRead}, ""
	text = reader.Renew()
	d.open(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  status = \"ACTIVE\"\n  domain \"shop.acme.example\" {}\n}\n",
		"reader.hcl": fmt.Sprintf("key \"reader\" {\n  id    = %q\n  hash  = %q\n  allow = [\"read\"]\n}\n", reader.ID, catalog.HashKeyText(text))})
	d.onlyRead = text
	s.set(func() {
		s.standings[0].ID = acmeShopID()
	})
	return newConsoleRig(t, d), s
}

// acmeShopID is the id of shop.acme.example.
func acmeShopID() int64 {
	return catalog.DeriveID(catalog.KindDomain, catalog.DeriveDomainUUID(catalog.DeriveProjectUUID("acme"), "shop.acme.example"))
}

func acmeDomainPage() string {
	return fmt.Sprintf("/console/projects/%d/domains/%d",
		catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID("acme")), acmeShopID())
}

// The page of a domain shows what is known, escaped, and a button for those who may have it checked.
func TestConsoleDomain(t *testing.T) {
	t.Parallel()
	r, s := newDomainDesk(t)
	silent, at := "time-out", catalog.JSONMoment{Time: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}
	answer := &catalog.VerificationView{Ownership: catalog.OwnershipView{State: dcv.Failing, Since: &at, Misses: 2},
		Pointing:    catalog.PointingView{State: dcv.Here, Addresses: []string{"203.0.113.4"}},
		Certificate: catalog.CertificateView{State: dcv.Good},
		Records: []catalog.RecordView{{Purpose: "ownership", Type: "TXT", Name: "_fingerpost-challenge.shop.acme.example", Value: "token=abc expiry=never",
			Found: []catalog.FoundView{{Server: "ns1.example", Values: []string{"<script>alert(1)</script>"}, At: at},
				{Server: "ns2.example", Error: &silent, At: at}, {Server: "ns3.example", At: at}}}},
		Hints:     []catalog.VerificationHint{{Code: "OTHER_TOKEN", Message: "This is another project's token.", Line: "_x. TXT \"y\""}},
		CheckedAt: &at, NextCheckAt: &at}
	s.set(func() { s.answer = answer })
	g := r.signIn(t, r.key)
	g.send("/console/projects/acme", nil)
	page := acmeDomainPage()
	if !strings.Contains(g.page, `href="`+page+`"`) {
		t.Errorf("the project's page does not lead to %s", page)
	}
	g.send(page, nil)
	for _, want := range []string{"not ready", "The proof is gone.", "203.0.113.4", "token=abc expiry=never", "&lt;script&gt;alert(1)&lt;/script&gt;",
		"no answer (time-out)", "no such record", "This is another project&#39;s token.", "2026-11-27 12:00:00 UTC", "Check now"} {
		if !strings.Contains(g.page, want) {
			t.Errorf("%d: the page lacks %q:\n%s", g.status, want, g.page)
		}
	}
	if s.made() != 0 {
		t.Error("looking has made a check")
	}
	g.send(page, url.Values{"token": {"wrong"}})
	if g.status != 403 || s.made() != 0 {
		t.Errorf("a form of another session: %d, %d checks", g.status, s.made())
	}
	g.send(page, nil)
	sent, _ := g.controls(page)
	g.send(page, sent)
	if g.status != 200 || s.made() != 1 || !strings.Contains(g.page, "Checked: shop.acme.example is not ready yet.") {
		t.Errorf("the button: %d, %d checks", g.status, s.made())
	}
	g.send("/console/", nil)
	if !strings.Contains(g.page, "The proof of the domain shop.acme.example is gone") {
		t.Error("the start page does not tell of the failing domain")
	}
	r.proven = true
	if g.send("/console/", nil); strings.Contains(g.page, "The proof of the domain") {
		t.Error("the start page lists domains in a state that none is in")
	}
	for _, none := range []string{"/console/projects/acme/domains/1", "/console/projects/acme/domains/x", "/console/projects/none/domains/1"} {
		if g.send(none, nil); g.status != 404 {
			t.Errorf("%s: %d", none, g.status)
		}
	}
	reader := r.signIn(t, r.onlyRead)
	if reader.send(page, nil); reader.status != 200 || strings.Contains(reader.page, "Check now") {
		t.Errorf("a reader: %d, with a button: %t", reader.status, strings.Contains(reader.page, "Check now"))
	}
	s.set(func() { s.err = &catalog.Error{Code: catalog.CodeUnavailable, Message: "the ledger is away"} })
	if g.send(page, nil); g.status != 200 || !strings.Contains(g.page, "cannot be shown: the ledger is away") {
		t.Errorf("without an answer: %d %s", g.status, g.page)
	}
}

// TestConsoleNowStream: an open start page, which is brought up to date every few seconds, asks once since when a domain is
// in its state, however long it stays open.
func TestConsoleNowStream(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r, s := newDomainDesk(t)
	at := catalog.JSONMoment{Time: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}
	s.set(func() {
		s.answer = &catalog.VerificationView{Ownership: catalog.OwnershipView{State: dcv.Failing, Since: &at}}
	})
	g := r.signIn(t, r.key)
	var lists, looks atomic.Int32
	r.alter = func(path string, answer []byte) []byte {
		switch {
		case path == "/api/platform/domains":
			lists.Add(1)
		case strings.HasSuffix(path, "/verification"):
			looks.Add(1)
		}
		return answer
	}
	ctx, end := context.WithCancel(t.Context())
	req := httptest.NewRequest("GET", "/console/now/stream", nil).WithContext(ctx)
	req.Header.Set("Cookie", g.cookie)
	w, ended := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(ended)
		r.console.ServeHTTP(w, req)
	}()
	testrig.Eventually(t, "the page is brought up to date once", func() bool { return lists.Load() >= 2*3 })
	end()
	r.console.Close()
	<-ended
	if looks.Load() != 1 {
		t.Errorf("the verification of the domain was asked for %d times", looks.Load())
	}
	if page := w.Body.String(); !strings.Contains(page, "2026-11-27") {
		t.Errorf("the page does not say since when: %s", page)
	}
}

// TestConsoleDomainRecords: the page of a domain has one record to set for each purpose, with its host as DNS forms want it, and
// the others folded; and it says that a domain is not in DNS yet.
func TestConsoleDomainRecords(t *testing.T) {
	t.Parallel()
	r, s := newDomainDesk(t)
	name := "_fingerpost-challenge.shop.acme.example"
	answer := &catalog.VerificationView{Ownership: catalog.OwnershipView{State: dcv.Pending}, Pointing: catalog.PointingView{State: dcv.Nowhere},
		Certificate: catalog.CertificateView{State: dcv.Unknown},
		Records: []catalog.RecordView{{Purpose: "ownership", Type: "TXT", Name: name, Host: "_fingerpost-challenge.shop", Value: "token=first"},
			{Purpose: "ownership", Type: "CNAME", Name: name, Host: "_fingerpost-challenge.shop", Value: "second.example.net", Alternative: true}}}
	s.set(func() { s.answer = answer })
	g := r.signIn(t, r.key)
	g.send(acmeDomainPage(), nil)
	first, folded, found := strings.Cut(g.page, "<details><summary>Another record does as well")
	if !found || !strings.Contains(first, "token=first") || strings.Contains(first, "second.example.net") || !strings.Contains(folded, "second.example.net") {
		t.Errorf("the other record is not folded: %s", visibleText(g.page))
	}
	for _, want := range []string{`<code id="ownership-host-0">_fingerpost-challenge.shop</code>`, `data-copy="ownership-host-0"`,
		`<code id="ownership-name-0">` + name + `</code>`, "This domain is not in DNS yet"} {
		if !strings.Contains(first, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	there := *answer
	there.Records = append([]catalog.RecordView{}, answer.Records...)
	there.Records[0].Found = []catalog.FoundView{{Values: []string{"token=other"}}}
	for what, view := range map[string]*catalog.VerificationView{"a record is there": &there,
		"not known": {Pointing: catalog.PointingView{State: dcv.Unknown}, Records: answer.Records}} {
		s.set(func() { s.answer = view })
		if g.send(acmeDomainPage(), nil); strings.Contains(g.page, "not in DNS yet") {
			t.Errorf("%s: the page says that the domain is not in DNS", what)
		}
	}
}
