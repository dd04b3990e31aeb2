package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

func TestCheckAddress(t *testing.T) {
	f := func(address string, good bool) {
		t.Helper()
		if msg := catalog.CheckAddress(address); (msg == "") != good {
			t.Errorf("CheckAddress(%q) = %q, want good = %v", address, msg, good)
		}
	}
	f("hello@acme.example", true)
	f("a@b", true)
	f("a.b+c_d-e@acme.example", true)
	f("o'neil!#$%&*/=?^`{|}~@acme.example", true)
	f("root@localhost", true)
	f("hello@bücher.example", true)
	f(strings.Repeat("a", 64)+"@acme.example", true)
	f("", false)
	f("@", false)
	f("hello", false)
	f("hello@", false)
	f("@acme.example", false)
	f("a@b@c", false)
	f("hello@acme.example ", false)
	f(" hello@acme.example", false)
	f("hello @acme.example", false)
	f("Hello <hello@acme.example>", false)
	f("<hello@acme.example>", false)
	f("\"a b\"@acme.example", false)
	f("\"a\"@acme.example", false)
	f("a@acme.example,b@acme.example", false)
	f("a@acme.example\r\nBcc: b@acme.example", false)
	f("a@acme.example\x00", false)
	f("a@acme.example\x7f", false)
	f("(comment)a@acme.example", false)
	f("a@acme.example(comment)", false)
	f("a..b@acme.example", true)
	f(`"a..b"@acme.example`, true)
	f(`"a b"@acme.example`, false)
	f(`""@acme.example`, false)
	f(`"a..b@acme.example`, false)
	f(`a.""@acme.example`, false)
	f(`"a@acme.example`, false)
	f("..@acme.example", false)
	f(".a@acme.example", false)
	f("a.@acme.example", true)
	f("grüße@acme.example", false)
	f("a@[127.0.0.1]", false)
	f("a@127.0.0.1", false)
	f("a@acme..example", false)
	f("a@-acme.example", false)
	f("a@*.acme.example", false)
	f("a@acme.example:25", false)
	f("a@xn--a.example", false)
	f(strings.Repeat("a", 65)+"@acme.example", false)
	f("a@"+strings.Repeat("a.", 126)+"a", false)
	f("a;b@acme.example", false)
	f("a@\xff.example", false)
	f("a@acme.example.", false)
	f("a@acme.example\u3002", false)
	f("=?utf-8?q?b=40evil.example?=@acme.example", false)
	f("=?x@acme.example", true)
	f(strings.Repeat("a", 60)+"@"+strings.Repeat("a.", 96)+"a", true)
	f(strings.Repeat("a", 61)+"@"+strings.Repeat("a.", 96)+"a", false)
	f("a@"+strings.Repeat("ü", 55)+".example", true)
	f(strings.Repeat("a", 64)+"@"+strings.Repeat("bücher.", 13)+"example", true)
	f(strings.Repeat("a", 64)+"@"+strings.Repeat("bücher.", 14)+"example", false)
}

