package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/api/ops"
	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

const hello = `{"domain":"post.example","toEmail":"ada@example.com","templateCode":"HELLO","variables":{"userName":"Ada","code":"7"}}`

// A mail that the server takes is SENT by the time of the answer, and is what was asked for.
func TestSend(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	for _, c := range []struct {
		path, body    string
		subject, text string
		code          any
	}{
		{"/send/template", hello, "Hello Ada", "Hi Ada, it is 7 from The post.", "HELLO"},
		{"/send/template", `{"domain":"POST.example.:8443","toEmail":"ada@example.com","templateCode":"SHARED"}`, "Shared by The post", "For everybody.", "SHARED"},
		{"/send/test-template", `{"projectId":41,"toEmail":"ada@example.com","templateCode":"PLAIN","variables":{"unused":"x"}}`, "Plain", "No variables here.", "PLAIN"},
		{"/send/test-template", `{"projectId":42,"toEmail":"ada@example.com","templateCode":"PLAIN"}`, "Plain", "No variables here.", "PLAIN"}, // mail is switched off
		{"/send/raw", `{"domain":"post.example","toEmail":"ada@example.com","subject":"{{raw}}","bodyText":"as {{it}} is"}`, "{{raw}}", "as {{it}} is", nil},
	} {
		before := len(p.sink.Letters())
		key := p.all
		a := p.ask("POST", c.path, key, c.body)
		a.check(t, 200, "")
		got := p.sink.Letters()
		if len(got) != before+1 || got[before].To != "ada@example.com" || !strings.Contains(got[before].Text, c.text) {
			t.Errorf("%s %s: the sink has %+v", c.path, c.body, got)
			continue
		}
		entry := p.entry(a)
		if a.data()["sent"] != true || a.data()["logId"] != entry["id"] || a.data()["messageId"] != entry["messageId"] ||
			!strings.Contains(got[before].Text, entry["messageId"].(string)) {
			t.Errorf("%s: answer %s, entry %v, mail\n%s", c.path, a.body, entry, got[before].Text)
		}
		if entry["status"] != "SENT" || entry["subject"] != c.subject || entry["templateCode"] != c.code || entry["sentAt"] == nil ||
			entry["serviceName"] != "shop.v1" || entry["attempts"] != 1.0 || entry["errorMessage"] != nil {
			t.Errorf("%s: entry %v", c.path, entry)
		}
	}
}

