package main

import (
	"net/http"
	"strings"
	"testing"
)

// With --mail-sink a mail is read in the console, and its scripts and pictures reach nobody.
func TestConsoleKeptMail(t *testing.T) {
	v := newVisit(t, "--mail-sink")
	b := v.signedIn(v.admin)
	template := v.rowID(v.admin, "/api/mail/projects/"+v.acme+"/templates?limit=100", "code", "WELCOME")
	b.open("/console/template?project=" + v.acme + "&id=" + template)
	b.fill("var.userName", "Grace")
	b.press("Render")
	b.sees("Welcome, Grace")
	b.fill("toEmail", "grace@example.com")
	b.press("Send")
	b.sees("The mail is kept, and was not sent")
	b.open("/console/mail?project=" + v.acme)
	b.sees("grace@example.com", "sink")
	b.press("grace@example.com")
	b.sees("nobody has got it")
	b.press("Read the mail")
	b.sees("from hello@acme.example to grace@example.com", "Welcome, Grace", "Hello Grace")
	b.look("kept-found")

	// Raw mail may have anything in it.
	got := v.ask(http.MethodPost, "/api/mail/send/raw", v.admin, `{"domain":"shop.acme.example","toEmail":"eve@example.com",`+
		`"subject":"<script>window.pwned = 1</script>","bodyHtml":"<p>Hello Eve</p><img src=\"`+v.trap.URL+`/image\"><script>window.parent.pwned = 1</script>"}`,
		"X-Internal-Service-Token: "+v.admin, "X-Internal-Service-Name: t", "Content-Type: application/json")
	if got.status != http.StatusOK {
		t.Fatalf("send: %d %s", got.status, got.body)
	}
	at := strings.Split(got.header.Get("Location"), "/") // /api/mail/projects/ID/logs/ID
	kept := "/console/kept/" + v.acme + "/" + at[len(at)-1]
	b.open(kept)
	b.sees("Hello Eve")
	var pwned bool
	if b.eval("window.pwned === 1", &pwned); pwned || v.trapped.Load() != 0 {
		t.Errorf("a script ran: %v, requests that left: %d", pwned, v.trapped.Load())
	}
	if len(v.post.Letters()) != 0 {
		t.Errorf("%d mails went out", len(v.post.Letters()))
	}
	b = v.signedIn(v.keys["acme"]) // may read this project
	b.open(kept)
	b.sees("Hello Eve")
}
