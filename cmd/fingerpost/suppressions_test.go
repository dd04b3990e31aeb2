package main

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// careFile is the file of postFile with a template that has a category.
func careFile(s *testrig.Sink) string {
	return strings.TrimSuffix(strings.TrimSpace(postFile(s, "")), "}") + `
  template "NEWS" {
    name             = "News"
    subject_template = "News"
    body_text        = "Leave: {{unsubscribeUrl}}"
    category         = "newsletter"
  }
}
`
}

// careShell is a hookShell that may send mail too, to a sink.
func careShell(t *testing.T, flags ...string) (*hookShell, *testrig.Sink) {
	t.Helper()
	sink := testrig.NewSink(t)
	text, id := catalog.NewKeyText()
	key := fmt.Sprintf("key \"care\" {\n  id = %q\n  hash = %q\n  allow = [\"read\", \"write\", \"mail\"]\n}\n", id, catalog.HashKeyText(text))
	s := &hookShell{idleRig(t, t.TempDir(), map[string]string{"post.hcl": careFile(sink), "key-care.hcl": key}), text}
	s.keys["care"] = text
	s.flags = append([]string{"--smtp-allow", "127.0.0.0/8"}, flags...)
	s.start()
	return s, sink
}

func (s *hookShell) suppressions(code int, args ...string) (out, err string) {
	s.t.Helper()
	out, err, got := s.do("", append(append([]string{"suppressions"}, args...), "--project", "post")...)
	if got != code {
		s.t.Errorf("suppressions %q ends with %d, want %d: %s%s", args, got, code, out, err)
	}
	return out, err
}

// sendTo sends a mail of a template, and returns the answer.
func (s *hookShell) sendTo(address, template string) reply {
	s.t.Helper()
	return s.mail("POST", "/send/template", "care", fmt.Sprintf(`{"domain":"post.example","toEmail":%q,"templateCode":%q,"variables":{"code":"7"}}`, address, template))
}

// TestSuppressionsCommand: the life of a list from the command line, and a table of addresses.
func TestSuppressionsCommand(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	s, sink := careShell(t)
	out, _ := s.suppressions(cli.ExitOK, "list")
	says(t, out, "no address")
	_, err := s.suppressions(cli.ExitOK, "add", "Ada@example.com", "--note", "asked by phone")
	says(t, err, "Ada@example.com is on the list of post, as manual")
	if got := s.sendTo("ada@EXAMPLE.com", "CODE"); !strings.Contains(got.body, `"reason":"manual"`) {
		t.Errorf("%+v", got)
	}
	table := filepath.Join(t.TempDir(), "bounces.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Email,When,Note\nbob@example.com,2026-01-01,\"full, for ever\"\nx\n\neve@example,2026,\"a\nb\"\n")
	_, err = s.suppressions(cli.ExitNot, "import", "--csv", table)
	says(t, err, "nothing was sent", "line 3: address has no @", "line 5: note must")
	var b strings.Builder
	b.WriteString("\ufeffaddress;x,reason\n")
	write(b.String())
	_, err = s.suppressions(cli.ExitNot, "import", "--csv", table)
	says(t, err, "no column of the table is called address or email")
	b.Reset()
	b.WriteString("address,reason,category\n")
	for i := range 2500 {
		fmt.Fprintf(&b, "user%d@example.com,,\n", i)
	}
	b.WriteString("news@example.com,unsubscribe,newsletter\n")
	write(b.String())
	_, err = s.suppressions(cli.ExitOK, "import", "--csv", table, "--reason", "hard_bounce")
	says(t, err, "2501 entries added to the list of post, 0 were there")
	_, err = s.suppressions(cli.ExitOK, "import", "--csv", table, "--reason", "hard_bounce")
	says(t, err, "0 entries added to the list of post, 2501 were there")
	out, _ = s.suppressions(cli.ExitOK, "list", "--search", "ADA@")
	says(t, out, "Ada@example.com  manual", "asked by phone")
	out, err = s.suppressions(cli.ExitOK, "list", "--limit", "150")
	if n := strings.Count(out, "\n"); n != 151 || !strings.Contains(err, "2352 more") {
		t.Errorf("%d lines, %s", n, err)
	}
	_, err = s.suppressions(cli.ExitOK, "remove", "ada@example.com")
	says(t, err, "1 entry of ada@example.com removed")
	s.suppressions(cli.ExitNot, "remove", "ada@example.com")
	s.suppressions(cli.ExitUsage, "add", "ada", "--reason", "no", "--category", "No")
	if got := s.sendTo("ada@example.com", "CODE"); !strings.Contains(got.body, `"sent":true`) || len(sink.Letters()) != 1 {
		t.Errorf("%+v", got)
	}
	out, _, code := s.do("", "logs", "--project", "post", "--status", "SUPPRESSED")
	if code != cli.ExitOK || !strings.Contains(out, "SUPPRESSED") {
		t.Errorf("%d %s", code, out)
	}
}

