package api_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

const mailURL = "/api/mail/projects/"

// mailed is a house with mail in it, and asks as a service does.
type mailed struct{ *house }

func startMail(t testing.TB) mailed {
	h := start(t)
	d := &catalog.Declared{Templates: []catalog.Template{
		{ID: 50, UUID: catalog.DeriveTemplateUUID(catalog.UUID{}, "WELCOME"), Code: "WELCOME", Name: "Welcome", SubjectTemplate: "Welcome", BodyText: "default", Active: true},
		{ID: 51, UUID: catalog.DeriveTemplateUUID(catalog.UUID{}, "BYE"), Code: "BYE", Name: "Bye", SubjectTemplate: "Bye", BodyHTML: "<p>", Active: true},
	}}
	p := project(9, "mailed", "Mailed", catalog.StatusActive, "mailed.example")
	p.SMTP = &catalog.SMTPConfig{ID: 90, UUID: catalog.DeriveUUID(catalog.KindSMTPConfig, p.Project.UUID), Host: "smtp.acme.example", Username: "acme",
		Password: catalog.Secret{Source: catalog.SecretPlain, Ref: "canary-smtp-password"}, FromEmail: "hello@acme.example", SSLEnabled: true, Active: true}
	p.Templates = []catalog.Template{{ID: 60, UUID: catalog.DeriveTemplateUUID(p.Project.UUID, "WELCOME"), ProjectID: 9, Code: "WELCOME", Name: "Ours",
		SubjectTemplate: "Ours", BodyHTML: "<p>ours", BodyText: "ours", MaxAge: "10m"}}
	d.Projects = append(d.Projects, p)
	h.apply("mail.hcl", d)
	return mailed{h}
}

func (m mailed) ask(method, path, key, body string, headers ...string) *answer {
	m.t.Helper()
	if key != "" {
		headers = append(headers, "X-Internal-Service-Token: "+key, "X-Internal-Service-Name: tests")
	}
	return m.askBody(method, path, "", body, headers...)
}

func TestSMTPConfigShown(t *testing.T) {
	m := startMail(t)
	a := m.ask("GET", mailURL+"9/smtp-config", m.onlyRead, "")
	a.check(t, 200, "")
	want := `"data":{"id":90,"projectId":9,"host":"smtp.acme.example","port":465,"username":"acme","fromEmail":"hello@acme.example","fromName":"","replyTo":"",` +
		`"sslEnabled":true,"tlsEnabled":false,"active":true},"timestamp"`
	if !strings.Contains(string(a.body), want) {
		t.Errorf("%s\nwant %s", a.body, want)
	}
	if tag := a.Header.Get("ETag"); m.ask("GET", mailURL+"9/smtp-config", m.onlyRead, "", "If-None-Match: "+tag).StatusCode != 304 {
		t.Errorf("no 304 for %s", tag)
	}
	m.ask("GET", mailURL+"1/smtp-config", m.onlyRead, "").check(t, 404, "NOT_FOUND")
	m.ask("GET", mailURL+"77/smtp-config", m.onlyRead, "").check(t, 404, "NOT_FOUND")
}