// The errors of a request come in the order of api/README.md, Errors, all failing fields at once. Nothing is sent or
// logged.
func TestSendRefused(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	large := strings.Repeat("x", 513<<10)
	for _, c := range []struct {
		path, key, body string
		headers         []string
		status          int
		code            string
		fields          []string
	}{
		{path: "/send/template", key: p.reader, body: `{`, status: 403, code: "FORBIDDEN"},
		{path: "/send/template", key: p.poster, body: `{`, status: 400, code: "VALIDATION_ERROR", fields: []string{"body"}},
		{path: "/send/template", key: p.poster, body: `{}`, headers: []string{"Content-Type: text/plain"}, status: 415, code: "UNSUPPORTED_MEDIA_TYPE"},
		{path: "/send/template", key: p.poster, body: `{}`, status: 400, code: "VALIDATION_ERROR", fields: []string{"domain", "toEmail", "templateCode"}},
		{path: "/send/template", key: p.poster, body: `{"domain":7,"toEmail":null,"templateCode":"","variables":{"a":1,"userName":"x","b":null}}`,
			headers: []string{"Idempotency-Key: " + strings.Repeat("k", 256)}, status: 400, code: "VALIDATION_ERROR",
			fields: []string{"Idempotency-Key", "domain", "toEmail", "templateCode", "variables.a", "variables.b"}},
		{path: "/send/template", key: p.poster, body: hello, headers: []string{"Idempotency-Key: a", "Idempotency-Key: b"}, status: 400,
			code: "VALIDATION_ERROR", fields: []string{"Idempotency-Key"}},
		{path: "/send/template", key: p.poster, body: hello, headers: []string{"Idempotency-Key: ü"}, status: 400,
			code: "VALIDATION_ERROR", fields: []string{"Idempotency-Key"}},
		{path: "/send/template", key: p.poster, body: strings.Replace(hello, `"domain"`, `"colour":1,"domain"`, 1), headers: []string{"Prefer: handling=strict"},
			status: 400, code: "VALIDATION_ERROR", fields: []string{"colour"}},
		{path: "/send/template", key: p.poster, body: `{"domain":"post.example","toEmail":"a@b.example, c@d.example","templateCode":"HELLO","variables":[]}`,
			status: 400, code: "VALIDATION_ERROR", fields: []string{"toEmail", "variables"}},
		{path: "/send/raw", key: p.poster, body: `{"domain":"*.post.example","toEmail":"x\r\nBcc: y@z.example","subject":"a\r\nb"}`,
			status: 400, code: "VALIDATION_ERROR", fields: []string{"domain", "toEmail", "subject", "bodyHtml"}},
		{path: "/send/raw", key: p.poster, body: `{"domain":"post.example","toEmail":"a@b.example","subject":" ","bodyHtml":"` + large + `"}`,
			status: 400, code: "VALIDATION_ERROR", fields: []string{"subject", "bodyHtml"}},
		{path: "/send/test-template", key: p.poster, body: `{"projectId":"41","toEmail":"a@b.example","templateCode":"PLAIN"}`,
			status: 400, code: "VALIDATION_ERROR", fields: []string{"projectId"}},
		{path: "/send/test-template", key: p.poster, body: `{"projectId":9007199254740992,"toEmail":"a@b.example","templateCode":"PLAIN"}`,
			status: 400, code: "VALIDATION_ERROR", fields: []string{"projectId"}},
		// The project.
		{path: "/send/test-template", key: p.poster, body: `{"projectId":999,"toEmail":"a@b.example","templateCode":"PLAIN"}`, status: 404, code: "NOT_FOUND"},
		{path: "/send/test-template", key: p.other, body: `{"projectId":41,"toEmail":"a@b.example","templateCode":"PLAIN"}`, status: 403, code: "FORBIDDEN"},
		{path: "/send/template", key: p.other, body: hello, status: 403, code: "FORBIDDEN"},
		{path: "/send/template", key: p.all, body: strings.Replace(hello, "post.example", "nowhere.example", 1), status: 404, code: "NOT_FOUND"},
		{path: "/send/template", key: p.all, body: strings.Replace(hello, "post.example", "initech.example", 1), status: 403, code: "PROJECT_SUSPENDED"},
		{path: "/send/test-template", key: p.all, body: `{"projectId":3,"toEmail":"a@b.example","templateCode":"PLAIN"}`, status: 403, code: "PROJECT_SUSPENDED"},
		{path: "/send/template", key: p.all, body: strings.Replace(hello, "post.example", "off.acme.example", 1), status: 403, code: "DOMAIN_NOT_VERIFIED"},
		// Then what it has.
		{path: "/send/template", key: p.all, body: strings.Replace(hello, "post.example", "mute.example", 1), status: 403, code: "MAIL_DISABLED"},
		{path: "/send/template", key: p.all, body: strings.Replace(hello, "post.example", "bare.example", 1), status: 409, code: "SMTP_NOT_CONFIGURED"},
		{path: "/send/template", key: p.poster, body: strings.Replace(hello, "HELLO", "NONE", 1), status: 404, code: "NOT_FOUND"},
		{path: "/send/template", key: p.poster, body: strings.Replace(hello, "HELLO", "ASLEEP", 1), status: 409, code: "TEMPLATE_INACTIVE"},
		{path: "/send/template", key: p.poster, body: `{"domain":"post.example","toEmail":"a@b.example","templateCode":"HELLO"}`,
			status: 400, code: "VALIDATION_ERROR", fields: []string{"variables.userName", "variables.code"}},
		{path: "/send/template", key: p.poster, body: `{"domain":"post.example","toEmail":"a@b.example","templateCode":"HELLO","variables":{"userName":"a\nBcc: b","code":"1"}}`,
			status: 400, code: "VALIDATION_ERROR", fields: []string{"variables.userName"}},
	} {
		a := p.ask("POST", c.path, c.key, c.body, c.headers...)
		a.check(t, c.status, c.code)
		if c.fields != nil && !slices.Equal(a.fields(), c.fields) {
			t.Errorf("%s %.200s: fields %q, want %q", c.path, c.body, a.fields(), c.fields)
		}
		if a.json["path"] != "/api/mail"+c.path || a.json["status"] != float64(c.status) {
			t.Errorf("%s %.200s: not the mail form: %s", c.path, c.body, a.body)
		}
	}
	if got := p.sink.Letters(); len(got) > 0 {
		t.Errorf("%d mails were sent, such as %+v", len(got), got[0])
	}
	for _, id := range []int64{postID, muteID, bareID} {
		if a := p.ask("GET", fmt.Sprintf("/projects/%d/logs", id), p.reader, ""); a.json["meta"].(map[string]any)["total"] != 0.0 {
			t.Errorf("project %d: there are log entries: %s", id, a.body)
		}
	}
}

