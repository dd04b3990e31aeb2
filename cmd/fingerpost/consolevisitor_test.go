package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

// A visitor uses the console without a browser: a jar of cookies, and what it was told last.
type visitor struct {
	t      *testing.T
	base   string
	client *http.Client
	res    *http.Response
	body   string
}

func newVisitor(t *testing.T, base string) *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, base: base, client: &http.Client{Jar: jar, Timeout: testrig.Patience,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
}

// ask sends a request; a form is posted. It follows redirects, as browsers do. A page that a busy machine could not make
// in the console's time is asked for again, as a person would: the work for it goes on meanwhile.
func (v *visitor) ask(path string, form url.Values, headers ...string) (status int) {
	v.t.Helper()
	if form != nil {
		return v.askOnce(path, form, headers)
	}
	testrig.Eventually(v.t, "the console answers "+path, func() bool {
		status = v.askOnce(path, nil, headers)
		return !strings.Contains(v.body, "The service does not answer: it is stopping, or overloaded")
	})
	return status
}

func (v *visitor) askOnce(path string, form url.Values, headers []string) (status int) {
	v.t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	req, err := http.NewRequest(method, v.base+path, body)
	if err != nil {
		v.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	if v.res, err = v.client.Do(req); err != nil {
		v.t.Fatal(err)
	}
	defer v.res.Body.Close()
	b, err := io.ReadAll(v.res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.body = string(b)
	return v.res.StatusCode
}

// expects checks the answer to the last request.
func (v *visitor) expects(status int, texts ...string) {
	v.t.Helper()
	if v.res.StatusCode != status {
		v.t.Errorf("%s: %d, want %d: %s", v.res.Request.URL.Path, v.res.StatusCode, status, cutMiddle(v.body, 600))
	}
	for _, want := range texts {
		if !strings.Contains(v.body, want) {
			v.t.Errorf("%s does not say %q: %s", v.res.Request.URL.Path, want, cutMiddle(v.body, 1500))
		}
	}
}

// token returns the token of the session's forms.
func (v *visitor) token() string {
	v.t.Helper()
	v.ask("/console/sessions", nil)
	m := tokenField.FindStringSubmatch(v.body)
	if m == nil {
		v.t.Fatalf("no form on the page: %s", cutMiddle(v.body, 800))
	}
	return m[1]
}

func (v *visitor) signIn(key string) {
	v.t.Helper()
	v.ask("/console/sign-in", url.Values{"key": {key}})
	v.expects(http.StatusOK, "Look up anything")
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
