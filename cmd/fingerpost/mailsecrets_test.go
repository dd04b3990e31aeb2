package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// Texts that must never show.
const (
	canaryPassword = "sentinel-stored-password"
	canaryTest     = "sentinel-tested-password"
	canaryValue    = "sentinel-variable-value"
	canaryBody     = "sentinel-body-text"
)

// spellings returns the encodings in which a password could appear, with and without its user in front.
func spellings(password string) (all []string) {
	for _, text := range []string{password, "\x00acme\x00" + password, "acme\x00" + password} {
		all = append(all, text, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	return append(all, fmt.Sprintf("%x", password))
}

// seen are the places that are searched.
type seen struct {
	t     *testing.T
	texts map[string]string // by where it was found
}

func (s *seen) add(where, text string) { s.texts[where] += text + "\n" }

// none checks that no place contains one of the words, except for places whose names begin with one of except.
func (s *seen) none(words []string, except ...string) {
	s.t.Helper()
next:
	for where, text := range s.texts {
		for _, prefix := range except {
			if strings.HasPrefix(where, prefix) {
				continue next
			}
		}
		for _, word := range words {
			if at := strings.Index(text, word); at >= 0 {
				s.t.Errorf("%s shows %q: …%q…", where, word, text[max(0, at-80):min(len(text), at+80)])
			}
		}
	}
}

// folder adds the files of a folder, byte for byte.
func (s *seen) folder(where, dir string) {
	s.t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		s.add(where+rel, string(b))
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
}

// TestMailSecrets searches everything that the service answers and stores for passwords, variable values and bodies.
// Passwords are nowhere, whatever is asked and whatever the SMTP server says. Values and bodies are only in the store,
// while the mail is queued; when the mail has ended, no call returns them.
func TestMailSecrets(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	s := testrig.NewSink(t)
	s.Set(func(r *testrig.SinkRules) { r.User, r.Password, r.Chatty = "acme", canaryPassword, true })
	auth := `username = "acme"
    password = file("smtp.pass")`
	r := idleRig(t, t.TempDir(), map[string]string{
		"post.hcl":  postFile(s, auth),
		"odd.hcl":   strings.NewReplacer("post", "odd", `username = "acme"`, `username = "acne"`).Replace(postFile(s, auth)),
		"smtp.pass": canaryPassword + "\n",
	})
	r.flags = []string{"--smtp-allow", "127.0.0.0/8", "--log-format", "json", "--access-log-resolve"}
	r.start()
	found := &seen{t, map[string]string{}}
	ask := func(want int, path, body string, headers ...string) reply {
		t.Helper()
		got := r.mail("POST", path, "mail", body, headers...)
		if got.status != want {
			t.Errorf("%s %.200s: %d %s, want %d", path, body, got.status, got.body, want)
		}
		found.add("answer to "+path, fmt.Sprint(got.header, got.body))
		return got
	}
	template := func(domain, to, more string) string {
		return fmt.Sprintf(`{"domain":%q,"toEmail":%q,"templateCode":"CODE","variables":{"code":%q%s}}`, domain, to, canaryValue, more)
	}
	raw := func(domain, to string) string {
		return fmt.Sprintf(`{"domain":%q,"toEmail":%q,"subject":"s","bodyText":%q,"bodyHtml":"<p>%s</p>"}`, domain, to, canaryBody, canaryBody)
	}
	settings := func(password, more string) string {
		return fmt.Sprintf(`{"host":"127.0.0.1","port":%d,"username":"acme","password":%q,"fromEmail":"a@post.example","toEmail":"ada@example.com"%s}`, s.Port(), password, more)
	}
	ask(200, "/send/template", template("post.example", "ada@example.com", ""), "Idempotency-Key: one")
	ask(200, "/send/template", template("post.example", "ada@example.com", ""), "Idempotency-Key: one")
	ask(422, "/send/template", template("post.example", "bob@example.com", ""), "Idempotency-Key: one")
	ask(200, "/send/raw", raw("post.example", "ada@example.com"))
	ask(502, "/send/raw", raw("post.example", "nobody@example.com"))
	ask(502, "/send/template", template("odd.example", "ada@example.com", ""))
	ask(202, "/send/template", template("odd.example", "ada@example.com", "")) // with the breaker open
	ask(400, "/send/template", template("post.example", "not an address", `,"n":7`))
	ask(400, "/send/template", template("post.example", "ada@example.com", `,`))
	ask(400, "/send/template", `{"domain":"post.example","toEmail":"ada@example.com","templateCode":"CODE","variables":{"`+canaryValue+` `+"\x00"+`":"x"}}`)
	ask(400, "/send/raw", strings.Replace(raw("post.example", "ada@example.com"), `"subject":"s"`, `"subject":"\r\n"`, 1))
	ask(404, "/send/template", template("nowhere.example", "ada@example.com", ""))
	ask(404, "/send/template", strings.Replace(template("post.example", "ada@example.com", ""), "CODE", "NONE", 1))
	ask(413, "/send/raw", `{"bodyText":"`+strings.Repeat(canaryBody, 70_000)+`"}`)
	ask(200, "/projects/smtp-config/test", settings(canaryPassword, ""))
	ask(400, "/projects/smtp-config/test", settings(canaryTest, ""))
	ask(400, "/projects/smtp-config/test", settings(canaryTest, `,"tlsEnabled":true`))
	ask(400, "/projects/smtp-config/test", settings(canaryTest, `,"sslEnabled":true`))
	ask(400, "/projects/smtp-config/test", settings(canaryTest, `,"port":"x"`))
	ask(400, "/projects/smtp-config/test", strings.Replace(settings(canaryTest, ""), "127.0.0.1", "10.0.0.1", 1))
	ask(400, "/projects/smtp-config/test", settings(canaryTest, `,`))
	for slug, status := range map[string]int{"post": 200, "odd": 400} { // what is stored
		ask(status, "/projects/"+r.projectID(slug)+"/smtp-config/test", `{"toEmail":"ada@example.com"}`)
	}
	s.Down()
	queued := ask(202, "/send/template", template("post.example", "later@example.com", ""), "Idempotency-Key: two")
	ask(202, "/send/raw", raw("post.example", "eve@example.com"))

	// The control: queued content has to be somewhere, and the search finds it.
	r.looksAtAll(found)
	during := &seen{t, map[string]string{}}
	during.folder("store: ", filepath.Join(r.dir, ".fingerpost"))
	if all := fmt.Sprint(during.texts); !strings.Contains(all, canaryBody) || !strings.Contains(all, canaryValue) {
		t.Error("a queued mail is not in the store: the search would find nothing")
	}
	for where, text := range during.texts {
		found.add(where, text)
	}
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	s.Set(func(r *testrig.SinkRules) { r.Welcome = true })
	r.put("odd.hcl", strings.ReplaceAll(postFile(s, auth), "post", "odd"))
	r.mailsEnd()
	r.looksAtAll(found)
	project := r.idOf("post")
	ids := []int64{}
	for _, e := range r.entries(project, time.Unix(0, 0)) {
		if !catalog.MailStatus(e.Status).Ended() {
			t.Errorf("%+v has not ended", e)
		}
		ids = append(ids, e.ID)
	}
	r.halt()
	found.folder("store at the end: ", filepath.Join(r.dir, ".fingerpost"))
	found.folder("config: ", filepath.Join(r.dir, "projects.d"))
	delete(found.texts, "config: smtp.pass")
	found.add("log", r.logged())
	found.add("stdout", r.announcement())

	for _, password := range []string{canaryPassword, canaryTest} {
		found.none(spellings(password))
	}
	found.none([]string{canaryBody, canaryValue}, "store: ", "store at the end: ")
	if text := found.texts["log"]; !strings.Contains(text, `"path":"/api/mail/send/raw"`) || queued.status != 202 {
		t.Error("the access log has no sends")
	}
	keepsNoMessage(t, filepath.Join(r.dir, ".fingerpost"), project, ids)
}

// looksAtAll reads everything that a running service reports about itself.
func (r *rig) looksAtAll(found *seen) {
	for _, path := range []string{"/metrics", "/status", "/debug/pprof/goroutine?debug=2", "/debug/pprof/cmdline"} {
		res, err := http.Get(r.ops + path)
		if err != nil {
			r.t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			r.t.Fatal(err)
		}
		found.add(path, string(text))
	}
	for _, slug := range []string{"post", "odd"} {
		path := fmt.Sprintf("/projects/%d", r.idOf(slug))
		for _, rest := range []string{"/logs?limit=100", "/smtp-config", "/templates"} {
			got := r.mail("GET", path+rest, "all", "")
			if got.status != http.StatusOK {
				r.t.Errorf("%s: %d %s", path+rest, got.status, got.body)
			}
			found.add(path+rest, fmt.Sprint(got.header, got.body))
		}
	}
	printed, code := r.run("logs", "--url", r.url, "--key", r.keys["all"], "--json")
	if code != cli.ExitOK || !strings.Contains(printed, "later@example.com") {
		r.t.Errorf("logs: %d %s", code, printed)
	}
	found.add("fingerpost logs", printed)
}

// keepsNoMessage checks that a store returns no message any more. Its bytes may stay in the files until Pebble compacts
// them.
func keepsNoMessage(t *testing.T, dir string, project int64, ids []int64) {
	t.Helper()
	res, err := resolver.Open(resolver.Options{DataDir: dir, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	if len(ids) < 5 {
		t.Errorf("%d entries", len(ids))
	}
	for _, id := range ids {
		if _, there, err := res.QueuedMail(id); there || err != nil {
			t.Errorf("the message of %d is kept: %v", id, err)
		}
		if _, there, err := res.MailLog(project, id); !there || err != nil {
			t.Errorf("there is no entry %d: %v", id, err)
		}
	}
}
