package api_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// settings is a request that tests a sink's settings.
func settings(s *testrig.Sink, more string) string {
	return fmt.Sprintf(`{"host":"127.0.0.1","port":%d,"fromEmail":"hello@post.example","toEmail":"ada@example.com"%s}`, s.Port(), more)
}

const testPath = "/projects/smtp-config/test"

// The SMTP test tells how long each step took, and that the mail went out.
func TestSMTPTest(t *testing.T) {
	s := newSink(t)
	p := startPost(t, s, nil)
	a := p.ask("POST", testPath, p.other, settings(s, `,"username":"acme","password":"right","fromName":"Ä, \"Inc\"","replyTo":"b@post.example"`))
	a.check(t, 200, "")
	d := a.data()
	if d["connected"] != true || d["mailSent"] != true || d["toEmail"] != "ada@example.com" || len(d) != 4 {
		t.Errorf("%s", a.body)
	}
	steps := stepsOf(t, d)
	if steps = slices.DeleteFunc(steps, func(name string) bool { return name == "dns" }); !slices.Equal(steps, []string{"connect", "auth", "send"}) {
		t.Errorf("steps %q", steps)
	}
	if got := s.To("ada@example.com"); len(got) != 1 || !strings.Contains(got[0].Text, "Reply-To: ") {
		t.Errorf("%+v", got)
	}
	for id := range int64(50) {
		if _, total, err := p.resolver.MailLogs(id, queryAll); err != nil || total > 0 {
			t.Errorf("project %d: %d log entries, %v", id, total, err)
		}
	}
}

// stepsOf are the names of the steps in an answer's data.
func stepsOf(t *testing.T, d map[string]any) (names []string) {
	t.Helper()
	steps, _ := d["steps"].([]any)
	for _, step := range steps {
		names = append(names, step.(map[string]any)["name"].(string))
		if ms := step.(map[string]any)["milliseconds"].(float64); ms < 0 {
			t.Errorf("step %v", step)
		}
	}
	return names
}

// A test of what is stored uses the stored password, and tells nobody what it is.
func TestSMTPTestStored(t *testing.T) {
	s := newSink(t)
	p := startPost(t, s, nil)
	test := func(project int64, key, body string) *answer {
		t.Helper()
		return p.ask("POST", fmt.Sprintf("/projects/%d/smtp-config/test", project), key, body)
	}
	const to = `{"toEmail":"ada@example.com"}`
	a := test(postID, p.poster, to)
	a.check(t, 200, "")
	if d := a.data(); len(d) != 4 || d["connected"] != true || d["mailSent"] != true || d["toEmail"] != "ada@example.com" {
		t.Errorf("data %v", d)
	}
	if got := s.To("ada@example.com"); len(got) != 1 || got[0].From != "hello@post.example" {
		t.Errorf("%+v", got)
	}
	a = test(oddID, p.all, to) // a wrong password is stored
	a.check(t, 400, "SMTP_AUTH_FAILED")
	if !slices.Equal(a.fields(), []string{"username", "password"}) {
		t.Errorf("%s", a.body)
	}
	test(deadID, p.all, to).check(t, 400, "SMTP_CONNECTION_REFUSED")
	test(bareID, p.all, to).check(t, 409, "SMTP_NOT_CONFIGURED")
	test(99, p.all, to).check(t, 404, "NOT_FOUND")
	test(deadID, p.poster, to).check(t, 403, "FORBIDDEN") // another project's
	test(postID, p.reader, to).check(t, 403, "FORBIDDEN")
	test(postID, p.poster, `{}`).check(t, 400, "VALIDATION_ERROR")
	// Settings of the body do not count: the password goes nowhere else.
	a = test(postID, p.poster, `{"toEmail":"bob@example.com","host":"mail.evil.example","port":25}`)
	a.check(t, 200, "")
	if len(s.To("bob@example.com")) != 1 {
		t.Error("the mail went elsewhere")
	}
}

