package hcledit_test

import (
	"reflect"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

func inboundsIn(t *testing.T, src []byte) []catalog.Inbound {
	t.Helper()
	r, ds := hclfile.Decode("inbound.hcl", src, hclfile.Options{})
	if ds.HasErrors() {
		t.Fatalf("%v in\n%s", ds, src)
	}
	return r.Declared.Inbounds
}

// TestInboundBlock: what is written decodes to the same block, and a change touches the lines that it is about.
func TestInboundBlock(t *testing.T) {
	t.Parallel()
	full, plain := catalog.NewInbound("ses"), catalog.NewInbound("relay")
	full.Format, full.Secrets, full.Projects = catalog.InboundSES, env("A", "B"), []string{"acme", "shop"}
	plain.Format, plain.Secrets = catalog.InboundJSON, env("R")
	src, err := hcledit.AddInbound(nil, plain)
	if want := "inbound \"relay\" {\n  format = \"json\"\n  secret = env(\"R\")\n}\n"; err != nil || string(src) != want {
		t.Errorf("%v, got\n%s", err, src)
	}
	if src, err = hcledit.AddInbound(src, full); err != nil || !reflect.DeepEqual(inboundsIn(t, src), []catalog.Inbound{*plain, *full}) {
		t.Errorf("%v, got\n%s", err, src)
	}
	if src, err = hcledit.RemoveInbound(src, "relay"); err != nil || len(inboundsIn(t, src)) != 1 {
		t.Errorf("%v, got\n%s", err, src)
	}
	before := "# ours\ninbound \"ses\" {\n  format   = \"ses\" # AWS\n  secret   = env(\"A\")\n  projects = [\"acme\"]\n}\n"
	f := func(name, after string, change func(b *catalog.Inbound)) {
		t.Helper()
		edited(t, name, before, after, func(src []byte) ([]byte, error) {
			was := inboundsIn(t, src)[0]
			want := was.Clone()
			change(&want)
			return hcledit.ChangeInbound(src, &was, &want)
		})
	}
	f("secret", "# ours\ninbound \"ses\" {\n  format   = \"ses\" # AWS\n  secret   = [env(\"B\"), env(\"A\")]\n  projects = [\"acme\"]\n}\n",
		func(b *catalog.Inbound) { b.Secrets = env("B", "A") })
	f("no list", "# ours\ninbound \"ses\" {\n  format = \"ses\" # AWS\n  secret = env(\"A\")\n}\n",
		func(b *catalog.Inbound) { b.Projects = nil })
	f("format", "# ours\ninbound \"ses\" {\n  format   = \"json\" # AWS\n  secret   = env(\"A\")\n  projects = []\n}\n",
		func(b *catalog.Inbound) { b.Format, b.Projects = catalog.InboundJSON, []string{} })
}

// TestMergeInbounds: a rename of a project and a new secret that somebody else has set are merged; two formats are not.
func TestMergeInbounds(t *testing.T) {
	t.Parallel()
	block := func(format, secret, project string) string {
		return "inbound \"ses\" {\n  format   = \"" + format + "\"\n  secret   = env(\"" + secret + "\")\n  projects = [\"" + project + "\"]\n}\n"
	}
	got, err := hcledit.Merge("a.hcl", []byte(block("ses", "A", "acme")), []byte(block("ses", "A", "shop")), []byte("# ours\n"+block("ses", "B", "acme")), false)
	if want := "# ours\n" + block("ses", "B", "shop"); err != nil || string(got) != want {
		t.Errorf("%v, got\n%s", err, got)
	}
	if got, err = hcledit.Merge("a.hcl", []byte(block("ses", "A", "acme")), []byte(block("json", "A", "acme")), []byte(block("postmark", "A", "acme")), false); err == nil {
		t.Errorf("two formats are merged:\n%s", got)
	}
}
