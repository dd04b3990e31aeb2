package catalog_test

import (
	"bytes"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

func webhook(change func(w *catalog.Webhook)) *catalog.Webhook {
	w := catalog.NewWebhook("crm")
	w.URL, w.Secrets = "https://hooks.crm.example/x", []catalog.Secret{{Source: catalog.SecretEnv, Ref: "CRM"}}
	change(w)
	return w
}

func TestWebhookRules(t *testing.T) {
	t.Parallel()
	allow := &catalog.HTTPAllow{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("fd00::/8")}}
	f := func(change func(w *catalog.Webhook), want ...string) {
		t.Helper()
		ps := webhook(change).Validate(allow)
		var got []string
		for _, p := range ps {
			got = append(got, p.Path)
			if strings.Contains(p.Message, "hooks.") && !strings.Contains(p.Message, "hooks.acme.example") {
				t.Errorf("the address is quoted: %s", p.Message)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("problems %v, want %v", ps, want)
		}
	}
	url := func(s string) func(w *catalog.Webhook) { return func(w *catalog.Webhook) { w.URL = s } }
	for _, good := range []string{"https://hooks.crm.example", "https://hooks.crm.example:8443/a?b=c", "https://10.1.2.3/",
		"http://10.1.2.3:8080/x", "http://[fd00::1]/", "http://[::ffff:10.1.2.3]/", "HTTPS://Hooks.crm.example/x"} {
		f(url(good))
	}
	for _, bad := range []string{"", "hooks.crm.example", "ftp://hooks.crm.example/", "https:hooks.crm.example", "https://",
		"https://a:b@hooks.crm.example/", "https://@hooks.crm.example/", "https://hooks.crm.example/#x", "https://hooks.crm.example/#",
		"https://hooks.crm.example:0/", "https://hooks.crm.example:65536/", "https://hooks.crm.example:/", "https://hooks.crm.example/a b",
		"https://hooks.crm.example/\r\nx", "http://hooks.crm.example/", "http://192.0.2.1/", "http://[fe80::1%25eth0]/", "http://127.1/",
		"https://-hooks.crm.example/", "https://hooks.crm.example/" + strings.Repeat("a", 2048)} {
		f(url(bad), "url")
	}
	f(func(w *catalog.Webhook) { w.Name = "CRM" }, "name")
	f(func(w *catalog.Webhook) { w.Secrets = nil }, "secret")
	f(func(w *catalog.Webhook) { w.Secrets = make([]catalog.Secret, 4) }, "secret")
	f(func(w *catalog.Webhook) {
		w.Secrets = []catalog.Secret{{Source: catalog.SecretPlain, Ref: "hunter2"}}
	}, "secret")
	f(func(w *catalog.Webhook) { w.Events = []string{} }, "events")
	f(func(w *catalog.Webhook) {
		w.Events = []string{"*", "domain.*", "mail.failed", "key.rotate"}
	})
	f(func(w *catalog.Webhook) {
		w.Events = []string{"dom*", "domain", "domain.verifies", "*.create", "mail.failed", "mail.failed"}
	},
		"events", "events", "events", "events", "events")
	f(func(w *catalog.Webhook) { w.Projects = []string{"Acme"} }, "projects")
	if ps := webhook(func(w *catalog.Webhook) { w.Projects = []string{} }).Validate(allow); len(ps) != 1 || !ps[0].Warning {
		t.Errorf("an empty list: %v", ps)
	}
}

// TestWebhookAllow: without the networks of the service, http to an address is a warning; of accepted files it is none.
func TestWebhookAllow(t *testing.T) {
	t.Parallel()
	f := func(allow *catalog.HTTPAllow, problems int, warning bool) {
		t.Helper()
		ps := webhook(func(w *catalog.Webhook) { w.URL = "http://10.0.0.1/" }).Validate(allow)
		if len(ps) != problems || problems > 0 && ps[0].Warning != warning {
			t.Errorf("%+v: %v", allow, ps)
		}
	}
	f(nil, 0, false)
	f(new(catalog.HTTPAllow), 1, false)
	f(&catalog.HTTPAllow{Unsure: true}, 1, true)
	f(&catalog.HTTPAllow{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, 0, false)
	f(&catalog.HTTPAllow{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/9")}, Unsure: true}, 0, false)
}

func TestWebhookEventHint(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{"dom*": `"domain.*"`, "domain.ver*": `"domain.*"`, "mai*": `"mail.*"`, "*.create": `"domain.*"`} {
		if msg := catalog.CheckWebhookEvent(pattern); !strings.Contains(msg, want) {
			t.Errorf("%s: %s", pattern, msg)
		}
	}
	for _, p := range catalog.WebhookPatterns() {
		if msg := catalog.CheckWebhookEvent(p); msg != "" {
			t.Errorf("%s %s", p, msg)
		}
	}
}

func TestWebhookWants(t *testing.T) {
	t.Parallel()
	f := func(events []string, event string, want bool) {
		t.Helper()
		w := &catalog.Webhook{Events: events}
		if w.Wants(event) != want {
			t.Errorf("%q wants %s: %v", events, event, !want)
		}
	}
	for _, e := range catalog.WebhookEvents() {
		f(nil, e, !strings.HasPrefix(e, "mail."))
		f([]string{"*"}, e, true)
		f([]string{"domain.*"}, e, strings.HasPrefix(e, "domain."))
		f([]string{"domain.update"}, e, e == "domain.update")
	}
	f([]string{"key.*", "mail.sent"}, "mail.sent", true)
	f([]string{"template.*"}, "default-template.update", false)
}

func TestWebhookSecret(t *testing.T) {
	t.Parallel()
	a, b := catalog.NewWebhookSecret(), catalog.NewWebhookSecret()
	key, err := catalog.ParseWebhookSecret(a)
	if a == b || err != nil || len(key) != 32 || catalog.CheckWebhookSecret(b) != "" {
		t.Errorf("new secrets: %d bytes, %v", len(key), err)
	}
	of := func(n int) string {
		return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, n))
	}
	for _, good := range []string{of(24), of(25), of(64)} {
		if msg := catalog.CheckWebhookSecret(good); msg != "" {
			t.Error(msg)
		}
	}
	for _, bad := range []string{"", "whsec_", of(23), of(65), of(24)[6:], "WHSEC_" + of(24)[6:], strings.TrimRight(of(25), "="),
		strings.ReplaceAll(of(24), "+", "-"), of(24) + "\n", of(24)[:20] + "\n" + of(24)[20:]} {
		if msg := catalog.CheckWebhookSecret(bad); msg == "" || bad != "" && bad != "whsec_" && strings.Contains(msg, bad) {
			t.Errorf("%q: %q", bad, msg)
		}
	}
}

// TestWebhookRotation: the new secret comes first, at most three stay, and the verb tells a rotation from its end.
func TestWebhookRotation(t *testing.T) {
	t.Parallel()
	secret := func(name string) catalog.Secret { return catalog.Secret{Source: catalog.SecretEnv, Ref: name} }
	w := webhook(func(*catalog.Webhook) {})
	names := func() (list []string) {
		for _, s := range w.Secrets {
			list = append(list, s.Ref)
		}
		return list
	}
	rotate := func(name string, overlap bool, want ...string) {
		t.Helper()
		was := w.Clone()
		w.Rotate(secret(name), overlap)
		if !slices.Equal(names(), want) {
			t.Errorf("secrets %v, want %v", names(), want)
		}
		before, after := was.Object(), w.Object()
		if c := catalog.ChangeOf(&before, &after); c.Verb() != "rotate" {
			t.Errorf("the verb is %s", c.Verb())
		}
	}
	rotate("B", true, "B", "CRM")
	rotate("C", true, "C", "B", "CRM")
	rotate("D", true, "D", "C", "B")
	was := w.Clone()
	if !w.EndRotation() || !slices.Equal(names(), []string{"D"}) || w.EndRotation() {
		t.Errorf("after its end: %v", names())
	}
	before, after := was.Object(), w.Object()
	if c := catalog.ChangeOf(&before, &after); c.Verb() != "update" || len(c.Fields) != 1 {
		t.Errorf("the end is %s of %v", c.Verb(), c.Fields)
	}
	rotate("E", false, "E")
}