// The result of an attempt decides the status: 502 for good, 202 for now.
func TestSendOutcomes(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	for _, c := range []struct {
		domain, to     string
		status         int
		code           string
		entry, because string
	}{
		{"post.example", "nobody@example.com", 502, "SMTP_RECIPIENT_REJECTED", "FAILED", "SMTP_RECIPIENT_REJECTED"},
		{"post.example", "later@example.com", 202, "", "RETRYING", "SMTP_TEMPORARY"},
		{"odd.example", "ada@example.com", 502, "SMTP_AUTH_FAILED", "FAILED", "SMTP_AUTH_FAILED"},
		{"dead.example", "ada@example.com", 202, "", "RETRYING", "SMTP_CONNECTION_REFUSED"},
	} {
		a := p.ask("POST", "/send/raw", p.all, fmt.Sprintf(`{"domain":%q,"toEmail":%q,"subject":"s","bodyText":"t"}`, c.domain, c.to))
		a.check(t, c.status, c.code)
		if d := a.data(); c.status == 202 && (len(d) != 4 || d["sent"] != false || d["queued"] != true || d["logId"] == nil) {
			t.Errorf("%s: %s", c.domain, a.body)
		}
		e := p.entry(a)
		if e["status"] != c.entry || e["errorCode"] != c.because || e["errorMessage"] == nil || (e["nextAttemptAt"] == nil) != (c.entry == "FAILED") {
			t.Errorf("%s to %s: %v", c.domain, c.to, e)
		}
		if strings.Contains(fmt.Sprint(e), "wrong") || strings.Contains(string(a.body), "wrong") && c.domain != "odd.example" {
			t.Errorf("%s: a password shows: %v %s", c.domain, e, a.body)
		}
	}
}

// A request that waits longer than the budget is answered that the mail is queued.
func TestBudget(t *testing.T) {
	s := newSink(t)
	release := s.Hold()
	p := startPost(t, s, func(o *mailer.Options) { o.Budget = 50 * time.Millisecond })
	a := p.ask("POST", "/send/template", p.poster, hello)
	a.check(t, 202, "")
	if e := p.entry(a); e["status"] != "RETRYING" && e["status"] != "SENDING" {
		t.Errorf("%v", e)
	}
	release()
	testrig.Eventually(t, "the mail's end", func() bool { return p.entry(a)["status"] == "SENT" })
	if got := s.To("ada@example.com"); len(got) != 1 {
		t.Errorf("%d mails", len(got))
	}
}

// A repeat with the same Idempotency-Key gets the first answer, whatever that was.
func TestIdempotency(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	key := "Idempotency-Key: one two"
	first := p.ask("POST", "/send/template", p.poster, hello, key)
	first.check(t, 200, "")
	for _, body := range []string{hello, strings.Replace(hello, `,"toEmail"`, ` , "toEmail"`, 1),
		`{"variables":{"code":"7","userName":"\u0041da"},"templateCode":"HELLO","toEmail":"ada@example.com","domain":"post.example"}`} {
		a := p.ask("POST", "/send/template", p.poster, body, key)
		a.check(t, 200, "")
		if a.Header.Get("Idempotent-Replay") != "true" || fmt.Sprint(a.data()) != fmt.Sprint(first.data()) || a.Header.Get("Location") != first.Header.Get("Location") {
			t.Errorf("%v %s, first %s", a.Header, a.body, first.body)
		}
	}
	p.ask("POST", "/send/template", p.poster, strings.Replace(hello, "Ada", "Eve", 1), key).check(t, 422, "IDEMPOTENCY_MISMATCH")
	p.ask("POST", "/send/raw", p.poster, `{"domain":"post.example","toEmail":"a@b.example","subject":"s","bodyText":"t"}`, key).check(t, 422, "IDEMPOTENCY_MISMATCH")
	// Another project's key is another key.
	p.ask("POST", "/send/test-template", p.all, `{"projectId":42,"toEmail":"ada@example.com","templateCode":"PLAIN"}`, key).check(t, 200, "")
	for _, to := range []string{"nobody@example.com", "later@example.com"} {
		body := strings.Replace(hello, "ada@example.com", to, 1)
		one, two := p.ask("POST", "/send/template", p.poster, body, "Idempotency-Key: "+to), p.ask("POST", "/send/template", p.poster, body, "Idempotency-Key: "+to)
		if one.StatusCode != two.StatusCode || one.code() != two.code() || fmt.Sprint(one.data()) != fmt.Sprint(two.data()) ||
			one.json["message"] != two.json["message"] || two.Header.Get("Idempotent-Replay") != "true" || one.Header.Get("Idempotent-Replay") != "" {
			t.Errorf("%s: %d %s, then %d %s", to, one.StatusCode, one.body, two.StatusCode, two.body)
		}
	}
	// What was refused before it was accepted has no answer to repeat.
	p.ask("POST", "/send/template", p.poster, strings.Replace(hello, "HELLO", "NONE", 1), "Idempotency-Key: fresh").check(t, 404, "NOT_FOUND")
	a := p.ask("POST", "/send/template", p.poster, hello, "Idempotency-Key: fresh")
	a.check(t, 200, "")
	if a.Header.Get("Idempotent-Replay") != "" || len(p.sink.To("ada@example.com")) != 3 {
		t.Errorf("%v, %d mails", a.Header, len(p.sink.To("ada@example.com")))
	}
}

