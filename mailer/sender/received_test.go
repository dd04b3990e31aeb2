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
	f("long folded fields", "Authentication-Results: mx;"+strings.Repeat("\n a", 60_000)+"; spf=pass\n", "mx", "ok", "ok spf is pass", "")
	f("control characters", "Authentication-Results: mx\x1b[2J; spf=pass smtp.mailfrom=\x1b]0;x\x07\n", "mx?[2J", "ok", "ok spf is pass, smtp.mailfrom=?]0", "")
}

// TestOneClickReceived: a mail with a link to unsubscribe says whether its signature covers link and mark, and no other mail
// says anything of it.
func TestOneClickReceived(t *testing.T) {
	t.Parallel()
	f := func(headers, state, want string) {
		t.Helper()
		r := sender.ReadReceived("Authentication-Results: mx; dkim=pass\n" + headers + "\nList-Unsubscribe: <https://x.example>\n")
		got := ""
		if len(r.Mail) == 1 {
			got = r.Mail[0].Level + " " + r.Mail[0].Message
		}
		if r.State != state || len(r.Mail) > 1 || (got == "") != (want == "") || !strings.Contains(got, want) || len(r.Lines) != 1 {
			t.Errorf("%q: %s, %q", headers, r.State, got)
		}
	}
	const link, post = "List-Unsubscribe: <https://acme.example/u/x>\n", "List-Unsubscribe-Post: List-Unsubscribe=One-Click\n"
	sign := func(h string) string {
		return "DKIM-Signature: v=1; a=rsa-sha256; d=acme.example; s=s1;\n\th=" + h + ";\n\tbh=x=; b=y\n z=\n"
	}
	const both = "From:To:List-Unsubscribe :\n\tlist-unsubscribe-post"
	f("Subject: x\n", "ok", "")
	f(post+sign("From"), "ok", "")
	f(link+post+sign(both), "ok", "ok a DKIM signature covers List-Unsubscribe and List-Unsubscribe-Post")
	f(sign("From")+link+post+sign(both), "ok", "ok a DKIM signature covers")
	f(link+post+sign("From:List-Unsubscribe"), "warning", "warning no DKIM signature of the mail covers both List-Unsubscribe and List-Unsubscribe-Post (h= lacks List-Unsubscribe-Post)")
	f(link+post+sign("From")+sign("From:List-Unsubscribe-Post"), "warning", "(h= lacks List-Unsubscribe)")
	f(link+post+sign("From:To"), "warning", "(h= lacks List-Unsubscribe and List-Unsubscribe-Post)")
	f(link+post+sign(both+"; h=From"), "warning", "(h= lacks List-Unsubscribe and List-Unsubscribe-Post)") // a tag twice
	f(link+post, "warning", "warning the mail has List-Unsubscribe and no DKIM signature")
	f(link+sign(both), "warning", "warning the mail has List-Unsubscribe without List-Unsubscribe-Post")
	if r := sender.ReadReceived(link + post + sign(both)); r.State != "error" || len(r.Mail) != 1 {
		t.Errorf("without the word of a server: %+v", r)
	}
}

// FuzzReadReceived: whatever a mail has, nothing of it can move a terminal, and the answer is of bounded size.
func FuzzReadReceived(f *testing.F) {
	f.Add("Authentication-Results: mx (a (b) \\) c); spf=pass smtp.mailfrom=\"a\\\"b\"; dkim=fail\n x\n\nbody")
	f.Add("List-Unsubscribe: x\nList-Unsubscribe-Post: x\nDKIM-Signature: h=list-unsubscribe:\x1b; =\n ;h")
	f.Add("Authentication-Results:;;;\nAuthentication-Results: \x1b[2J; dkim=\x00")
	f.Fuzz(func(t *testing.T, mail string) {
		r := sender.ReadReceived(mail)
		texts := append([]string{r.Server}, r.Others...)
		for _, l := range append(r.Lines, r.Mail...) {
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
