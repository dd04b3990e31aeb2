package hcledit_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

func env(names ...string) (list []catalog.Secret) {
	for _, n := range names {
		list = append(list, catalog.Secret{Source: catalog.SecretEnv, Ref: n})
	}
	return list
}

func webhooksIn(t *testing.T, src []byte) []catalog.Webhook {
	t.Helper()
	r, ds := hclfile.Decode("hooks.hcl", src, hclfile.Options{})
	if ds.HasErrors() {
		t.Fatalf("%v in\n%s", ds, src)
	}
	return r.Declared.Webhooks
}

// TestWebhookBlock: what is written decodes to the same webhook.
func TestWebhookBlock(t *testing.T) {
	t.Parallel()
	full := catalog.NewWebhook("crm")
	full.Secrets = append(env("A"), catalog.Secret{Source: catalog.SecretFile, Ref: "s/b"},
		catalog.Secret{Source: catalog.SecretSealed, Ref: "eA=="})
	full.URL = "https://crm.example/%24?a=b&c=$%7B"
	full.Events, full.Projects, full.Active = []string{"domain.*", "mail.failed"}, []string{}, false
	plain := catalog.NewWebhook("plain")
	plain.URL, plain.Secrets = "https://plain.example/", env("A")
	src, err := hcledit.AddWebhook(nil, plain)
	if err != nil {
		t.Fatal(err)
	}
	if want := "webhook \"plain\" {\n  url    = \"https://plain.example/\"\n  secret = env(\"A\")\n}\n"; string(src) != want {
		t.Errorf("got\n%s", src)
	}
	if src, err = hcledit.AddWebhook(src, full); err != nil {
		t.Fatal(err)
	}
	if got := webhooksIn(t, src); !reflect.DeepEqual(got, []catalog.Webhook{*plain, *full}) {
		t.Errorf("%+v", got)
	}
	if _, err := hcledit.AddWebhook(src, plain); err == nil {
		t.Error("a name is added twice")
	}
	if src, err = hcledit.RemoveWebhook(src, "plain"); err != nil || len(webhooksIn(t, src)) != 1 {
		t.Errorf("%s, %v", src, err)
	}
}

func TestChangeWebhook(t *testing.T) {
	t.Parallel()
	block := func(lines ...string) string {
		return "# ours\nwebhook \"crm\" {\n  " + strings.Join(lines, "\n  ") + "\n}\n"
	}
	f := func(name, before, after string, change func(w *catalog.Webhook)) {
		t.Helper()
		edited(t, name, before, after, func(src []byte) ([]byte, error) {
			was := webhooksIn(t, src)[0]
			want := was.Clone()
			change(&want)
			out, err := hcledit.ChangeWebhook(src, &was, &want)
			if err == nil && !reflect.DeepEqual(webhooksIn(t, out)[0], want) {
				t.Errorf("%s: %+v, want %+v", name, webhooksIn(t, out)[0], want)
			}
			return out, err
		})
	}
	const url, one = `url    = "https://crm.example/"`, `secret = env("A") # first`
	rotate := func(overlap bool) func(w *catalog.Webhook) {
		return func(w *catalog.Webhook) { w.Rotate(env("NEW")[0], overlap) }
	}
	f("nothing", block(url, one), block(url, one), func(*catalog.Webhook) {})
	f("address", block(url+" # why", one), block(`url    = "https://new.example/" # why`, one), func(w *catalog.Webhook) {
		w.URL = "https://new.example/"
	})
	f("off", block(url, one), block(url, one, "active = false"), func(w *catalog.Webhook) { w.Active = false })
	f("on", block(url, one, "active = false # for now"), block(url, one, "active = true # for now"), func(w *catalog.Webhook) { w.Active = true })
	f("events", block(url, one), block(url, one, `events = ["domain.*"]`), func(w *catalog.Webhook) { w.Events = []string{"domain.*"} })
	f("fewer events", block(url, one, `events = ["domain.*", "key.*"] # few`), block(url, one, `events = ["key.*"] # few`), func(w *catalog.Webhook) {
		w.Events = []string{"key.*"}
	})
	f("no list", block(url, one, "# few", `events = ["domain.*", "key.*"] # few`), block(url, one), func(w *catalog.Webhook) { w.Events = nil })
	f("lines", block(url, one, "events = [", `  "domain.*", # purge`, `  "key.*",`, "]"),
		block(url, one, "events = [", `  "project.*",`, `  "domain.*", # purge`, `  "edge.*",`, "]"), func(w *catalog.Webhook) {
			w.Events = []string{"project.*", "domain.*", "edge.*"}
		})
	f("last line", block(url, one, "projects = [", `  "a"`, "]"), block(url, one, "projects = [", `  "a",`, `  "b",`, `  "c",`, "]"),
		func(w *catalog.Webhook) { w.Projects = []string{"a", "b", "c"} })
	f("empty", block(url, one, `projects = ["a"]`), block(url, one, "projects = []"), func(w *catalog.Webhook) { w.Projects = []string{} })
	f("rotate", block(url, one), block(url, `secret = [env("NEW"), env("A")] # first`), rotate(true))
	f("rotate again", block(url, `secret = [env("A"), env("B")]`), block(url, `secret = [env("NEW"), env("A"), env("B")]`), rotate(true))
	f("rotate the third", block(url, `secret = [env("A"), env("B"), env("C")]`), block(url, `secret = [env("NEW"), env("A"), env("B")]`), rotate(true))
	f("rotate at once", block(url, `secret = [env("A"), env("B")]`), block(url, `secret = env("NEW")`), rotate(false))
	f("rotate lines", block(url, "secret = [", `  env("A"), # Monday`, `  env("B"), # Sunday`, `  env("C"),`, "]"),
		block(url, "secret = [", `  env("NEW"),`, `  env("A"), # Monday`, `  env("B"), # Sunday`, "]"), rotate(true))
	f("end", block(url, `secret = [env("A"), env("B")] # two`), block(url, `secret = env("A") # two`), func(w *catalog.Webhook) { w.EndRotation() })
	f("end lines", block(url, "secret = [", `  env("A"), # Monday`, `  # old`, `  env("B"),`, "]"), block(url, "secret = [", `  env("A"), # Monday`, "]"),
		func(w *catalog.Webhook) { w.EndRotation() })
}