// TestWhyNoMail: support finds out in the console, from nothing but an address, why a customer got no mail, and mends it.
func TestWhyNoMail(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	s, sink := careShell(t)
	for _, reason := range []string{"complaint", "unsubscribe"} {
		s.suppressions(cli.ExitOK, "add", "ada@example.com", "--reason", reason)
	}
	s.sendTo("Ada@example.com", "CODE")
	v := newVisitor(t, s.url)
	v.signIn(s.keys["care"])
	v.ask("/console/lookup?domain=ADA%40example.com", nil)
	v.expects(http.StatusOK, "1 mail to ADA@example.com, 1 not sent", "the suppression list has the address")
	follow := func(link string, says ...string) {
		t.Helper()
		m := regexp.MustCompile(`href="(` + link + `)"`).FindStringSubmatch(v.body)
		if m == nil {
			t.Fatalf("no link %s in %s", link, v.body)
		}
		v.ask(html.UnescapeString(m[1]), nil)
		v.expects(http.StatusOK, says...)
	}
	follow(`/console/mail/\d+/\d+`, "list has the address, as complaint.", "Show the list")
	follow(`/console/suppressions/\d+\?[^"]+`, "2 entries")
	list := v.res.Request.URL.RequestURI()
	remove := func(reason string, says ...string) {
		t.Helper()
		v.ask(list, url.Values{"token": {v.token()}, "do": {"remove"}, "address": {"ada@example.com"}, "reason": {reason}, "category": {""}})
		v.expects(http.StatusOK, says...)
	}
	remove("complaint", "The entry is gone, and ada@example.com is on the list still, as unsubscribe.", "1 entry")
	if got := s.sendTo("ada@example.com", "CODE"); !strings.Contains(got.body, `"sent":true`) || len(sink.Letters()) != 1 {
		t.Errorf("%+v", got)
	}
	remove("unsubscribe", "ada@example.com may get mail again.", "No address matches")
}

// TestBounceStopsTheSecondMail: through kill -9 between the two, and a restart.
func TestBounceStopsTheSecondMail(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	s, sink := careShell(t)
	if got := s.sendTo("nobody@example.com", "CODE"); got.status != http.StatusBadGateway {
		t.Fatalf("%+v", got)
	}
	s.kill()
	s.start()
	if got := s.sendTo("Nobody@example.com", "CODE"); !strings.Contains(got.body, `"suppressed":true,"reason":"hard_bounce"`) || sink.Counts().Dials != 1 {
		t.Errorf("%+v, %d connections", got, sink.Counts().Dials)
	}
	out, _, code := s.do("", "audit", "--project", "post")
	if code != cli.ExitOK || !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
		return strings.Contains(line, "suppression.add") && strings.Contains(line, "nobody@example.com")
	}) {
		t.Errorf("%d %s", code, out)
	}
}

// TestOneClick: the link of a mail that has arrived unsubscribes with one POST, on the server's own address.
func TestOneClick(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	s, sink := careShell(t, "--public-url", "https://post.example/")
	if got := s.sendTo("ada@example.com", "NEWS"); !strings.Contains(got.body, `"sent":true`) {
		t.Fatalf("%+v", got)
	}
	found := regexp.MustCompile(`(?m)^List-Unsubscribe: <(https://post\.example/u/[^>]+)>\r$`).FindStringSubmatch(sink.Letters()[0].Text)
	if found == nil {
		t.Fatal(sink.Letters()[0].Text)
	}
	link, err := url.Parse(found[1])
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		res, err := http.Get(s.url + link.Path) // a scanner
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
			t.Error(res.Status, err)
		}
	}
	if got := s.sendTo("ada@example.com", "NEWS"); !strings.Contains(got.body, `"sent":true`) {
		t.Errorf("after a scanner: %+v", got)
	}
	s.kill()
	s.start()
	res, err := http.Post(s.url+link.Path, "application/x-www-form-urlencoded", strings.NewReader("List-Unsubscribe=One-Click"))
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK || res.ContentLength != 0 {
		t.Error(res.Status, err)
	}
	if got := s.sendTo("ada@example.com", "NEWS"); !strings.Contains(got.body, `"reason":"unsubscribe"`) {
		t.Errorf("%+v", got)
	}
	if got := s.sendTo("ada@example.com", "CODE"); !strings.Contains(got.body, `"sent":true`) {
		t.Errorf("%+v", got)
	}
	if strings.Contains(s.logged(), link.Path) {
		t.Error("the log has the link")
	}
}
