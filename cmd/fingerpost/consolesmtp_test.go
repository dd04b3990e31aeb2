package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// TestConsoleMailSecret: the project's page says why its mail is not sent, without a send before.
func TestConsoleMailSecret(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	demo, err := os.ReadFile(filepath.Join("..", "..", "projects.d", "keys.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	r.put("keys.hcl", string(demo))
	r.put("letters.hcl", "project \"letters\" {\n  name = \"Letters\"\n  smtp_config {\n    host = \"mail.example\"\n"+
		"    username = \"l\"\n    password = env(\"LETTERS_PASSWORD\")\n    from_email = \"a@letters.example\"\n  }\n}\n")
	r.start()
	v := newVisitor(t, r.url)
	v.ask("/console/sign-in", url.Values{"demo": {"1"}})
	v.ask("/console/projects/"+strconv.FormatInt(catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID("letters")), 10), nil)
	v.expects(http.StatusOK, "No mail of this project is sent: the password of the SMTP config cannot be opened: the environment variable LETTERS_PASSWORD is not set")
}

// TestConsoleSMTPSteps: with a script the steps of a test come while the server still thinks, without one at the end.
func TestConsoleSMTPSteps(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	files, admin, _ := consoleFiles(25)
	r := idleRig(t, t.TempDir(), files)
	r.flags = []string{"--smtp-allow", "127.0.0.0/8"}
	r.start()
	post := &testrig.Sink{}
	release := post.Hold()
	must(t, post.Up())
	t.Cleanup(post.Down)
	_, port, _ := net.SplitHostPort(post.Addr())
	v := newVisitor(t, r.url)
	v.signIn(admin)
	settings := url.Values{"token": {v.token()}, "kind": {"smtp-config"}, "host": {"127.0.0.1"}, "port": {port}, "fromEmail": {"shop@example.com"}, "tlsEnabled": {"no"}, "toEmail": {"ops@example.com"}}
	stream := regexp.MustCompile(`sse-connect="([^"]+)"`)
	begin := func() string {
		t.Helper()
		v.ask("/console/smtp-test", settings, "HX-Request", "true")
		v.expects(http.StatusOK, "The service talks to the server")
		m := stream.FindStringSubmatch(v.body)
		if m == nil {
			t.Fatal(v.body)
		}
		return m[1]
	}
	res, err := v.client.Get(r.url + begin())
	must(t, err)
	defer res.Body.Close()
	twin, err := v.client.Get(r.url + res.Request.URL.Path) // as after a lost connection
	must(t, err)
	defer twin.Body.Close()
	testrig.Eventually(t, "the server has the mail, and has not answered", func() bool { return post.Counts().Held > 0 })
	lines := bufio.NewScanner(res.Body)
	until := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the stream has ended without %q: %v", want, lines.Err())
	}
	until(`<th scope="row">dns</th>`)
	until(`<th scope="row">connect</th>`)
	release()
	until(`<th scope="row">send</th>`)
	until("The server took the mail.")
	until("event: done")
	for lines.Scan() {
		if rest := lines.Text(); strings.TrimSpace(rest) != "data:" && rest != "" {
			t.Errorf("after the end: %s", rest)
		}
	}

	if all, err := io.ReadAll(twin.Body); err != nil || !strings.Contains(string(all), "The server took the mail.") {
		t.Errorf("the other stream: %s, %v", all, err)
	}

	// Asked again, and by a page that another test has left behind.
	gone := res.Request.URL.Path
	v.ask(gone, nil)
	v.expects(http.StatusOK, "The server took the mail.")
	settings.Set("port", "1")
	next := begin()
	v.ask(next, nil)
	v.expects(http.StatusOK, "SMTP_", "event: done")
	v.ask(gone, nil)
	v.expects(http.StatusNoContent)
	settings.Set("port", "x")
	v.ask("/console/smtp-test", settings, "HX-Request", "true")
	v.expects(http.StatusOK, "port", "must be a number")

	settings.Set("port", port)
	v.ask("/console/smtp-test", settings)
	v.expects(http.StatusOK, "The server took the mail.", "dns", "connect", "send", " ms")
	settings.Set("port", "1")
	v.ask("/console/smtp-test", settings)
	v.expects(http.StatusOK, "SMTP_", "dns", "connect", " ms")
}
