package api_test

import (
	"errors"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// Mail that is not tried says what it waits for, and names no time at which it would be tried.
func TestStoppedMailSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	p := startPost(t, newSink(t), nil)
	body := `{"domain":"odd.example","toEmail":"ada@example.com","subject":"s","bodyText":"t"}`
	p.ask("POST", "/send/raw", p.all, body).check(t, 502, "SMTP_AUTH_FAILED")
	a := p.ask("POST", "/send/raw", p.all, body) // the config has not changed: not tried
	a.check(t, 202, "")
	if data, _ := a.json["data"].(map[string]any); data["waitingFor"] != "a change of the SMTP config: it failed with SMTP_AUTH_FAILED" {
		t.Errorf("the answer of the send: %s", a.body)
	}
	entry := p.entry(a)
	want := "a change of the SMTP config: it failed with SMTP_AUTH_FAILED"
	if entry["status"] != "RETRYING" || entry["waitingFor"] != want || entry["nextAttemptAt"] != nil {
		t.Errorf("entry %v", entry)
	}
	path := strings.TrimPrefix(a.Header.Get("Location"), "/api/mail")
	list := p.ask("GET", path[:strings.LastIndexByte(path, '/')]+"?status=RETRYING", p.reader, "")
	if !strings.Contains(string(list.body), want) {
		t.Errorf("the list: %s", list.body)
	}

	// A server that is away is tried again, at a time.
	a = p.ask("POST", "/send/raw", p.all, strings.Replace(body, "odd.", "dead.", 1))
	a.check(t, 202, "")
	testrig.Eventually(t, "a next attempt", func() bool {
		entry = p.entry(a)
		return entry["waitingFor"] == nil && entry["nextAttemptAt"] != nil
	})
}

// Who may read the config learns which secret keeps its mail from being sent; who may only send does not.
func TestMailSecretThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	unset := errors.New("the environment variable POST_PASSWORD is not set")
	p := startPost(t, newSink(t), func(o *mailer.Options) {
		o.OpenSecret = func(catalog.Secret, string) (string, error) { return "", unset }
	})
	a := p.ask("POST", "/send/template", p.poster, hello)
	a.check(t, 503, "UNAVAILABLE")
	if !strings.Contains(string(a.body), "the password of project post cannot be opened: "+unset.Error()) {
		t.Errorf("a key with read: %s", a.body)
	}
	a = p.ask("POST", "/send/test-template", p.other, `{"projectId":42,"toEmail":"ada@example.com","templateCode":"PLAIN"}`)
	a.check(t, 503, "UNAVAILABLE")
	if strings.Contains(string(a.body), "POST_PASSWORD") {
		t.Errorf("a key without read: %s", a.body)
	}
}

// A mail that is sent again names the entry of the earlier one, which must be of the same project.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	p := startPost(t, newSink(t), nil)
	body := `{"domain":"post.example","toEmail":"ada@example.com","subject":"s","bodyText":"t"}`
	first := p.ask("POST", "/send/raw", p.all, body)
	first.check(t, 200, "")
	if got := p.entry(first)["againOf"]; got != nil {
		t.Errorf("the first one repeats %v", got)
	}
	id := first.Header.Get("Location")[strings.LastIndexByte(first.Header.Get("Location"), '/')+1:]
	again := strings.Replace(body, "{", `{"againOf":`+id+`,`, 1)
	second := p.ask("POST", "/send/raw", p.all, again)
	second.check(t, 200, "")
	if got, _ := p.entry(second)["againOf"].(float64); itoa(int(got)) != id {
		t.Errorf("the second one repeats %v, want %s", got, id)
	}
	for _, bad := range []string{"1", "0", `"x"`, "-1"} {
		a := p.ask("POST", "/send/raw", p.all, strings.Replace(body, "{", `{"againOf":`+bad+`,`, 1))
		if a.check(t, 400, "VALIDATION_ERROR"); len(a.fields()) != 1 || a.fields()[0] != "againOf" {
			t.Errorf("%s: %s", bad, a.body)
		}
	}
	p.ask("POST", "/send/raw", p.all, strings.Replace(again, "post.example", "odd.example", 1)).check(t, 400, "VALIDATION_ERROR")
	p.ask("POST", "/send/raw", p.all, strings.Replace(body, "{", `{"againOf":null,`, 1)).check(t, 200, "")
}
