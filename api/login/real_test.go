package login_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fingerpost/api/login"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// TestRealProvider signs in at the example server of zitadel/oidc, in a browser's steps, with a secret and without, and
// signs out.
func TestRealProvider(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client, secret string
		args           []string
	}{
		"secret":    {"web", "secret", nil},
		"TLS":       {"web", "secret", []string{"-tls"}},
		"no secret": {"native", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testrig.StartProvider(t, []string{callback}, c.args...)
			d := login.New(login.Options{
				Logins: func() []catalog.Login {
					return []catalog.Login{{Name: "company", Issuer: p.Issuer, ClientID: c.client,
						Rules: []catalog.LoginRule{{Claim: "groups", Value: "ops", Allow: catalog.MayRead}}}}
				},
				Secret:    func(*catalog.Login) (string, error) { return c.secret, nil },
				ReadCA:    func(*catalog.Login) ([]byte, error) { return []byte(p.CA), nil },
				PublicURL: publicURL, Allow: loopback,
			})
			address, cookie, err := d.Begin(t.Context(), login.Start{Login: "company", ReturnTo: "/console/"})
			if err != nil {
				t.Fatal(err)
			}
			browser := newBrowser(t, p)
			query := browser.signIn(address)
			person, to, err := d.Finish(t.Context(), login.Callback{Login: "company", Query: query, Cookie: cookie})
			if err != nil {
				t.Fatal(err)
			}
			if person.Subject != "id1" || person.Name != "Test User" || person.Email != "test-user@zitadel.ch" || to != "/console/" ||
				!slices.Equal(person.Claims.Values("groups"), []string{"ops"}) || len(person.Notes) > 0 {
				t.Errorf("%+v, to %s", person, to)
			}
			if page := browser.get(person.SignOut); !strings.Contains(page, "signed out") {
				t.Errorf("the page of sign-out says %s", page)
			}
			if _, _, err := d.Finish(t.Context(), login.Callback{Login: "company", Query: query, Cookie: cookie}); err == nil {
				t.Error("a callback counts twice")
			}
			l := catalog.Login{Name: "company", Issuer: p.Issuer, ClientID: c.client}
			for _, f := range d.Check(t.Context(), &l) {
				if f.Todo != "" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// A browser keeps cookies, and stops at a callback.
type browser struct {
	t      *testing.T
	client http.Client
	back   url.Values
}

func newBrowser(t *testing.T, p testrig.Provider) *browser {
	b := &browser{t: t}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b.client = http.Client{Jar: jar, Transport: trusting(t, p.CA), CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(req.URL.String(), callback) {
			b.back = req.URL.Query()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return b
}

// signIn gives name and password, and returns the query of the callback.
func (b *browser) signIn(address string) url.Values {
	b.t.Helper()
	page := b.get(address)
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(page)
	if id == nil {
		b.t.Fatalf("the page of sign-in is %s", page)
	}
	u, _ := url.Parse(address)
	res, err := b.client.PostForm(u.Scheme+"://"+u.Host+"/login/username",
		url.Values{"username": {"test-user@127.0.0.1"}, "password": {"verysecure"}, "id": {id[1]}})
	if err != nil {
		b.t.Fatal(err)
	}
	text, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if b.back == nil {
		b.t.Fatalf("no callback after %d %s", res.StatusCode, text)
	}
	return b.back
}

func (b *browser) get(address string) string {
	b.t.Helper()
	res, err := b.client.Get(address)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return string(text)
}

// trusting is a transport that trusts a certificate.
func trusting(t *testing.T, ca string) *http.Transport {
	t.Helper()
	tr := http.DefaultTransport.(*http.Transport).Clone()
	if ca != "" {
		tr.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		if !tr.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(ca)) {
			t.Fatal("no certificate")
		}
	}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}
