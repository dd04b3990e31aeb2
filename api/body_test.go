package api_test

import (
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
		{"BOM", "\ufeff" + good, "body", "malformed"},
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
		"plain": good, "spaces": " \r\n\t" + good + "\n ", "32 levels": nest(31), "pair": `{"domains":["globex.example"],"x":"\ud83d\ude00 \\ud800"}`,
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
		"Content-Type:":                                      200,
		"X-None: x":                                          200,
		"Content-Encoding: identity":                         200,
		"Content-Type: text/plain":                           415,
		"Content-Type: application/jsonx":                    415,
		"Content-Type: application/x-www-form-urlencoded":    415,
		"Content-Type: multipart/form-data; boundary=x":      415,
		"Content-Type: application/json; charset=iso-8859-1": 415,
		"Content-Encoding: gzip":                             415,
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
