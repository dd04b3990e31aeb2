package say_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
)

// Every code that the mail's README lists has a reason, and every field of a reason is one of the SMTP config.
func TestReasons(t *testing.T) {
	text, err := os.ReadFile("../../../mailer/README.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, code := range regexp.MustCompile("`(SMTP_[A-Z_]+[A-Z])`").FindAllStringSubmatch(string(text), -1) {
		seen++
		if r := say.ReasonOf(code[1]); say.Reasons[code[1]].Why == "" || r.Why == "" {
			t.Errorf("%s has no reason", code[1])
		}
	}
	if seen < 25 {
		t.Errorf("the README lists only %d codes", seen)
	}
}

func TestStates(t *testing.T) {
	now := time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)
	p := func(s string) *string { return &s }
	f := func(m client.MailEntry, kind, text string) {
		t.Helper()
		if got := say.StateOf(&m, now); got.Kind != kind || got.Text != text {
			t.Errorf("%+v, want %s %q", got, kind, text)
		}
	}
	f(client.MailEntry{Status: "SENT"}, "good", "Sent")
	f(client.MailEntry{Status: "SENT", ProviderType: "SINK"}, "warn", "Kept, not sent")
	f(client.MailEntry{Status: "SENDING"}, "warn", "Being sent")
	f(client.MailEntry{Status: "FAILED", ErrorCode: p("SMTP_RECIPIENT_REJECTED")}, "bad", "Not sent: the recipient's address is refused")
	f(client.MailEntry{Status: "EXPIRED"}, "bad", "Given up")
	f(client.MailEntry{Status: "RETRYING", WaitingFor: p("x"), ErrorCode: p("SMTP_AUTH_FAILED")}, "bad", "Stopped: the username or the password is refused")
	f(client.MailEntry{Status: "RETRYING", WaitingFor: p("the project's status: it is suspended")}, "bad",
		"Stopped: waits for the project's status: it is suspended")
	f(client.MailEntry{Status: "RETRYING", NextAttemptAt: p("2026-01-31T09:34:00.000000")}, "warn", "Waiting: next try in 4 minutes")
	f(client.MailEntry{Status: "RETRYING", NextAttemptAt: p("2026-01-31T11:31:00.000000")}, "warn", "Waiting: next try in 2 hours")
	f(client.MailEntry{Status: "RETRYING", NextAttemptAt: p("2026-01-31T09:30:01.000000")}, "warn", "Waiting: next try in 1 second")
	f(client.MailEntry{Status: "RETRYING", NextAttemptAt: p("2026-01-31T09:00:00.000000")}, "warn", "Waiting: next try now")
	f(client.MailEntry{Status: "FAILED", ErrorCode: p("SMTP_NEW")}, "bad", "Not sent: it failed with SMTP_NEW")
}
