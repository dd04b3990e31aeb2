package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// Mail that an edge is asked to send is kept by an authority with --mail-sink, and read over both.
func TestClusterMailSink(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := idleCluster(t, "fra1")
	c.put("acme.hcl", `project "acme" {
  name   = "Acme Shop"
  status = "ACTIVE"
  domain "shop.acme.example" { primary = true }
  service_settings { mail_enabled = true }
  smtp_config {
    host       = "smtp.acme.example"
    username   = "acme"
    password   = env("NOT_SET_HERE")
    from_email = "hello@acme.example"
    tls_enabled = true
  }
}
`)
	c.flags = append(c.flags, "--mail-sink")
	c.begin()
	e := c.edge("fra1", "")
	e.resolves("shop.acme.example")
	service := func(key string) []string {
		return []string{"X-Internal-Service-Token: " + c.keys[key], "X-Internal-Service-Name: t", "Content-Type: application/json",
			"Idempotency-Key: once"}
	}
	const mail = `{"domain":"shop.acme.example","toEmail":"ada@example.com","subject":"Hi","bodyText":"kept on the authority"}`
	first := e.ask(http.MethodPost, "/api/mail/send/raw", "", mail, service("mail")...)
	if first.status != http.StatusOK || !strings.Contains(first.body, `"kept":true`) {
		t.Fatalf("over the edge: %d %s", first.status, first.body)
	}
	if again := c.ask(http.MethodPost, "/api/mail/send/raw", "", mail, service("mail")...); !strings.Contains(again.body, `"kept":true`) || again.header.Get("Idempotent-Replay") != "true" {
		t.Errorf("repeated at the authority: %d %s", again.status, again.body)
	}
	at := first.header.Get("Location")
	if !regexp.MustCompile(`^/api/mail/projects/\d+/logs/\d+$`).MatchString(at) {
		t.Fatalf("Location %q", at)
	}
	for who, r := range map[string]*rig{"authority": c.rig, "edge": e} {
		if got := r.ask(http.MethodGet, at+"/message", "", "", service("read")...); got.status != http.StatusOK || !strings.Contains(got.body, "kept on the authority") {
			t.Errorf("%s: %d %s", who, got.status, got.body)
		}
		if got := r.ask(http.MethodGet, at+"/message", "", "", service("mail")...); got.status != http.StatusForbidden {
			t.Errorf("%s, with a key that may not read: %d", who, got.status)
		}
	}
}
