package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

// TestInboundRules: each rule of an inbound block has its problem, and none quotes a secret.
func TestInboundRules(t *testing.T) {
	t.Parallel()
	f := func(change func(b *catalog.Inbound), want ...string) {
		t.Helper()
		b := catalog.NewInbound("ses")
		b.Format, b.Secrets = catalog.InboundSES, []catalog.Secret{{Source: catalog.SecretEnv, Ref: "SES"}}
		change(b)
		ps, got := b.Validate(), []string(nil)
		for _, p := range ps {
			path := p.Path
			if p.Warning {
				path += "?"
			}
			if got = append(got, path); strings.Contains(p.Message, "hunter") {
				t.Errorf("the secret is quoted: %s", p.Message)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("problems %v, want %v", ps, want)
		}
	}
	plain := func(text string) func(b *catalog.Inbound) {
		return func(b *catalog.Inbound) { b.Secrets = []catalog.Secret{{Source: catalog.SecretPlain, Ref: text}} }
	}
	for _, format := range catalog.InboundFormats {
		f(func(b *catalog.Inbound) { b.Format = format })
	}
	f(plain("hunter2-hunter2-"))
	f(plain(strings.Repeat("h", 200)))
	for _, bad := range []string{"hunter2-hunter2", "hunter2 hunter2 hunter2", "hunter2-hunter2-ü", "hunter2-hunter2-\x7f", strings.Repeat("h", 201)} {
		f(plain(bad), "secret")
	}
	f(func(b *catalog.Inbound) { b.Secrets = slices.Repeat(b.Secrets, 3) })
	f(func(b *catalog.Inbound) { b.Secrets = slices.Repeat(b.Secrets, 4) }, "secret")
	f(func(b *catalog.Inbound) { b.Format, b.Secrets = "SES", nil }, "format", "secret")
	f(func(b *catalog.Inbound) { b.Name, b.Format = "S E S", "" }, "name", "format")
	f(func(b *catalog.Inbound) { b.Projects = []string{} }, "projects?")
	f(func(b *catalog.Inbound) { b.Projects = []string{"acme", "Acme", "acme"} }, "projects", "projects?")
}