// While the first request runs, a repeat is answered 409 with Retry-After.
func TestIdempotencyRunning(t *testing.T) {
	s := newSink(t)
	release := s.Hold()
	p := startPost(t, s, nil)
	first := p.later("POST", "/send/template", p.poster, hello, "Idempotency-Key: k")
	testrig.Eventually(t, "the first attempt", func() bool { return p.mail.Counts().Attempts == 1 })
	a := p.ask("POST", "/send/template", p.poster, hello, "Idempotency-Key: k")
	a.check(t, 409, "CONFLICT")
	if a.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
	}
	release()
	came(t, first).check(t, 200, "")
	p.ask("POST", "/send/template", p.poster, hello, "Idempotency-Key: k").check(t, 200, "")
}

// Requests that wait for SMTP servers do not take all connections: mails beyond their share are queued at once.
func TestShareOfWaiting(t *testing.T) {
	s := newSink(t)
	release := s.Hold()
	p := startPost(t, s, nil, func(o *api.Options) { o.Limits.Sends = 2 })
	var waiting []<-chan *answer
	for range 2 {
		waiting = append(waiting, p.later("POST", "/send/template", p.poster, hello))
	}
	testrig.Eventually(t, "two attempts", func() bool { return p.mail.Counts().Attempts == 2 })
	for range 3 {
		begun := time.Now()
		p.ask("POST", "/send/template", p.poster, hello).check(t, 202, "")
		testrig.AtMost(t, time.Since(begun), 5*time.Second)
	}
	release()
	for _, answers := range waiting {
		came(t, answers).check(t, 200, "")
	}
	testrig.Eventually(t, "the queue's end", func() bool { return p.mail.Counts().Waiting == 0 })
	if got := len(s.To("ada@example.com")); got != 5 {
		t.Errorf("%d mails, want 5", got)
	}
	p.ask("POST", "/send/template", p.poster, hello).check(t, 200, "") // the share is free again
}

// At a shutdown, a request that waits for an SMTP server is answered before the time is over.
func TestShutdownAnswersWaiting(t *testing.T) {
	testrig.Thorough(t)
	if testing.Short() {
		t.Skip("waits for timeouts")
	}
	t.Parallel()
	s := newSink(t)
	release := s.Hold()
	p := startPost(t, s, func(o *mailer.Options) { o.Budget = time.Minute })
	waiting := p.later("POST", "/send/template", p.poster, hello)
	testrig.Eventually(t, "the attempt", func() bool { return p.mail.Counts().Attempts == 1 })
	if err := p.server.Shutdown(within(t, testrig.Patience)); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	a := came(t, waiting)
	a.check(t, 202, "")
	release()
	if err := p.mail.Drain(within(t, testrig.Patience)); err != nil {
		t.Errorf("drain: %v", err)
	}
	if got := len(s.To("ada@example.com")); got != 1 {
		t.Errorf("%d mails", got)
	}
	logged, found, err := p.resolver.MailLog(postID, int64(a.data()["logId"].(float64)))
	if err != nil || !found || logged.Status != "SENT" {
		t.Errorf("%+v %v %v", logged, found, err)
	}
}

