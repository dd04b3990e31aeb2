package api_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"fingerpost/api"
	"fingerpost/api/console"
)

// The access log tells which page of the console was opened, with which key, and by whom, and nothing that the request
// chose itself.
func TestConsoleAccessLog(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *api.Options) { o.Console = new(console.Options) })
	h.addr = h.listen(api.Platform | api.Mail | api.Console)
	browser := &http.Client{Transport: new(http.Transport), CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	defer browser.CloseIdleConnections()
	ask := func(method, path, form string, header ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+h.addr+path, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	in := ask("POST", "/console/sign-in", url.Values{"key": {h.onlyRead}, "name": {"Ada"},
		"email": {"ada@example.com"}}.Encode())
	if in.StatusCode != http.StatusSeeOther || len(in.Cookies()) == 0 {
		t.Fatalf("sign-in: %d", in.StatusCode)
	}
	session := in.Cookies()[0].Value
	for _, path := range []string{"/console/mail/1/7?canary=1", "/console/assets/none.css", "/console/no/canary", "/console/"} {
		ask("GET", path, "", "Cookie", "fingerpost="+session)
	}
	ask("GET", "/console/projects/2", "")
	ask("GET", "/", "", "Accept", "text/html")

	type line struct {
		Msg, Method, Path, Key, Person string
		KeyName                        string `json:"key_name"`
		Status                         int
	}
	const id, name, ada = "id of the key", "read", "Ada <ada@example.com>"
	want := []line{
		{"request", "POST", "/console/sign-in", "", "", "", 303},
		{"request", "GET", "/console/mail/{project}/{id}", id, ada, name, 404},
		{"request", "GET", "/console/assets/{name}", "", "", "", 404},
		{"request", "GET", "", id, ada, name, 404},
		{"request", "GET", "/console/", id, ada, name, 200},
		{"request", "GET", "/console/projects/{id}", "", "", "", 303},
		{"request", "GET", "/", "", "", "", 302},
	}
	text, got := h.log.String(), []line{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Msg != "request" || strings.HasPrefix(l.Path, "/api/") { // calls that pages make
			continue
		}
		if l.Key != "" {
			if !strings.Contains(h.onlyRead, l.Key) {
				t.Errorf("the key is %q", l.Key)
			}
			l.Key = id
		}
		got = append(got, l)
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("missing: %+v", want[i])
		case i >= len(want) || got[i] != want[i]:
			t.Errorf("line %d is %+v, want %+v", i, got[i], want[min(i, len(want)-1)])
		}
	}
	for _, secret := range []string{"canary", h.onlyRead, session} {
		if strings.Contains(text, secret) {
			t.Errorf("the log has %q:\n%s", secret, text)
		}
	}
}
