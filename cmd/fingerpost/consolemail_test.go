package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// send sends a raw mail of a domain, and returns the path of its page in the console.
func (v *visit) send(domain, to, subject string, want int) string {
	v.t.Helper()
	got := v.ask(http.MethodPost, "/api/mail/send/raw", v.admin, fmt.Sprintf(
		`{"domain":%q,"toEmail":%q,"subject":%q,"bodyText":"Hello"}`, domain, to, subject),
		"X-Internal-Service-Token: "+v.admin, "X-Internal-Service-Name: shop", "Content-Type: application/json")
	if got.status != want {
		v.t.Fatalf("send to %s: %d %s", to, got.status, got.body)
	}
	at := strings.Split(got.header.Get("Location"), "/")
	return "/console/mail/" + at[len(at)-3] + "/" + at[len(at)-1]
}

// "Did the mail to ada@example.com arrive?" is answered by the console alone, by somebody who knows no project.
func TestConsoleDidTheMailArrive(t *testing.T) {
	v := newVisit(t)
	v.put("closed.hcl", "project \"closed\" {\n  name = \"Closed\"\n  status = \"ACTIVE\"\n  domain \"closed.example\" {}\n"+
		"  service_settings { mail_enabled = true }\n  smtp_config {\n    host = \"127.0.0.1\"\n    port = 1\n"+
		"    from_email = \"a@closed.example\"\n  }\n}\n")
	testrig.Eventually(t, "the project is there", func() bool {
		return v.ask(http.MethodGet, "/api/platform/projects/by-slug/closed", v.admin, "").status == http.StatusOK
	})
	v.send("shop.acme.example", "ada@example.com", "Your order 17", http.StatusOK)
	v.send("closed.example", "bob@example.com", "Your order 18", http.StatusAccepted)
	b := v.signedIn(v.admin)
	b.open("/console/mail")
	b.sees("Your order 17", "Your order 18", "Sent", "Waiting: next try", "Acme Shop", "Closed")
	b.fill("q", "ADA@")
	b.press("Find")
	b.sees("Your order 17", "Sent")
	if rows := b.text("main"); strings.Contains(rows, "order 18") {
		t.Errorf("another mail is shown:\n%s", rows)
	}
	b.press("ada@example.com")
	b.sees("What happened", "Asked for by shop", "Attempt 1: the server took the mail", "250", "Acme Shop")

	b.open("/console/mail?q=order+18")
	b.press("bob@example.com")
	b.sees("Attempt 1, connecting: the mail server refuses the connection", "Check host and port.",
		"SMTP_CONNECTION_REFUSED", "Waiting: next try", "To change: port")
	b.open("/console/mail?q=nothing+like+it")
	b.sees("No mail matches")
	b.open("/console/mail?q=order+17&status=SENT")
	b.look("mail-found")

	// A key of another project finds nothing of it, whatever it asks for.
	b = v.signedIn(v.shopOnly)
	for _, path := range []string{"/console/mail", "/console/mail?q=bob", "/console/mail?q=order",
		"/console/mail?status=RETRYING", "/console/mail?to=bob@example.com"} {
		b.open(path)
		b.sees("Find")
		if rows := b.text("main"); strings.Contains(rows, "order 18") || strings.Contains(rows, "Closed") ||
			strings.Contains(rows, "2 mails") {
			t.Errorf("%s: a key of acme sees\n%s", path, rows)
		}
	}
}
