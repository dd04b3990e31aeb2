package sender_test

import (
	"strings"
	"testing"
	"unicode"

	"fingerpost/mailer/sender"
)

// TestReadReceived: the topmost server is believed, and whoever else has written such headers is named.
func TestReadReceived(t *testing.T) {
	t.Parallel()
	f := func(name, mail, server, state, lines, others string) {
		t.Helper()
		r := sender.ReadReceived(strings.ReplaceAll(mail, "\n", "\r\n"))
		var got []string
		for _, l := range r.Lines {
			got = append(got, l.Level+" "+l.Message)
		}
		if r.Server != server || r.State != state || strings.Join(got, "; ") != lines || strings.Join(r.Others, ",") != others {
			t.Errorf("%s: %q is %s: %q, others %v", name, r.Server, r.State, got, r.Others)
		}
	}
	const received = "Received: from a by b; Mon\n"
	f("good", received+`Authentication-Results: mx.example.com;
       dkim=pass header.i=@acme.example header.s=s1;
	spf=pass (mx.example.com: domain of hello@acme.example; permits) smtp.mailfrom=hello@acme.example;
       dmarc=pass (p=REJECT) header.from=acme.example
Subject: x
`, "mx.example.com", "ok", "ok dkim is pass, header.i=@acme.example, header.s=s1; ok spf is pass, smtp.mailfrom=hello@acme.example; "+
		"ok dmarc is pass, header.from=acme.example", "")
	f("without", received+"Subject: x\n\nAuthentication-Results: mx; spf=pass\n", "", "error", "", "")
	f("a failure", "Authentication-Results: mx 1; spf=softfail; dkim=fail reason=\"bad; key\"; dmarc=fail\n", "mx", "error",
		"warning spf is softfail; error dkim is fail, reason=bad; key; error dmarc is fail", "")
	f("one signature of two", "authentication-results: mx; dkim=fail; dkim=pass\n", "mx", "ok", "note dkim is fail; ok dkim is pass", "")
	f("none", "Authentication-Results: mx; none\n", "mx", "unknown", "", "")
	f("not asked", "Authentication-Results: mx; spf=temperror; iprev=fail\n", "mx", "unknown", "unknown spf is temperror; note iprev is fail", "")
	f("the same server twice", "Authentication-Results: mx; spf=pass\nAuthentication-Results: mx; dkim=pass\n", "mx", "ok", "ok spf is pass; ok dkim is pass", "")
	f("a forged one below", "Authentication-Results: mx; spf=fail\n"+received+"Authentication-Results: mx; spf=pass\nAuthentication-Results: evil; dkim=pass\n", "mx", "error",
		"error spf is fail", "mx,evil")
	f("another one right below", "Authentication-Results: mx; spf=fail\nAuthentication-Results: evil; dkim=pass\nAuthentication-Results: mx; dkim=pass\n", "mx", "error",
		"error spf is fail", "evil,mx")
	f("control characters", "Authentication-Results: mx\x1b[2J; spf=pass smtp.mailfrom=\x1b]0;x\x07\n", "mx?[2J", "ok", "ok spf is pass, smtp.mailfrom=?]0", "")
}

// FuzzReadReceived: whatever a mail has, nothing of it can move a terminal, and the answer is of bounded size.
func FuzzReadReceived(f *testing.F) {
	f.Add("Authentication-Results: mx (a (b) \\) c); spf=pass smtp.mailfrom=\"a\\\"b\"; dkim=fail\n x\n\nbody")
	f.Add("Authentication-Results:;;;\nAuthentication-Results: \x1b[2J; dkim=\x00")
	f.Fuzz(func(t *testing.T, mail string) {
		r := sender.ReadReceived(mail)
		texts := append([]string{r.Server}, r.Others...)
		for _, l := range r.Lines {
			texts = append(texts, l.Message, l.Check)
		}
		for _, s := range texts {
			if strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) || len(s) > 10_000 {
				t.Errorf("%q", s)
			}
		}
		if r.State == "" || len(texts) > 200 {
			t.Errorf("%+v", r)
		}
	})
}