// What is wrong with the settings is the caller's to correct: 400, with the field.
func TestSMTPTestFails(t *testing.T) {
	s := newSink(t)
	p := startPost(t, s, nil)
	port := strconv.Itoa(testrig.FreePort(t))
	for _, c := range []struct {
		body      string
		code      string
		message   string
		fields    []string
		connected bool
		said      bool   // the server
		steps     string // behind dns
	}{
		{settings(s, `,"username":"acme","password":"canary-password"`), "SMTP_AUTH_FAILED",
			"Authentication failed: the SMTP server rejected the username or password (535)", []string{"username", "password"}, false, true, "connect auth"},
		{settings(s, `,"tlsEnabled":true`), "SMTP_STARTTLS_UNAVAILABLE", "", []string{"tlsEnabled"}, false, false, "connect tls"},
		{strings.Replace(settings(s, ""), "ada@", "nobody@", 1), "SMTP_RECIPIENT_REJECTED", "", []string{"toEmail"}, true, true, "connect send"},
		{fmt.Sprintf(`{"host":"127.0.0.1","port":%s,"fromEmail":"a@post.example","toEmail":"ada@example.com"}`, port), "SMTP_CONNECTION_REFUSED", "", []string{"port"}, false, false, "connect"},
		{strings.Replace(settings(s, ""), "127.0.0.1", "169.254.169.254", 1), "SMTP_ADDRESS_NOT_ALLOWED", "", []string{"host"}, false, false, "connect"},
	} {
		a := p.ask("POST", testPath, p.poster, c.body)
		a.check(t, 400, c.code)
		if message, _ := a.json["message"].(string); c.message != "" && message != c.message {
			t.Errorf("%s: message %q", c.code, message)
		}
		d := a.data()
		if reply, said := d["serverReply"].(string); said != c.said || said && reply == "" {
			t.Errorf("%s: the server said %q", c.code, reply)
		}
		delete(d, "serverReply")
		if steps := strings.TrimPrefix(strings.Join(stepsOf(t, d), " "), "dns "); steps != c.steps {
			t.Errorf("%s: steps %q, want %q", c.code, steps, c.steps)
		}
		if !slices.Equal(a.fields(), c.fields) || len(d) != 4 || d["connected"] != c.connected || d["mailSent"] != false || d["toEmail"] == "" {
			t.Errorf("%s: fields %q, data %v", c.code, a.fields(), d)
		}
		if strings.Contains(string(a.body), "canary") {
			t.Errorf("a password shows: %s", a.body)
		}
	}
	if got := s.Letters(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestSMTPTestRefused(t *testing.T) {
	s := newSink(t)
	p := startPost(t, s, nil)
	for _, c := range []struct {
		key, body string
		status    int
		code      string
		fields    []string
	}{
		{p.reader, `{`, 403, "FORBIDDEN", nil},
		{p.poster, `{}`, 400, "VALIDATION_ERROR", []string{"host", "fromEmail", "toEmail"}},
		{p.poster, `{"host":7,"port":"25","username":null,"password":1,"fromEmail":"a","fromName":[],"replyTo":"x y","toEmail":"","sslEnabled":1,"tlsEnabled":"no"}`,
			400, "VALIDATION_ERROR", []string{"host", "port", "username", "password", "fromName", "sslEnabled", "tlsEnabled", "toEmail", "fromEmail", "replyTo"}},
		{p.poster, settings(s, `,"username":"acme","password":"****"`), 400, "VALIDATION_ERROR", []string{"password"}},
		{p.poster, settings(s, `,"password":"alone"`), 400, "VALIDATION_ERROR", []string{"username"}},
		{p.poster, strings.Replace(settings(s, ""), `"port":`, `"port":0,"x":`, 1), 400, "VALIDATION_ERROR", []string{"port"}},
		{p.poster, strings.Replace(settings(s, ""), `"port":`, `"port":65536,"x":`, 1), 400, "VALIDATION_ERROR", []string{"port"}},
		{p.poster, strings.Replace(settings(s, ""), "127.0.0.1", "a b", 1), 400, "VALIDATION_ERROR", []string{"host"}},
		{p.poster, strings.Replace(settings(s, ""), "127.0.0.1", "mail.example:25", 1), 400, "VALIDATION_ERROR", []string{"host"}},
	} {
		a := p.ask("POST", testPath, c.key, c.body)
		a.check(t, c.status, c.code)
		if c.fields != nil && !slices.Equal(a.fields(), c.fields) {
			t.Errorf("%s: fields %q, want %q", c.body, a.fields(), c.fields)
		}
		if strings.Contains(string(a.body), `"data"`) {
			t.Errorf("there is data: %s", a.body)
		}
	}
}

// Only so many tests run at a time. A key whose servers are silent leaves places for the tests of others.
func TestSMTPTestsAtOnce(t *testing.T) {
	s := newSink(t)
	release := s.Hold()
	p := startPost(t, s, nil)
	const most = 12 // of 16
	var running []<-chan *answer
	for range most {
		running = append(running, p.later("POST", testPath, p.poster, settings(s, "")))
	}
	var a *answer
	testrig.Eventually(t, "a refusal", func() bool {
		if s.Counts().Held < most {
			return false
		}
		a = p.ask("POST", testPath, p.poster, settings(s, ""))
		return true
	})
	a.check(t, 429, "RATE_LIMITED")
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	other := p.later("POST", testPath, p.all, settings(s, ""))
	testrig.Eventually(t, "the test of another key", func() bool { return s.Counts().Held == most+1 })
	release()
	for _, answers := range running {
		came(t, answers).check(t, 200, "")
	}
	came(t, other).check(t, 200, "")
	p.ask("POST", testPath, p.poster, settings(s, "")).check(t, 200, "")
}