// A waiting handler keeps the content of its request, whatever arrives on other connections.
func TestSendsSideBySide(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: testrig.Patience}
	const clients, each = 16, 20
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := range each {
				mark := fmt.Sprintf("%c%03d", 'a'+c, i)
				body := fmt.Sprintf(`{"domain":"post.example","toEmail":"%s@example.com","templateCode":"HELLO","variables":{"userName":%q,"code":%q}}`,
					mark, strings.Repeat(mark, 1+i%7), mark)
				req, err := http.NewRequest("POST", "http://"+p.addr+"/api/mail/send/template", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("X-Internal-Service-Token", p.poster)
				req.Header.Set("X-Internal-Service-Name", "svc-"+mark)
				req.Header.Set("Idempotency-Key", "key-"+mark)
				res, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				text, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != 200 {
					t.Errorf("%s: %d %s", mark, res.StatusCode, text)
				}
			}
		})
	}
	all.Wait()
	client.CloseIdleConnections()
	for c := range clients {
		for i := range each {
			mark := fmt.Sprintf("%c%03d", 'a'+c, i)
			got := p.sink.To(mark + "@example.com")
			if len(got) != 1 || !strings.Contains(unfolded(got[0].Text), "Hello "+strings.Repeat(mark, 1+i%7)) || !strings.Contains(got[0].Text, "it is "+mark) {
				t.Fatalf("%s: %+v", mark, got)
			}
		}
	}
	page := p.ask("GET", fmt.Sprintf("/projects/%d/logs?limit=100", postID), p.reader, "")
	for _, row := range page.json["data"].([]any) {
		e := row.(map[string]any)
		if want := "svc-" + strings.TrimSuffix(e["toEmail"].(string), "@example.com"); e["serviceName"] != want {
			t.Errorf("%v, want %s", e, want)
		}
	}
}

// unfolded joins folded header lines.
func unfolded(text string) string { return strings.ReplaceAll(text, "\r\n ", " ") }

// Without a mail service the calls say so.
func TestNoMailService(t *testing.T) {
	h := start(t)
	p := &post{house: h}
	for _, c := range [][2]string{
		{"/send/test-template", `{"projectId":1,"toEmail":"a@b.example","templateCode":"X"}`},
		{"/projects/smtp-config/test", `{"host":"x.example","fromEmail":"a@b.example","toEmail":"a@b.example"}`},
	} {
		a := p.ask("POST", c[0], h.all, c[1])
		a.check(t, 503, "UNAVAILABLE")
		if a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", c[0])
		}
	}
}

// A send that the queue has no room for is 429 and leaves nothing behind.
func TestSendToFullQueue(t *testing.T) {
	var low atomic.Bool
	p := startPost(t, newSink(t), func(o *mailer.Options) {
		o.QueuePerProject = 1
		o.LowDisk = func() string {
			if low.Load() {
				return "0 kB free"
			}
			return ""
		}
	})
	first := `{"domain":"dead.example","toEmail":"ada@example.com","subject":"s","bodyText":"t"}`
	p.ask("POST", "/send/raw", p.all, first, "Idempotency-Key: one").check(t, 202, "")
	full := func(body string, total float64) {
		t.Helper()
		for range 2 { // nor is the idempotency key stored, which would make the second one a replay
			a := p.ask("POST", "/send/raw", p.all, body, "Idempotency-Key: two")
			a.check(t, 429, "RATE_LIMITED")
			if a.Header.Get("Retry-After") == "" || a.Header.Get("Idempotent-Replay") != "" {
				t.Errorf("headers %v", a.Header)
			}
		}
		if a := p.ask("GET", fmt.Sprintf("/projects/%d/logs", deadID), p.reader, ""); a.json["meta"].(map[string]any)["total"] != total {
			t.Errorf("log entries: %s", a.body)
		}
	}
	full(first, 1)
	if a := p.ask("POST", "/send/raw", p.all, first, "Idempotency-Key: one"); a.StatusCode != 202 || a.Header.Get("Idempotent-Replay") != "true" {
		t.Errorf("a replay: %d %s", a.StatusCode, a.body)
	}
	p.ask("POST", "/send/template", p.poster, hello).check(t, 200, "") // of another project
	low.Store(true)
	full(strings.Replace(first, "dead.", "post.", 1), 1)
	p.ask("POST", "/send/template", p.poster, `{"domain":"post.example","toEmail":"a@b.example","templateCode":"HELLO"}`).check(t, 400, "VALIDATION_ERROR")
	low.Store(false)
	p.ask("POST", "/send/template", p.poster, hello).check(t, 200, "")
}