// TestChangeListAtRandom: whatever a list looks like, it gets the wanted elements, and no comment is lost but on lines
// that go.
func TestChangeListAtRandom(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	slugs := func() (list []string) {
		for _, s := range []string{"a", "b", "c", "d"} {
			if random.IntN(2) == 0 {
				list = append(list, s)
			}
		}
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return append([]string{}, list...)
	}
	refused, n := 0, testrig.Size(t, 3000, 300)
	for range n {
		var b strings.Builder
		b.WriteString("webhook \"crm\" {\n  url = \"https://crm.example/\"\n  secret = env(\"A\")\n  projects = [" + pick("", " ", "\n", " # c\n", "/* d */"))
		has := slugs()
		for i, s := range has {
			b.WriteString(`"` + s + `"` + pick("", " ", "/* e */"))
			if i < len(has)-1 || random.IntN(2) == 0 {
				b.WriteString("," + pick("", " ", "\n", " # f\n", "/* g */", "/* h */\n", "\n\n"))
			} else {
				b.WriteString(pick("", "\n", " # i\n"))
			}
		}
		b.WriteString("]" + pick("", " # j") + "\n}\n")
		want := slugs()
		for _, src := range [][]byte{[]byte(b.String()), bytes.ReplaceAll([]byte(b.String()), []byte("\n"), []byte("\r\n"))} {
			was := webhooksIn(t, src)[0]
			is := was.Clone()
			is.Projects = want
			out, err := hcledit.ChangeWebhook(src, &was, &is)
			if stays := slices.ContainsFunc(has, func(s string) bool { return slices.Contains(want, s) }); err != nil {
				if refused++; stays {
					t.Fatalf("%v: %q in\n%s", err, want, src)
				}
				continue
			}
			if got := webhooksIn(t, out)[0]; !reflect.DeepEqual(got, is) {
				t.Fatalf("%q, want %q, of\n%s", got.Projects, want, src)
			}
		}
	}
	if refused > n {
		t.Errorf("%d of %d were refused", refused, 2*n)
	}
}

func TestReplaceSealed(t *testing.T) {
	t.Parallel()
	const src = "webhook \"crm\" {\n  secret = [sealed(\"b2xk\"), # old\n    sealed(\"b3RoZXI=\")]\n}\n"
	out, err := hcledit.ReplaceSealed([]byte(src), "b2xk", "bmV3")
	if err != nil || string(out) != strings.Replace(src, "b2xk", "bmV3", 1) {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := hcledit.ReplaceSealed([]byte(src), "bmV3", "x"); err == nil {
		t.Error("a value that is not there was replaced")
	}
}

// TestMergeWebhooks: fields that both sides have changed differently are a conflict; all others are merged.
func TestMergeWebhooks(t *testing.T) {
	t.Parallel()
	const base = "webhook \"crm\" {\n  url    = \"https://crm.example/\" # theirs\n  secret = env(\"A\")\n  events = [\"domain.*\"]\n}\n"
	edit := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(base) }
	other := "\n" + strings.ReplaceAll(base, `"crm"`, `"two"`)
	f := func(name, after, theirs, want string, force bool) {
		t.Helper()
		got, err := hcledit.Merge("hooks.hcl", []byte(base), []byte(after), []byte(theirs), force)
		if want == "" {
			if conflict := new(hcledit.Conflict); !errors.As(err, &conflict) || conflict.All[0].Kind != catalog.KindWebhook {
				t.Errorf("%s: %s, %v", name, got, err)
			}
		} else if err != nil || string(got) != want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", name, err, got, want)
		}
	}
	url, on := edit("https://crm", "https://new"), edit(`["domain.*"]`, `["*"]`)
	f("two fields", url, on, edit("https://crm", "https://new", `["domain.*"]`, `["*"]`), false)
	f("one field", url, edit("https://crm", "https://other"), "", false)
	f("by force", url, edit("https://crm", "https://other"), url, true)
	f("added", base+other, on, on+strings.ReplaceAll(other, " # theirs", ""), false)
	f("removed", "# none\n", on, "", false)
	f("gone there", on, "# none\n", "", false)
	f("gone on both sides", "# none\n", "# no more\n", "# no more\n", false)
	clear := edit(`env("A")`, `"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"`)
	if out, err := hcledit.Merge("hooks.hcl", []byte(base), []byte(clear), []byte(on), false); err == nil || strings.Contains(err.Error(), "whsec_") {
		t.Errorf("a secret in clear text: %s, %v", out, err)
	}
}
