package api_test

import (
	"fmt"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// An answer to a bad body grows neither with the number of its failures nor with their names.
func TestFailuresEchoLittle(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	h := start(t)
	const most = 16 << 10
	many := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < testrig.Part(900)<<10; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	long := strings.Repeat("ü", 200<<10)
	for name, c := range map[string]struct{ path, body, last string }{
		"unknown fields":         {resolveURL, `{` + many(`"f%x":1,`) + `"domains":["globex.example"]}`, "more"},
		"unknown fields, mail":   {"/api/mail/send/raw", `{` + many(`"f%x":1,`) + `"subject":"x"}`, "more"},
		"long name":              {resolveURL, `{"` + long + `":1,"domains":["globex.example"]}`, "field"},
		"long name, mail":        {"/api/mail/send/raw", `{"` + long + `":1}`, ""},
		"escaped name":           {resolveURL, `{"` + strings.Repeat(`\u0001`, 50<<10) + `":1,"domains":["globex.example"]}`, "field"},
		"wrong list":             {resolveURL, `{"domains":[1` + strings.Repeat(",1", 999) + `]}`, "more"},
		"wrong variables":        {"/api/mail/send/template", `{"variables":{` + many(`"f%x":1,`) + `"x":1}}`, "more"},
		"long variable":          {"/api/mail/send/template", `{"variables":{"` + long + `":1}}`, ""},
		"long value":             {"/api/platform/projects", `{"name":"` + long + `","slug":"` + long + `"}`, ""},
		"long template code":     {"/api/mail/projects/1/templates", `{"code":"` + long + `","name":"x","subjectTemplate":"{{` + long[:60000] + `","bodyText":"x"}`, ""},
		"many bad placeholders":  {"/api/mail/projects/1/templates", `{"code":"A","name":"x","subjectTemplate":"x","bodyText":"` + many(`{{%x!}}`)[:testrig.Part(400)<<10] + `"}`, ""},
		"long domain in a batch": {"/api/mail/send/raw", `{"domain":"` + long + `","toEmail":"` + long + `"}`, ""},
	} {
		w := h.dial()
		w.send("POST " + c.path + " HTTP/1.1\r\nHost: x\r\n" + keyLines(c.path, h.all) + "Prefer: handling=strict\r\nContent-Length: " + itoa(len(c.body)) + "\r\n\r\n" + c.body)
		a := w.answer("POST")
		w.Close()
		a.check(t, 400, "VALIDATION_ERROR")
		if len(a.body) > most {
			t.Errorf("%s: %d bytes are answered with %d, %.1f times as many", name, len(c.body), len(a.body), float64(len(a.body))/float64(len(c.body)))
		} else if !strings.Contains(string(a.body), c.last) {
			t.Errorf("%s: %q is not in %s", name, c.last, a.body)
		}
	}
}
