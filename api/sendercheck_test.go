package api_test

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/mailer/sender"
	"fingerpost/resolver/catalog"
)

// A senderScript is a SenderChecker that says what a test wants, and what it was asked.
type senderScript struct {
	mu      sync.Mutex // guards the fields below
	wait    time.Duration
	err     error
	project int64
	address netip.Addr
}

func (s *senderScript) Check(_ context.Context, project int64, address netip.Addr) (sender.Result, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.project, s.address = project, address
	record := `acme.example. TXT "v=spf1 -all"`
	return sender.Result{State: sender.Warning, CheckedAt: catalog.JSONMoment{Time: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)},
		Lines: []sender.Line{{Level: sender.OK, Check: sender.CheckMX, Message: "fine"},
			{Level: sender.Warning, Check: sender.CheckSPF, Message: "no record", Record: &record}}}, s.wait, s.err
}

func (s *senderScript) set(wait time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait, s.err = wait, err
}

// was reports whether the last check was of a project and an address.
func (s *senderScript) was(project int64, address netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.project == project && s.address == address
}

// TestSenderCheck: the call answers what a check has found, to keys with write or mail of the project.
func TestSenderCheck(t *testing.T) {
	s := &senderScript{}
	m := mailed{start(t, func(o *api.Options) { o.Senders = s })}
	p := project(9, "mailed", "Mailed", catalog.StatusActive, "mailed.example")
	m.apply("mail.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{p}})
	const path = mailURL + "9/sender-check"
	a := m.ask("POST", path, m.onlyMail, "")
	a.check(t, 200, "")
	want := `"data":{"state":"warning","lines":[{"level":"ok","check":"mx","message":"fine","record":null},` +
		`{"level":"warning","check":"spf","message":"no record","record":"acme.example. TXT \"v=spf1 -all\""}],"checkedAt":"2026-11-30T12:00:00`
	if got := string(a.body); !strings.Contains(got, want) || a.Header.Get("Retry-After") != "" || !s.was(9, netip.Addr{}) {
		t.Errorf("%s, asked for %d, %v", got, s.project, s.address)
	}
	m.ask("POST", path, m.onlyMail, `{"address":"::ffff:203.0.113.9"}`).check(t, 200, "")
	if !s.was(9, netip.MustParseAddr("203.0.113.9")) {
		t.Errorf("asked for %v", s.address)
	}
	m.ask("POST", path, m.onlyMail, `{"address":"nonsense"}`).check(t, 400, "VALIDATION_ERROR")
	m.ask("POST", path, m.onlyMail, `{"address":5}`).check(t, 400, "VALIDATION_ERROR")
	m.ask("POST", path+"?dryRun=true", m.onlyMail, "").check(t, 400, "VALIDATION_ERROR")
	m.ask("POST", path, m.onlyRead, "").check(t, 403, "FORBIDDEN")
	m.ask("POST", path, m.acme, "").check(t, 403, "FORBIDDEN")
	m.ask("POST", mailURL+"77/sender-check", m.onlyMail, "").check(t, 404, "NOT_FOUND")
	s.set(7*time.Second, nil)
	if a := m.ask("POST", path, m.onlyMail, ""); a.Header.Get("Retry-After") != "7" {
		t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
	}
	s.set(0, &catalog.Error{Code: catalog.CodeSMTPNotConfigured, Message: "none"})
	m.ask("POST", path, m.onlyMail, "").check(t, 409, "SMTP_NOT_CONFIGURED")
	other := mailed{start(t)}
	other.apply("mail.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{p}})
	other.ask("POST", path, other.onlyWrite, "").check(t, 503, "UNAVAILABLE")
}
