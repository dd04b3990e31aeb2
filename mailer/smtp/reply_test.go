package smtp_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"fingerpost/mailer/smtp"
)

func TestClean(t *testing.T) {
	t.Parallel()
	check := func(reply, enhanced, text string) {
		t.Helper()
		if e, s := smtp.Clean(reply, smtp.Server{}); e != enhanced || s != text {
			t.Errorf("%q: %q, %q", reply, e, s)
		}
	}
	check("5.7.1 no", "5.7.1", "no")
	check("5.7.1", "5.7.1", "")
	check("5.7.1 no\n5.7.1 relay", "5.7.1", "no relay")
	check("5.7.1x no", "", "5.7.1x no")
	check("1.2.3 no", "", "1.2.3 no")
	check("a\tb\x07c\x1b[31m\xffd", "", "a b?c?[31m?d")
	check("<script> \u202e ü", "", "<script> ? ü")
	check(strings.Repeat("ü", 300), "", strings.Repeat("ü", 200))
	if _, s := smtp.Clean("the password of acme", smtp.Server{Password: "Acme"}); strings.Contains(s, "acme") {
		t.Error(s)
	}
	if _, s := smtp.Clean("no", smtp.Server{Password: ""}); s != "no" {
		t.Error(s)
	}
}

// TestRetryHint: texts that servers are known to use.
func TestRetryHint(t *testing.T) {
	t.Parallel()
	check := func(reply string, want time.Duration) {
		t.Helper()
		if got := smtp.RetryHint(reply); got != want {
			t.Errorf("%q: %v", reply, got)
		}
	}
	check("Greylisted, please try again in 300 seconds", 5*time.Minute)
	check("Greylisting in action, please come back in 00:04:59", 4*time.Minute+59*time.Second)
	check("You have been greylisted for 5 minutes", 5*time.Minute)
	check("try again after 90s", 90*time.Second)
	check("Wait 2 hours", time.Hour)
	check("try again in 999999 hours", time.Hour)
	check("come back in 99:00:00", time.Hour)
	check("try again later", 0)
	check("mailbox full at 10:20:30", 0)
	check("in 5 months", 0)
	check("in 99999999999999999999 seconds", 0)
}

// FuzzClean: whatever a server says, it comes out printable, short and without the password.
func FuzzClean(f *testing.F) {
	f.Add("5.7.8 bad password hunter2\n5.7.8 again", "hunter2")
	f.Add("\x00\xff\u202e", "\x00")
	f.Add("hun\nter2", "hunter2")
	f.Fuzz(func(t *testing.T, reply, password string) {
		_, text := smtp.Clean(reply, smtp.Server{Password: password})
		_ = smtp.RetryHint(reply)
		if !utf8.ValidString(text) || utf8.RuneCountInString(text) > 200 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", text)
		}
		if password != "" && strings.Contains(text, password) && !strings.Contains("(withheld: it repeats a secret)", password) {
			t.Errorf("%q has %q in it", text, password)
		}
	})
}