func TestTemplatesListed(t *testing.T) {
	m := startMail(t)
	ids := func(query string) (out []int) {
		a := m.ask("GET", mailURL+"9/templates"+query, m.onlyRead, "")
		a.check(t, 200, "")
		var list struct {
			Data []map[string]any
			Meta map[string]int
		}
		if err := json.Unmarshal(a.body, &list); err != nil {
			t.Fatal(err)
		}
		for _, row := range list.Data {
			if len(row) != 8 || row["bodyText"] != nil || row["createdAt"] != nil {
				t.Errorf("a row has %v", row)
			}
			out = append(out, int(row["id"].(float64)))
		}
		if paged := strings.Contains(query, "page") || strings.Contains(query, "limit"); paged && list.Meta["total"] != 3 || !paged && list.Meta != nil {
			t.Errorf("%s: meta %v", query, list.Meta)
		}
		return out
	}
	for query, want := range map[string]string{
		"": "[50 51 60]", "?order=desc": "[60 51 50]", "?sort=code": "[51 50 60]", "?sort=projectId&order=desc": "[60 50 51]", "?limit=2": "[50 51]",
		"?page=2&limit=2": "[60]", "?page=3": "[]", "?sort=maxAge": "[60 50 51]", "?sort=defaultTemplate": "[60 50 51]", "?sort=active": "[60 50 51]",
		"?sort=name": "[51 60 50]", "?sort=subjectTemplate&order=desc": "[50 60 51]",
	} {
		if got := fmt.Sprint(ids(query)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{"?sort=bodyHtml", "?limit=101", "?page=0", "?order=up", "?page=1&page=2"} {
		m.ask("GET", mailURL+"9/templates"+query, m.onlyRead, "").check(t, 400, "VALIDATION_ERROR")
	}
	a := m.ask("GET", mailURL+"x/templates?limit=0", m.onlyRead, "")
	if fields := fmt.Sprint(a.fields()); fields != "[projectId limit]" {
		t.Errorf("fields %s", fields)
	}
}

func TestTemplateShown(t *testing.T) {
	m := startMail(t)
	a := m.ask("GET", mailURL+"9/templates/60", m.onlyRead, "")
	a.check(t, 200, "")
	for _, want := range []string{`"projectId":9,"code":"WELCOME"`, `"bodyHtml":"<p>ours","bodyText":"ours","active":false,"defaultTemplate":false,"createdAt":"`, `"maxAge":"10m"},"timestamp"`} {
		if !strings.Contains(string(a.body), want) {
			t.Errorf("%s lacks %s", a.body, want)
		}
	}
	a = m.ask("GET", mailURL+"9/templates/51", m.onlyRead, "")
	if a.check(t, 200, ""); !strings.Contains(string(a.body), `"id":51,"projectId":null,`) || !strings.Contains(string(a.body), `"maxAge":"24h"`) {
		t.Errorf("a default template: %s", a.body)
	}
	m.ask("GET", mailURL+"1/templates/60", m.onlyRead, "").check(t, 404, "NOT_FOUND") // another project's
	m.ask("GET", mailURL+"9/templates/0", m.onlyRead, "").check(t, 400, "VALIDATION_ERROR")
	m.ask("DELETE", mailURL+"9/templates/51", m.onlyWrite, "").check(t, 403, "FORBIDDEN")
}

// Permissions, and the order of their checks; every failure has the mail form.
func TestMailPermissions(t *testing.T) {
	m := startMail(t)
	const save = `{"host":"localhost","fromEmail":"a@b.example"}`
	for _, c := range []struct {
		method, path, key, body string
		status                  int
		code                    string
	}{
		{"GET", "9/smtp-config", "", "", 401, "UNAUTHORIZED"},
		{"GET", "9/smtp-config", m.onlyMail, "", 403, "FORBIDDEN"},
		{"GET", "9/smtp-config", m.onlyWrite, "", 403, "FORBIDDEN"},
		{"POST", "9/smtp-config", m.onlyRead, save, 403, "FORBIDDEN"},
		{"PUT", "9/smtp-config", m.onlyMail, save, 403, "FORBIDDEN"},
		{"DELETE", "9/templates/60", m.onlyRead, "", 403, "FORBIDDEN"},
		{"GET", "9/templates", m.acme, "", 403, "FORBIDDEN"},
		{"PUT", "9/templates", m.acme, "{}", 403, "FORBIDDEN"},
		{"GET", "1/templates", m.acme, "", 200, ""},
		{"GET", "x/smtp-config", m.onlyMail, "", 400, "VALIDATION_ERROR"},
		{"PUT", "9/smtp-config", m.onlyWrite, "{", 400, "VALIDATION_ERROR"},
		{"PUT", "77/smtp-config", m.onlyWrite, "{", 404, "NOT_FOUND"},
		{"PUT", "9/smtp-config", m.onlyWrite, `{}`, 409, "CONFIG_READ_ONLY"}, // this server has no folder
		{"PUT", "9/templates", m.onlyWrite, `{"code":"WELCOME"}`, 409, "CONFIG_READ_ONLY"},
		{"DELETE", "9/smtp-config", m.onlyWrite, "", 409, "CONFIG_READ_ONLY"},
		{"PATCH", "9/templates", m.all, "", 405, "METHOD_NOT_ALLOWED"},
		{"GET", "9/nothing", m.all, "", 404, "NOT_FOUND"},
	} {
		a := m.ask(c.method, mailURL+c.path, c.key, c.body)
		a.check(t, c.status, c.code)
		if c.status == 200 {
			continue
		}
		e := a.json["error"].(map[string]any)
		if a.json["status"] != float64(c.status) || a.json["path"] != mailURL+c.path || a.json["message"] != e["message"] || a.json["validationErrors"] == nil {
			t.Errorf("%s %s: no mail form: %s", c.method, c.path, a.body)
		}
	}
	a := m.ask("PUT", mailURL+"9/smtp-config", m.onlyWrite, `{"nme":1}`, "Prefer: handling=strict")
	if fields := fmt.Sprint(a.fields()); fields != "[nme]" || !strings.Contains(string(a.body), `"validationErrors":[{"field":"nme",`) {
		t.Errorf("strict: %s", a.body)
	}
	m.ask("PUT", mailURL+"9/smtp-config", m.onlyWrite, `{}`, "Content-Type: text/plain").check(t, 415, "UNSUPPORTED_MEDIA_TYPE")
	if log := m.log.String(); !strings.Contains(log, `"service":"tests"`) || strings.Contains(log, "canary") {
		t.Errorf("the access log: %s", log)
	}
}

// All failing fields come at once, in the request's naming.
func TestMailFields(t *testing.T) {
	m := startMail(t)
	f := func(path, body, want string) {
		t.Helper()
		a := m.ask("PUT", mailURL+path, m.onlyWrite, body)
		a.check(t, 400, "VALIDATION_ERROR")
		if got := strings.Join(a.fields(), " "); got != want {
			t.Errorf("%s: fields %q, want %q: %s", body, got, want, a.body)
		}
	}
	f("1/smtp-config", `{}`, "host fromEmail")
	f("1/smtp-config", `{"host":"a:1","port":70000,"username":1,"password":2,"fromEmail":"A <a@b>","fromName":"\n","replyTo":"x","sslEnabled":null,"tlsEnabled":"no","active":0}`,
		"username sslEnabled tlsEnabled active port password host fromEmail replyTo fromName")
	f("1/smtp-config", `{"host":"a","fromEmail":"a@b.example","password":"x"}`, "username")
	f("9/smtp-config", `{"host":"other.example"}`, "password")
	f("9/smtp-config", `{"host":"other.example","password":"***"}`, "password")
	f("9/smtp-config", `{"password":""}`, "password")
	f("9/smtp-config", `{"port":0}`, "port")
	f("9/smtp-config", `{"port":null}`, "port")
	f("9/smtp-config", `{"host":null,"port":null,"fromEmail":null,"sslEnabled":null,"tlsEnabled":null,"active":null}`,
		"host fromEmail sslEnabled tlsEnabled active port")
	f("9/templates", `{"code":"WELCOME","name":null,"subjectTemplate":null,"active":null}`, "name subjectTemplate active")
	f("9/smtp-config", `{"port":587.5}`, "port")
	f("9/smtp-config", `{"host":null,"fromEmail":null}`, "host fromEmail")
	f("9/smtp-config", `{"username":null,"password":null,"host":""}`, "host")
	f("1/templates", `{}`, "code name subjectTemplate bodyHtml")
	f("9/templates", `{"code":"WELCOME","bodyHtml":null,"bodyText":""}`, "bodyHtml")
	f("9/templates", `{"code":"x y","name":"","subjectTemplate":"\n","bodyHtml":"{{","bodyText":"{{a b}}","active":1,"maxAge":"1y"}`,
		"active code name subjectTemplate bodyHtml bodyText maxAge")
	f("9/templates", `{"code":"A","name":"n","subjectTemplate":"s","bodyText":"`+strings.Repeat("x", catalog.MaxBodyBytes+1)+`"}`, "bodyText")
	f("9/templates", `{"code":"A","name":"n","subjectTemplate":"s","bodyHtml":"<meta http-equiv=refresh content='0; url={{a}}'>"}`, "bodyHtml")
	f("9/templates", `{"code":"A","name":"n","subjectTemplate":"s","bodyHtml":"<iframe srcdoc=\"{{a}}\"></iframe>"}`, "bodyHtml")
	f("9/templates", `{"code":7,"name":"n","subjectTemplate":"s","bodyText":"t"}`, "code")
}

// A password that is saved shows up nowhere but sealed in its file.
func TestPasswordStaysSealed(t *testing.T) {
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" { name = \"Acme\" }\n", "s.hcl": "sealing { recipients = [\"{{recipient}}\"] }\n"})
	const canary = "canary-in-the-mail"
	body := `{"host":"localhost","username":"u","password":"` + canary + `","fromEmail":"a@b.example","tlsEnabled":true}`
	for i, change := range []string{body, body, `{"fromName":"x"}`, `{"host":"else"}`, `{"password":"` + canary + `2","fromName":"\n"}`} {
		req := exchange{method: "PUT", path: mailURL + "@acme/smtp-config", header: map[string][]string{}, body: change, status: []int{201, 200, 200, 400, 400}[i]}
		d.exchange(t, req)
	}
	p, err := d.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.resolver.SMTPConfig(p.ID)
	if err != nil || c.Password.Source != catalog.SecretSealed {
		t.Fatalf("%v %v", c, err)
	}
	if plain, err := d.secrets(t).Open(c.Password, p.UUID.String()+"/password"); err != nil || plain != canary {
		t.Errorf("opens to %q, %v", plain, err)
	}
	if strings.Contains(d.log.String(), "canary") {
		t.Error("the log has it")
	}
	err = filepath.WalkDir(d.dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if strings.Contains(string(b), "canary") {
			t.Errorf("%s has it", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