// The ops listener reports the queue, and a project whose mail has stopped.
func TestMailFigures(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel() // it waits for seconds
	p := startPost(t, newSink(t), nil)
	o, err := ops.New(ops.Options{Resolver: p.resolver, Figures: p.server, Streams: p.server.EventStreams(), Config: &config{}, Mail: p.mail})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go o.Serve(ln)
	t.Cleanup(func() { _ = o.Shutdown(context.Background()) })
	get := func(path string) string {
		res, err := http.Get("http://" + ln.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return string(text)
	}
	p.ask("POST", "/send/template", p.poster, hello).check(t, 200, "")
	raw := `{"domain":%q,"toEmail":%q,"subject":"s","bodyText":"t"}`
	p.ask("POST", "/send/raw", p.all, fmt.Sprintf(raw, "post.example", "later@example.com")).check(t, 202, "")
	p.ask("POST", "/send/raw", p.all, fmt.Sprintf(raw, "odd.example", "ada@example.com")).check(t, 502, "SMTP_AUTH_FAILED")
	metrics := ""
	testrig.Eventually(t, "end of the attempts", func() bool { // an answer may come before its attempt is counted as over
		metrics = get("/metrics")
		return strings.Contains(metrics, "fingerpost_mail_attempts_running 0\n") &&
			strings.Contains(metrics, "fingerpost_mail_stopped_projects 1\n") // the queue is surveyed every few seconds
	})
	if !regexp.MustCompile(`\nfingerpost_mail_sends_total\{result="retrying"\} [1-9]`).MatchString(metrics) {
		t.Error("no mail is counted as retrying") // more than once if the survey comes after its next attempt
	}
	for _, line := range []string{`fingerpost_mail_sends_total{result="sent"} 1`,
		`fingerpost_mail_sends_total{result="failed"} 1`, "fingerpost_mail_queue_depth 1", "fingerpost_mail_attempts_running 0", "fingerpost_mail_stopped_projects 1"} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
	var status struct {
		Mail struct {
			Queued  int
			Stopped []struct {
				Project   string
				ProjectID int64
				Code      string
				Since     time.Time
				Waiting   int
			}
		}
	}
	text := get("/status")
	if err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&status); err != nil {
		t.Fatal(err)
	}
	if m := status.Mail; m.Queued != 1 || len(m.Stopped) != 1 || m.Stopped[0].Project != "odd" || m.Stopped[0].ProjectID != oddID ||
		m.Stopped[0].Code != "SMTP_AUTH_FAILED" || time.Since(m.Stopped[0].Since) > time.Minute {
		t.Errorf("%+v in %s", m, text)
	}
}

// TestRepeatAfterTheEnd: a repeat of an accepted request gets the first answer also when the project is suspended or the
// domain gone by now. A request that is new gets what is true now.
func TestRepeatAfterTheEnd(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	first := p.ask("POST", "/send/template", p.poster, hello, "Idempotency-Key: one")
	first.check(t, 200, "")
	repeated := func(status int, code string) {
		t.Helper()
		for _, key := range []string{p.poster, p.every} {
			a := p.ask("POST", "/send/template", key, hello, "Idempotency-Key: one")
			a.check(t, 200, "")
			if a.Header.Get("Idempotent-Replay") != "true" || fmt.Sprint(a.data()) != fmt.Sprint(first.data()) || a.Header.Get("Location") != first.Header.Get("Location") {
				t.Errorf("%v %s, first %s", a.Header, a.body, first.body)
			}
			p.ask("POST", "/send/template", key, hello, "Idempotency-Key: two").check(t, status, code)
			p.ask("POST", "/send/template", key, strings.Replace(hello, "Ada", "Eve", 1), "Idempotency-Key: one").check(t, status, code)
			p.ask("POST", "/send/template", key, hello).check(t, status, code)
		}
	}
	change := func(f func(c *catalog.ProjectConfig)) {
		d := p.mailFixture()
		for i := range d.Projects {
			if d.Projects[i].Project.ID == postID {
				f(&d.Projects[i])
			}
		}
		p.apply("mail.hcl", d)
	}
	change(func(c *catalog.ProjectConfig) { c.Project.Status = catalog.StatusSuspended })
	repeated(403, "PROJECT_SUSPENDED")
	change(func(c *catalog.ProjectConfig) { c.Domains[0].Active = false })
	repeated(403, "DOMAIN_NOT_VERIFIED")
	change(func(c *catalog.ProjectConfig) { c.Domains = nil })
	repeated(404, "NOT_FOUND")
	p.ask("POST", "/send/template", p.other, hello, "Idempotency-Key: one").check(t, 404, "NOT_FOUND") // another project's
}
