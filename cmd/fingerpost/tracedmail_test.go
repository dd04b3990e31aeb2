package main

import (
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// TestTraceOfASend: the stages of an attempt are children of it, and it is one of the send. The mail carries nothing of
// the trace.
func TestTraceOfASend(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	ca := newCA(t, "ours")
	pair, err := tls.LoadX509KeyPair(ca.issue("mail", time.Now().Add(time.Hour)))
	must(t, err)
	server := &testrig.Sink{TLS: &tls.Config{Certificates: []tls.Certificate{pair}}}
	must(t, server.Up())
	t.Cleanup(server.Down)
	server.Set(func(r *testrig.SinkRules) { r.User, r.Password = "post", "pass-7" })
	collector := newSpanSink(t)
	r := idleRig(t, t.TempDir(), map[string]string{"ca.pem": readText(t, ca.file()), "post.hcl": postFile(server,
		"username = \"post\"\npassword = \"pass-7\"\ntls_enabled = true\nca_file = \"ca.pem\"\n")})
	r.flags = []string{"--otlp", collector.URL, "--smtp-allow", "127.0.0.0/8"}
	r.start()

	const route = "POST /api/mail/send/raw"
	send := func(to string, headers ...string) int {
		return r.mail(http.MethodPost, "/send/raw", "mail", `{"domain":"post.example","toEmail":"`+to+
			`@example.com","subject":"Hi","bodyText":"Hello"}`, headers...).status
	}
	if status := send("ada", someParent, "Tracestate: vendor=opaque", "Baggage: person=ada"); status != http.StatusOK {
		t.Fatalf("the send is answered %d", status)
	}
	stages := []string{"smtp.dns", "smtp.connect", "smtp.tls", "smtp.auth", "smtp.mail", "smtp.rcpt", "smtp.data"}
	spans := collector.until(t, someTrace, append(stages, route, "ledger.sync", "mail.attempt")...)
	named := func(name string) *span {
		return spans[slices.IndexFunc(spans, func(s *span) bool { return s.Name == name })]
	}
	request, attempt := named(route), named("mail.attempt")
	if request.ParentSpanID != clientsSpan || attempt.ParentSpanID != request.SpanID ||
		request.attribute("fingerpost.project") != "post" {
		t.Errorf("the attempt is no part of the send:\n%s", tree(spans, "", 0))
	}
	var seen []string
	for _, s := range spans { // in order of time
		if !strings.HasPrefix(s.Name, "smtp.") {
			continue
		}
		if seen = append(seen, s.Name); s.ParentSpanID != attempt.SpanID || s.attribute("server.address") != "127.0.0.1" ||
			s.Kind != 3 || s.Start > s.End {
			t.Errorf("%s is no call of the attempt:\n%s", s.Name, tree(spans, "", 0))
		}
	}
	if !slices.Equal(seen, stages) {
		t.Errorf("the stages are %v", seen)
	}

	// A stage that the server refuses has failed, and so has the attempt.
	const other = "4bf92f3577b34da6a3ce929d0e0e4736"
	if status := send("nobody", "Traceparent: 00-"+other+"-b7ad6b7169203331-01"); status != http.StatusBadGateway {
		t.Errorf("a refused send is answered %d", status)
	}
	spans = collector.until(t, other, route, "mail.attempt", "smtp.rcpt")
	for _, s := range spans {
		if failed := s.Status.Code == 2; failed != slices.Contains([]string{route, "mail.attempt", "smtp.rcpt"}, s.Name) {
			t.Errorf("%s has failed: %v", s.Name, failed)
		}
	}
	if code := named("mail.attempt").attribute("error.type"); code != "SMTP_RECIPIENT_REJECTED" {
		t.Errorf("the attempt failed with %q", code)
	}

	letters := server.Letters()
	if len(letters) != 1 {
		t.Fatalf("%d mails", len(letters))
	}
	for _, of := range []string{someTrace, "trace", "vendor=opaque", "baggage"} {
		if text := strings.ToLower(letters[0].Text); strings.Contains(text, of) {
			t.Errorf("%s is in the mail:\n%s", of, text)
		}
	}
}
