package api_test

import (
	"fmt"
	"strings"
	"testing"

	"fingerpost/mailer"
)

// A mail that was kept is read with the keys that may read its project's log, and with no others.
func TestKeptMail(t *testing.T) {
	t.Parallel()
	p := startPost(t, newSink(t), func(o *mailer.Options) { o.Keep = true })
	sent := p.ask("POST", "/send/template", p.poster, hello, "Idempotency-Key: once")
	sent.check(t, 200, "")
	if sent.data()["sent"] != true || sent.data()["kept"] != true || !strings.Contains(sent.json["message"].(string), "not sent") || len(p.sink.Letters()) != 0 {
		t.Errorf("answered %s, and %d mails went out", sent.body, len(p.sink.Letters()))
	}
	entry := p.entry(sent)
	if entry["status"] != "SENT" || entry["providerType"] != "SINK" {
		t.Errorf("entry %v", entry)
	}
	path := strings.TrimPrefix(sent.Header.Get("Location"), "/api/mail") + "/message"
	for _, key := range []string{p.reader, p.poster} {
		a := p.ask("GET", path, key, "")
		a.check(t, 200, "")
		d := a.data()
		if d["logId"] != entry["id"] || d["toEmail"] != "ada@example.com" || d["fromEmail"] != "hello@post.example" || d["bodyHtml"] != nil ||
			d["bodyText"] != "Hi Ada, it is 7 from The post.\n" || d["subject"] != entry["subject"] ||
			!strings.Contains(d["source"].(string), entry["messageId"].(string)) || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v: %s", a.Header, a.body)
		}
	}
	p.ask("GET", path, p.other, "").check(t, 403, "FORBIDDEN")    // may not read
	p.ask("GET", path, p.onlyMail, "").check(t, 403, "FORBIDDEN") // nor this
	p.ask("GET", path, p.acme, "").check(t, 403, "FORBIDDEN")     // reads another project
	p.ask("GET", path, p.expired, "").check(t, 401, "UNAUTHORIZED")
	p.ask("GET", strings.Replace(path, fmt.Sprint(postID), fmt.Sprint(oddID), 1), p.reader, "").check(t, 404, "NOT_FOUND")
	p.ask("GET", "/projects/41/logs/7/message", p.reader, "").check(t, 404, "NOT_FOUND")
	p.ask("GET", "/projects/41/logs/x/message", p.reader, "").check(t, 400, "VALIDATION_ERROR")

	again := p.ask("POST", "/send/template", p.poster, hello, "Idempotency-Key: once")
	if again.check(t, 200, ""); again.json["message"] != sent.json["message"] || again.Header.Get("Idempotent-Replay") != "true" {
		t.Errorf("repeated: %s", again.body)
	}
	refused := p.ask("POST", "/projects/smtp-config/test", p.poster,
		`{"host":"smtp.example","fromEmail":"a@example.com","toEmail":"b@example.com"}`)
	if refused.check(t, 503, "UNAVAILABLE"); !strings.Contains(string(refused.body), "--mail-sink") {
		t.Errorf("test of settings: %s", refused.body)
	}
	log := p.log.String()
	if strings.Contains(log, "it is 7") || strings.Contains(log, "ada@") {
		t.Errorf("the log has the mail:\n%s", log)
	}
}
