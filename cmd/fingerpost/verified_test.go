package main

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
)

const verifiedFile = `project "acme" {
  name   = "Acme Shop"
  status = "ACTIVE"
  domain "shop.acme.example" { primary = true }
  domain "day.acme.example" { verified = "2026-11-24" }
  domain "new.acme.example" { verified = "pending" }
  domain "*.acme.example" { verified = "lost" }
  service_settings { mail_enabled = true }
}
`

// TestVerified: a domain that is not verified is refused by resolve, by gateways and by mail, with the reason; the command
// says the same from the files and from the server; what the files say is live with the save, require included.
func TestVerified(t *testing.T) {
	t.Parallel()
	r := idleRig(t, t.TempDir(), map[string]string{"acme.hcl": verifiedFile})
	r.flags = []string{"--gate-listen", "127.0.0.1:0"}
	r.start()
	gate := func(path string, status int, reason string) {
		t.Helper()
		res, err := r.client.Get(r.gateURL() + path)
		must(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if got := res.Header.Get("X-Gate-Reason"); err != nil || res.StatusCode != status || !strings.Contains(got, reason) || (reason == "") != (got == "") || len(body) > 0 {
			t.Errorf("%s: %d %q %q %v, want %d %q", path, res.StatusCode, got, body, err, status, reason)
		}
	}
	// why is "" where the domain is served; offline says the reason with file and line.
	f := func(domain, why, place string) {
		t.Helper()
		got := r.get(resolvePath + domain)
		printed, code := r.run("resolve", domain, "--config", "projects.d")
		online, onlineCode := r.run("resolve", domain, "--url", r.url, "--key", r.keys["all"])
		sent := r.ask(http.MethodPost, "/api/mail/send/raw", "", `{"domain":"`+domain+`","toEmail":"a@b.example","subject":"s","bodyHtml":"b"}`,
			"Content-Type: application/json", "X-Internal-Service-Token: "+r.keys["mail"], "X-Internal-Service-Name: shop")
		if why == "" {
			granted(t, domain, got)
			gate("/check?domain="+domain, 200, "")
			if code != cli.ExitOK || onlineCode != cli.ExitOK || sent.status != http.StatusConflict { // there is no SMTP server
				t.Errorf("%s: %d %s, %d %s, mail %d %s", domain, code, printed, onlineCode, online, sent.status, sent.body)
			}
			return
		}
		refused(t, domain, got, 403, "DOMAIN_NOT_VERIFIED")
		gate("/check?domain="+domain, 403, "DOMAIN_NOT_VERIFIED: the domain is not verified")
		gate("/check?domain="+domain+"&deny=404", 404, why)
		gate("/ask?domain="+domain, 404, why)
		if quoted := strings.ReplaceAll(why, `"`, `\"`); !strings.Contains(got.body, quoted) || sent.status != 403 || !strings.Contains(sent.body, "DOMAIN_NOT_VERIFIED") || !strings.Contains(sent.body, quoted) {
			t.Errorf("%s: %s, mail %d %s", domain, got.body, sent.status, sent.body)
		}
		if code != cli.ExitNot || !strings.Contains(printed, place+": ") || !strings.Contains(printed, why) {
			t.Errorf("%s from the files: %d %s", domain, code, printed)
		}
		if onlineCode != cli.ExitNot || !strings.Contains(online, "DOMAIN_NOT_VERIFIED") || !strings.Contains(online, why) {
			t.Errorf("%s from the server: %d %s", domain, onlineCode, online)
		}
	}
	f("shop.acme.example", "", "")
	f("day.acme.example", "", "")
	f("new.acme.example", `it has verified = "pending"`, "acme.hcl:6")
	f("any.acme.example", `it has verified = "lost"`, "acme.hcl:7")
	for range 2 { // from the store, and from the cache
		if got := r.ask(http.MethodPost, batchPath, r.keys["all"], `{"domains":["new.acme.example","day.acme.example"]}`, "Content-Type: application/json"); !strings.Contains(got.body, `"status":403,"code":"DOMAIN_NOT_VERIFIED"`) ||
			strings.Count(got.body, `"status":200`) != 1 || strings.Contains(got.body, "verified") {
			t.Errorf("a batch: %s", got.body)
		}
	}
	if out, code := r.run("resolve", "new.acme.example", "--config", "projects.d", "--explain"); code != cli.ExitNot || !strings.Contains(out, `"pending"`) || !strings.Contains(out, "domain.verified") || !strings.Contains(out, "acme.hcl:6") {
		t.Errorf("explain: %d %s", code, out)
	}

	r.put("defaults.hcl", "defaults {\n  verification { require = \"all\" }\n}\n")
	r.until("require = all is in force", resolvePath+"shop.acme.example", func(got reply) bool { return got.status == 403 })
	f("shop.acme.example", `it has no verified, and the defaults have require = "all"`, "acme.hcl:4")
	f("day.acme.example", "", "")
	r.put("acme.hcl", strings.NewReplacer(`"pending"`, `"2026-11-24"`, "{ primary = true }", "{\n    primary  = true\n    verified = \"2026-11-24\"\n  }").Replace(verifiedFile))
	r.until("the proof is in force", resolvePath+"shop.acme.example", func(got reply) bool { return got.status == 200 })
	f("shop.acme.example", "", "")
	f("new.acme.example", "", "")
	f("any.acme.example", `it has verified = "lost"`, "acme.hcl:10")
}

// TestVerifiedOverTheAPI: answers about one domain have verified, lists do not; a client may send back what it has read,
// and the line stays as it was.
func TestVerifiedOverTheAPI(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"acme.hcl": verifiedFile})
	key := r.keys["write"]
	project := r.idOf("acme")
	path := "/api/platform/projects/" + strconv.FormatInt(project, 10) + "/domains"
	file := func() string {
		b, err := os.ReadFile(r.path("acme.hcl"))
		must(t, err)
		return string(b)
	}
	list := r.get(path)
	if granted(t, "the list", list); strings.Contains(list.body, "verified") {
		t.Errorf("the list has verified: %s", list.body)
	}
	for domain, want := range map[string]string{"shop.acme.example": `"verified":null}`, "day.acme.example": `"verified":"2026-11-24"}`,
		"new.acme.example": `"verified":"pending"}`, "*.acme.example": `"verified":"lost"}`} {
		one := path + "/" + r.rowID(r.keys["all"], path, "domain", domain)
		before := file()
		got := r.get(one)
		data := granted(t, domain, got)
		if !strings.HasSuffix(data, want) {
			t.Errorf("%s: %s, want %s", domain, data, want)
		}
		put := r.ask(http.MethodPut, one, key, data, "Content-Type: application/json", "Prefer: handling=strict", "If-Match: "+got.header.Get("ETag"))
		if again := granted(t, "PUT of "+domain, put); again != data || file() != before {
			t.Errorf("%s: sent back, it is %s\n%s", domain, again, file())
		}
		put = r.ask(http.MethodPut, one, key, `{"active":true}`, "Content-Type: application/json")
		if again := granted(t, "PUT of "+domain, put); again != data || file() != before {
			t.Errorf("%s: without the field, it is %s\n%s", domain, again, file())
		}
	}
	made := r.ask(http.MethodPost, path, key, `{"domain":"more.acme.example"}`, "Content-Type: application/json")
	if made.status != http.StatusCreated || !strings.Contains(made.body, `"verified":null}`) {
		t.Errorf("POST: %d %s", made.status, made.body)
	}
}