func TestSMTPValidate(t *testing.T) {
	good := catalog.SMTPConfig{Host: "smtp.acme.example", FromEmail: "hello@acme.example"}
	f := func(change func(c *catalog.SMTPConfig), want ...string) {
		t.Helper()
		c := good
		change(&c)
		if got := paths(c.Validate()); !slices.Equal(got, want) {
			t.Errorf("%+v: problems on %q, want %q", c, got, want)
		}
	}
	f(func(c *catalog.SMTPConfig) {})
	f(func(c *catalog.SMTPConfig) { *c = catalog.SMTPConfig{} }, "host", "fromEmail")
	f(func(c *catalog.SMTPConfig) { c.Host = "127.0.0.1" })
	for _, auth := range []string{"plain", "login", "cram-md5"} {
		f(func(c *catalog.SMTPConfig) { c.Auth = auth })
	}
	f(func(c *catalog.SMTPConfig) { c.Auth = "PLAIN" }, "auth")
	f(func(c *catalog.SMTPConfig) { c.Auth = "xoauth2" }, "username", "oauthTokenUrl", "oauthClientId", "oauthClientSecret")
	f(func(c *catalog.SMTPConfig) { c.OAuth.ClientID = "x" }, "auth") // a warning: it is not used
	byToken := func(change func(o *catalog.OAuthClient), want ...string) {
		t.Helper()
		f(func(c *catalog.SMTPConfig) {
			c.Auth, c.Username = "xoauth2", "hello@acme.example"
			c.OAuth = catalog.OAuthClient{TokenURL: "https://login.acme.example/token?x=1", ClientID: "x", Scope: "a b",
				Secret: catalog.Secret{Source: catalog.SecretEnv, Ref: "S"}}
			change(&c.OAuth)
		}, want...)
	}
	byToken(func(*catalog.OAuthClient) {})
	byToken(func(o *catalog.OAuthClient) { o.TokenURL = "https://127.0.0.1:8443/" })
	for _, url := range []string{"http://login.acme.example/", "http://127.0.0.1/", "login.acme.example", "https://user:pw@login.acme.example/",
		"https://login.acme.example/#x", "https://login.acme.example/" + strings.Repeat("x", 2048)} {
		byToken(func(o *catalog.OAuthClient) { o.TokenURL = url }, "oauthTokenUrl")
	}
	byToken(func(o *catalog.OAuthClient) { o.ClientID, o.Scope = "a\nb", strings.Repeat("a", 1025) }, "oauthClientId", "oauthScope")
	byToken(func(o *catalog.OAuthClient) { o.Secret = catalog.Secret{Source: catalog.SecretPlain, Ref: "***"} }, "oauthClientSecret")
	f(func(c *catalog.SMTPConfig) { c.Host = "::1" })
	f(func(c *catalog.SMTPConfig) { c.Host = "smtp.acme.example:587" }, "host")
	f(func(c *catalog.SMTPConfig) { c.Host = "*.acme.example" }, "host")
	f(func(c *catalog.SMTPConfig) { c.Port = 65535 })
	f(func(c *catalog.SMTPConfig) { c.Port = 65536 }, "port")
	f(func(c *catalog.SMTPConfig) { c.Port = -1 }, "port")
	f(func(c *catalog.SMTPConfig) { c.FromEmail = "Acme <hello@acme.example>" }, "fromEmail")
	f(func(c *catalog.SMTPConfig) { c.ReplyTo = "hello" }, "replyTo")
	f(func(c *catalog.SMTPConfig) { c.FromName = "Acme\r\nBcc: x" }, "fromName")
	f(func(c *catalog.SMTPConfig) { c.FromName = "Acme\u2028Shop" }, "fromName")
	f(func(c *catalog.SMTPConfig) {
		c.FromName, c.Username = strings.Repeat("a", 256), strings.Repeat("a", 256)
	}, "fromName", "username")
	f(func(c *catalog.SMTPConfig) { c.Password = catalog.Secret{Source: catalog.SecretEnv, Ref: "P"} }, "username")
	f(func(c *catalog.SMTPConfig) {
		c.Username, c.Password = "acme", catalog.Secret{Source: catalog.SecretPlain, Ref: "********"}
	}, "password")
	f(func(c *catalog.SMTPConfig) {
		c.Username, c.Password = "acme", catalog.Secret{Source: catalog.SecretPlain, Ref: "*a*"}
	})
}

func TestEffectivePort(t *testing.T) {
	f := func(c catalog.SMTPConfig, want int) {
		t.Helper()
		if got := c.EffectivePort(); got != want {
			t.Errorf("%+v: port %d, want %d", c, got, want)
		}
	}
	f(catalog.SMTPConfig{}, 587)
	f(catalog.SMTPConfig{TLSEnabled: true}, 587)
	f(catalog.SMTPConfig{SSLEnabled: true}, 465)
	f(catalog.SMTPConfig{Port: 2525, SSLEnabled: true}, 2525)
}

// A secret in a log line or an error shows its source, never its value.
func TestSecretPrints(t *testing.T) {
	f := func(source catalog.SecretSource, ref, want string) {
		t.Helper()
		s := catalog.Secret{Source: source, Ref: ref}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if got := fmt.Sprintf(verb, s); got != want {
				t.Errorf("%s prints %q, want %q", verb, got, want)
			}
			if got := fmt.Sprintf(verb, catalog.SMTPConfig{Password: s}); strings.Contains(got, "hunter2") {
				t.Errorf("%s of the config prints %q", verb, got)
			}
		}
	}
	f(catalog.SecretNone, "", "none")
	f(catalog.SecretPlain, "hunter2", "plain")
	f(catalog.SecretSealed, "hunter2", "sealed")
	f(catalog.SecretEnv, "SMTP_PASSWORD", "env(SMTP_PASSWORD)")
	f(catalog.SecretFile, "acme/password", "file(acme/password)")
}

// TestParseAddress asserts the canonical form: quotes stand where SMTP needs them, and nowhere else.
func TestParseAddress(t *testing.T) {
	f := func(address, want string) {
		t.Helper()
		if got, err := catalog.ParseAddress(address); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", address, got, err, want)
		}
	}
	f("ada@Acme.Example", "ada@acme.example")
	f("a..b.@docomo.example", `"a..b."@docomo.example`)
	f(`"a..b."@docomo.example`, `"a..b."@docomo.example`)
	f("a.@docomo.example", `"a."@docomo.example`)
}
