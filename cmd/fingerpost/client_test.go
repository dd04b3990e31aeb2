package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// TestRetries: a request is repeated if the server asks for it, for every method, and after a broken connection except
// for POST, which may have been done.
func TestRetries(t *testing.T) {
	testrig.Slow(t)
	f := newForeign(t)
	dir := writeFiles(t, map[string]string{"a.hcl": "project \"a\" {\n  name = \"A\"\n}\n"})
	seen := map[string]bool{}
	f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
		call := r.Method + " " + r.URL.Path
		if seen[call] {
			return false
		}
		seen[call] = true
		w.Header().Set("Retry-After", "0")
		status := http.StatusServiceUnavailable
		if r.Method == "GET" {
			status = http.StatusTooManyRequests
		}
		refuse(w, status, "UNAVAILABLE", "later")
		return true
	}
	if c := f.with(t, dir, "export"); c.code != cli.ExitOK || len(f.projects) != 1 {
		t.Errorf("%+v", c)
	}

	edit(t, dir, "a.hcl", `"a"`, `"b"`)
	broken := 0
	f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != "POST" && (r.Method != "GET" || broken > 0) {
			return false
		}
		broken++
		panic(http.ErrAbortHandler)
	}
	c := f.with(t, dir, "export")
	f.mu.Lock() // a handler that was broken off may not have returned
	defer f.mu.Unlock()
	if c.code != cli.ExitFailed || !strings.Contains(c.err, "POST /api/platform/projects: EOF") || broken != 2 || len(f.projects) != 1 {
		t.Errorf("%d broken: %+v", broken, c)
	}
}

// TestListThatChanges: a list that changes is read again, and given up if it never stops changing.
func TestListThatChanges(t *testing.T) {
	testrig.Thorough(t)
	f := newForeign(t)
	for i := range 150 {
		f.add(object{"name": "N", "slug": fmt.Sprintf("p%03d", i)})
	}
	gone := 0
	f.mangle = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("page") == "2" && gone < 1 {
			gone++
			f.projects = f.projects[1:] // what stood first on page 2 is on page 1 now
		}
		return false
	}
	dir := t.TempDir()
	if c := f.with(t, dir, "import"); c.code != cli.ExitOK || !strings.Contains(c.err, "149 files written") {
		t.Errorf("%+v", c)
	}
	f.mangle = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("page") == "2" {
			f.projects = f.projects[1:]
		}
		return false
	}
	if c := f.with(t, dir, "plan"); c.code != cli.ExitFailed || !strings.Contains(c.err, "the list changed while it was read") {
		t.Errorf("%+v", c)
	}
}

// TestKeyStays: no redirect takes the key elsewhere.
func TestKeyStays(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s arrived with key %q", r.URL, r.Header.Get("X-PLATFORM-KEY"))
	}))
	defer elsewhere.Close()
	f := newForeign(t)
	f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, elsewhere.URL+"/login", http.StatusFound)
		return true
	}
	c := f.with(t, t.TempDir(), "plan")
	if c.code != cli.ExitFailed || !strings.Contains(c.err, "is "+elsewhere.URL+" the address?") {
		t.Errorf("%+v", c)
	}
}

// TestAnswersThatAreNone: answers that are not the API's come from proxies and wrong addresses.
func TestAnswersThatAreNone(t *testing.T) {
	testrig.Thorough(t)
	if testing.Short() {
		t.Skip("waits for timeouts")
	}
	f := newForeign(t)
	for body, want := range map[string]string{
		"<html>welcome</html>":                        "is not the JSON envelope",
		`{"hello": 1}`:                                "is not the JSON envelope",
		`{"success":true,"data":{"id":1}}`:            "read the answer",
		`{"success":true,"data":[{"slug":"a"}]}`:      `project "a" of the answer has no id`,
		`{"success":false,"error":{"code":"X"}}`:      "the server answers 200 X",
		`{"success":true,"data":[{"id":1,"name":7}]}`: "field name of the answer",
	} {
		f.mangle = func(w http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(w, body)
			return true
		}
		if c := f.with(t, t.TempDir(), "plan"); c.code != cli.ExitFailed || !strings.Contains(c.err, want) {
			t.Errorf("%s: %+v", body, c)
		}
	}
	f.Close()
	if testing.Short() {
		return // the pauses before the next tries take 3 s
	}
	t.Setenv("FINGERPOST_TIMEOUT", "2s")
	if c := f.with(t, t.TempDir(), "import"); c.code != cli.ExitFailed || !strings.Contains(c.err, "connection refused") {
		t.Errorf("nobody there: %+v", c)
	}
}

// TestCACert: a private CA is trusted where it is named, and only there.
func TestCACert(t *testing.T) {
	f := newForeign(t)
	secure := httptest.NewTLSServer(http.HandlerFunc(f.serve))
	defer secure.Close()
	secure.Config.ErrorLog = nil
	f.URL = secure.URL
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if c := f.with(t, t.TempDir(), "plan", "--ca-cert", ca); c.code != cli.ExitOK {
		t.Errorf("%+v", c)
	}
	t.Setenv("FINGERPOST_CA_CERT", filepath.Join(t.TempDir(), "none.pem"))
	if c := f.with(t, t.TempDir(), "plan"); c.code != cli.ExitFailed || !strings.Contains(c.err, "none.pem") {
		t.Errorf("%+v", c)
	}
}

// TestMailHasItsOwnAddress, and its own key.
func TestMailHasItsOwnAddress(t *testing.T) {
	f, mail := newForeign(t), newForeign(t)
	f.stock()
	mail.smtp[101] = object{"host": "own.example", "fromEmail": "a@b.example", "active": true}
	f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/api/mail") {
			t.Errorf("the platform service was asked for %s", r.URL.Path)
		}
		return false
	}
	dir := t.TempDir()
	t.Setenv("FINGERPOST_MAIL_KEY", "sentinel-wrong")
	if c := f.with(t, dir, "import", "--mail-url", mail.URL+"/api/mail/"); c.code != cli.ExitFailed || !strings.Contains(c.err, "401") {
		t.Errorf("%+v", c)
	}
	if c := f.with(t, dir, "import", "--mail-url", mail.URL, "--mail-key", foreignKey); c.code != cli.ExitOK || !strings.Contains(read(t, dir, "acme.hcl"), "own.example") {
		t.Errorf("%+v", c)
	}
	if c := f.with(t, t.TempDir(), "import", "--no-mail"); c.code != cli.ExitOK || !strings.Contains(c.err, "not kept: SMTP config and templates of 2 projects") {
		t.Errorf("%+v", c)
	}
}
