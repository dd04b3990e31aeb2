package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"fingerpost/api/conditions"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

const relaySecret = "relay-secret-0123456789abcdef"

// tell sends an outcome to a block as a relay does.
func (s *hookShell) tell(name, secret, message string) (got reply) {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.url+"/api/mail/inbound/"+name, strings.NewReader(message))
	must(s.t, err)
	req.SetBasicAuth("fingerpost", secret)
	req.Header.Set("Content-Type", "text/plain; charset=UTF-8")
	res, err := s.client.Do(req)
	must(s.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(s.t, err)
	return reply{res.StatusCode, res.Header, string(text)}
}

// tells waits for a status and a text of the answer.
func (s *hookShell) tells(secret, message string, status int, want string) {
	s.t.Helper()
	testrig.Eventually(s.t, fmt.Sprintf("the block answers %d with %s", status, want), func() bool {
		got := s.tell("relay", secret, message)
		return got.status == status && strings.Contains(got.body, want)
	})
}

// TestInboundStopsTheSecondMail: a mail is sent, its provider tells that it has bounced, and the next one is SUPPRESSED,
// through kill -9. What a person removes stays removed, also by a repeat after a restart. A sealed secret that comes with a
// reload lets in, and the one that goes does not.
func TestInboundStopsTheSecondMail(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	s, sink := careShell(t)
	if got := s.tell("relay", relaySecret, "{}"); got.status != http.StatusUnauthorized {
		t.Fatalf("without a block: %+v", got)
	}
	s.put("relay.secret", relaySecret+"\n")
	s.put("inbound.hcl", "inbound \"relay\" {\n  format   = \"json\"\n  secret   = file(\"relay.secret\")\n  projects = [\"post\"]\n}\n")
	s.tells(relaySecret, "{}", http.StatusBadRequest, `"field":"type"`)
	if got := s.sendTo("ada@example.com", "CODE"); !strings.Contains(got.body, `"sent":true`) {
		t.Fatalf("%+v", got)
	}
	message := fmt.Sprintf(`{"type":"hard_bounce","email":"Ada@example.com","at":%q,"detail":"550 5.1.1 no such user"}`, time.Now().UTC().Format(time.RFC3339))
	if got := s.tell("relay", relaySecret, message); got.status != http.StatusOK || !strings.Contains(got.body, `"listed":1`) {
		t.Fatalf("%+v", got)
	}
	s.kill()
	s.start()
	s.tells(relaySecret, message, http.StatusOK, `"repeated":1`)
	if got := s.sendTo("ADA@example.com", "CODE"); !strings.Contains(got.body, `"suppressed":true,"reason":"hard_bounce"`) || len(sink.Letters()) != 1 {
		t.Errorf("%+v, %d letters", got, len(sink.Letters()))
	}
	out, _ := s.suppressions(cli.ExitOK, "list")
	says(t, out, "Ada@example.com  hard_bounce", "relay: 550 5.1.1 no such user")
	s.suppressions(cli.ExitOK, "remove", "ada@example.com")
	s.tells(relaySecret, message, http.StatusOK, `"repeated":1`)
	if got := s.sendTo("ada@example.com", "CODE"); !strings.Contains(got.body, `"sent":true`) || len(sink.Letters()) != 2 {
		t.Errorf("%+v", got)
	}
	out, _, _ = s.do("", "audit", "--json")
	says(t, out, `"action": "inbound.create"`, `"action": "suppression.add"`, `"door": "inbound"`)

	s.tells(relaySecret, strings.Replace(message, "}", `,"projectId":1}`, 1), http.StatusOK, `"unmatched":1`)
	if is := s.conditions()["inbound-dropped inbound relay"]; is.Severity != conditions.Warning {
		t.Errorf("%+v", s.conditions())
	}
	metrics, err := fetch(s.ops + "/metrics")
	must(t, err)
	says(t, string(metrics), `fingerpost_mail_inbound_total{inbound="relay",result="unmatched"} 1`, `fingerpost_mail_inbound_total{inbound="relay",result="repeated"} 2`)

	const another = "another-secret-0123456789"
	s.put("relay.secret", another+"\n")
	s.reloads()
	s.tells(another, message, http.StatusOK, `"repeated":1`)
	if got := s.tell("relay", relaySecret, message); got.status != http.StatusUnauthorized {
		t.Errorf("the older secret: %+v", got)
	}
	must(t, os.Remove(s.path("relay.secret")))
	s.reloads()
	s.tells(another, message, http.StatusServiceUnavailable, "cannot be opened")
	if is := s.conditions()["secret-closed inbound relay"]; is.Severity != conditions.Warning {
		t.Errorf("%+v", s.conditions())
	}
}

// reloads has the secrets opened again.
func (s *hookShell) reloads() {
	s.t.Helper()
	if out, code := s.run("reload", "--ops-url", s.ops); code != cli.ExitOK {
		s.t.Errorf("%d %s", code, out)
	}
}
