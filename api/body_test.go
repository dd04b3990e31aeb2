package api_test

import (
	"cmp"
	"strings"
	"testing"
)

// A body that breaks the rules gets 400 on the field that is wrong and is never quietly repaired.
func TestBodyRules(t *testing.T) {
	h := start(t)
	const good = `{"domains":["globex.example"]}`
	nest := func(n int) string {
		return `{"domains":["globex.example"],"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	for _, c := range []struct{ name, body, field, message string }{
		{"cut", `{"domains":["globex.example"]`, "body", "byte 29"},
		{"trailing text", good + "x", "body", "byte 31"},
		{"two objects", good + good, "body", "byte 31"},
		{"null", "null", "body", "object"},
		{"array", "[]", "body", "object"},
		{"string", `"x"`, "body", "object"},
		{"number", "  1", "body", "byte 2"},
		{"comma", `{"domains":["globex.example"],}`, "body", "malformed"},
		{"single quotes", `{'domains':[]}`, "body", "malformed"},
		{"comment", `{"domains":["globex.example"]/**/}`, "body", "malformed"},
		{"bare name", `{domains:[]}`, "body", "malformed"},
		{"NaN", `{"domains":[NaN]}`, "body", "malformed"},
		{"leading zero", `{"domains":[01]}`, "body", "malformed"},
		{"control in string", "{\"domains\":[\"a\nb\"]}", "body", "malformed"},
		{"bad escape", `{"domains":["\x41"]}`, "body", "malformed"},
		{"UTF-16", "{\x00\"\x00", "body", "malformed"},
		{"not UTF-8", "{\"domains\":[\"\xff\"]}", "body", "byte 13"},
		{"overlong", "{\"domains\":[\"\xc0\xaf\"]}", "body", "UTF-8"},
		{"surrogate bytes", "{\"domains\":[\"\xed\xa0\x80\"]}", "body", "UTF-8"},
		{"high surrogate", `{"domains":["\ud800"]}`, "body", "surrogate"},
		{"low surrogate", `{"domains":["a\udc00"]}`, "body", "surrogate"},
		{"high, then text", `{"domains":["\ud800abcdef"]}`, "body", "surrogate"},
		{"high, high", `{"domains":["\ud800\ud800"]}`, "body", "surrogate"},
		{"high in a name", `{"domains":["a"],"\ud800":1}`, "body", "surrogate"},
		{"name twice", `{"domains":["a"],"domains":["globex.example"]}`, "body", "twice"},
		{"name twice, escaped", `{"domains":["a"],"\u0064omains":["globex.example"]}`, "body", "twice"},
		{"name twice, deep", `{"domains":["globex.example"],"x":[{"a":1,"a":2}]}`, "body", "twice"},
		{"33 levels", nest(32), "body", "32 levels"},
		{"20,000 levels", nest(20000), "body", "malformed"},
		{"missing", `{}`, "domains", "list"},
		{"other case", `{"Domains":["globex.example"]}`, "domains", "list"},
		{"null list", `{"domains":null}`, "domains", "list"},
		{"no list", `{"domains":"globex.example"}`, "domains", "list"},
		{"object", `{"domains":{"0":"globex.example"}}`, "domains", "list"},
		{"empty list", `{"domains":[]}`, "domains", "list"},
		{"1,001", `{"domains":["a"` + strings.Repeat(`,"a"`, 1000) + `]}`, "domains", "1000"},
		{"wrong types", `{"domains":["globex.example",1,null,["x"],true,{"a":"b"}]}`, "domains[1] domains[2] domains[3] domains[4] domains[5]", "string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := h.in(t).askBody("POST", resolveURL, h.all, c.body, "Content-Type: application/json")
			a.check(t, 400, "VALIDATION_ERROR")
			if got := strings.Join(a.fields(), " "); got != c.field || !strings.Contains(string(a.body), c.message) {
				t.Errorf("details on %q, want %q and %q: %s", got, c.field, c.message, a.body)
			}
		})
	}
	for name, body := range map[string]string{
		"plain": good, "byte order mark": "\ufeff" + good, "spaces": " \r\n\t" + good + "\n ", "32 levels": nest(31), "pair": `{"domains":["globex.example"],"x":"\ud83d\ude00 \\ud800"}`,
		"more fields": `{"id":1,"domains":["globex.example"],"x":{"domains":1}}`, "1,000": `{"domains":["a"` + strings.Repeat(`,"a"`, 999) + `]}`, "big number": `{"domains":["a"],"x":1e999999}`,
	} {
		if a := h.askBody("POST", resolveURL, h.all, body); a.StatusCode != 200 {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	h.ask("POST", resolveURL, h.all).check(t, 400, "VALIDATION_ERROR")
}

func TestMediaTypes(t *testing.T) {
	h := start(t)
	const body = `{"domains":["globex.example"]}`
	for header, status := range map[string]int{
		"Content-Type: application/json":                    200,
		"Content-Type: APPLICATION/JSON ;charset=\"utf-8\"": 200,
		"Content-Type: application/json; charset=UTF-8":     200,
		"Content-Type:":                                          200,
		"X-None: x":                                              200,
		"Content-Encoding: identity":                             200,
		"Content-Type: text/plain":                               415,
		"Content-Type: application/jsonx":                        415,
		"Content-Type: application/x-www-form-urlencoded":        415,
		"Content-Type: multipart/form-data; boundary=x":          415,
		"Content-Type: application/json; charset=utf-8;":         200,
		"Content-Type: application/json; charset=utf-8; p=x":     200,
		"Content-Type: application/json;v=1 ; charset=\"utf-8\"": 200,
		"Content-Type: application/json;":                        200,
		"Content-Type: application/json; charset":                200,
		"Content-Type: application/json; v=1; charset=latin1":    415,
		"Content-Type: application/json; charset=iso-8859-1":     415,
		"Content-Encoding: gzip":                                 415,
	} {
		a := h.askBody("POST", resolveURL, h.all, body, header)
		if a.StatusCode != status || status == 415 && a.code() != "UNSUPPORTED_MEDIA_TYPE" {
			t.Errorf("%s: %d %s, want %d", header, a.StatusCode, a.body, status)
		}
	}
	// A key without permission gets 403, whatever the body is.
	h.askBody("POST", resolveURL, h.onlyMail, body, "Content-Type: text/plain").check(t, 403, "FORBIDDEN")
}

func TestStrictHandling(t *testing.T) {
	h := start(t)
	const body = `{"extra":1,"domains":["globex.example"],"id":2}`
	for prefer, strict := range map[string]bool{
		"handling=strict": true, "Handling = \"strict\"": true, "respond-async, handling=strict;x=y": true, "return=minimal\r\nPrefer: handling=strict": true,
		"handling=lenient": false, "strict": false, "": false,
	} {
		a := h.askBody("POST", resolveURL, h.all, body, "Prefer: "+prefer)
		if !strict {
			a.check(t, 200, "")
			continue
		}
		a.check(t, 400, "VALIDATION_ERROR")
		if got := strings.Join(a.fields(), " "); got != "extra id" {
			t.Errorf("%q: details on %q", prefer, got)
		}
	}
}

// The fields of a body that change nothing are named, those that only answers have included.
func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  smtp_config {\n    host = \"mail.acme.example\"\n    from_email = \"a@acme.example\"\n  }\n}\n"})
	path := d.path(t, "/api/platform/projects/@acme")
	many := []string{}
	for i := range 1000 {
		many = append(many, `"unknown`+itoa(i)+`":1`)
	}
	for _, c := range []struct{ method, path, body, more, want string }{
		{"PUT", path, `{"name":"Acme"}`, "", ""},
		{"PUT", path, `{"id":1,"colour":"x","name":"Acme","naïve, 100%":{"a":1},"labels":{"plan":"gold"}}`, "", "id, colour, na%C3%AFve%2C 100%25"},
		{"PUT", path + "?dryRun=1", `{"colour":"x"}`, "", "colour"},
		{"PUT", path, `{"colour":"x","status":"NONE"}`, "", "colour"},                        // 400
		{"PUT", path, `{"colour":"x","id":1}`, "Prefer: handling=strict", "id"},              // 400: colour fails
		{"POST", "/api/platform/projects", `{"name":"New","status":"ACTIVE"}`, "", "status"}, // a new one is a draft
		{"POST", "/api/platform/projects", `{"name":"New 2","status":"ACTIVE"}`, "Prefer: handling=strict", "status"},
		{"POST", resolveURL, `{"domains":["acme.example"],"form":"flat"}`, "", "form"},
		{"POST", "/api/platform/keys", `{"name":"k","allow":["read"],"lastUsedAt":null,"secret":1}`, "", "lastUsedAt, secret"},
	} {
		a := d.askBody(c.method, c.path, d.key, c.body, "X-None: x", cmp.Or(c.more, "X-None: y"))
		if got := a.Header.Get("X-Ignored-Fields"); got != c.want || len(a.Header.Values("X-Ignored-Fields")) > 1 {
			t.Errorf("%s %s: %d with %q, want %q", c.method, c.body, a.StatusCode, a.Header.Values("X-Ignored-Fields"), c.want)
		}
	}
	smtp := strings.Replace(path, "platform", "mail", 1) + "/smtp-config"
	token := []string{"X-Internal-Service-Token: " + d.key, "X-Internal-Service-Name: test"}
	if a := d.askBody("PUT", smtp, "", `{"caFile":"ca.pem","fromName":"A"}`, token...); a.Header.Get("X-Ignored-Fields") != "caFile" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	a := d.askBody("PUT", path, d.key, "{"+strings.Join(many, ",")+"}")
	if got := a.Header.Get("X-Ignored-Fields"); a.StatusCode != 200 || len(got) > 1100 || !strings.HasPrefix(got, "unknown0, unknown1, ") ||
		!strings.HasSuffix(got, ", ...") {
		t.Errorf("%d: %d bytes, %s", a.StatusCode, len(got), got)
	}
	long := strings.Repeat("n", 2000)
	if got := d.askBody("PUT", path, d.key, `{"`+long+`":1}`).Header.Get("X-Ignored-Fields"); got != "..." {
		t.Errorf("a long name: %s", got)
	}
}

// A body without any field that the call takes is not answered "updated", by no PUT.
func TestOnlyUnknownFields(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  domain \"shop.acme.example\" {}\n" +
		"  smtp_config {\n    host = \"mail.acme.example\"\n    from_email = \"a@acme.example\"\n  }\n}\n" +
		"webhook \"crm\" {\n  url = \"https://crm.example/\"\n  secret = env(\"CRM\")\n}\n"})
	ids := map[string]string{"id": "@acme", "projectId": "@acme", "domainId": "@shop.acme.example", "name": "crm"}
	for _, c := range describedCalls(t, ids) {
		if c.method != "PUT" || strings.HasSuffix(c.path, "/templates") { // a template's body has its code
			continue
		}
		c.path = d.path(t, c.path)
		key, headers := c.keyHeaders(d.key)
		a := d.askBody(c.method, c.path, key, `{"statuss":"ACTIVE","id":1}`, headers...)
		a.check(t, 200, "")
		if a.json["message"] != "nothing changed; ignored: statuss, id" {
			t.Errorf("%s: %s", c, a.body)
		}
	}
}
