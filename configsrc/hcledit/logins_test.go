package hcledit_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

func loginsIn(t *testing.T, src []byte) []catalog.Login {
	t.Helper()
	r, ds := hclfile.Decode("logins.hcl", src, hclfile.Options{})
	if ds.HasErrors() {
		t.Fatalf("%v in\n%s", ds, src)
	}
	return r.Declared.Logins
}

// TestLoginBlock: what is written decodes to the same login.
func TestLoginBlock(t *testing.T) {
	t.Parallel()
	full := catalog.NewLogin("company")
	full.Issuer, full.ClientID, full.ClientSecret = "https://login.example/%24?", `finger"post${x}`, env("A")[0]
	full.Issuer = "https://login.example/%24"
	full.Scopes, full.Label, full.CAFile = []string{"openid", "groups"}, "Acme — account", "certificates/ca.pem"
	full.Rules = []catalog.LoginRule{
		{Claim: "groups", Value: "ops", Allow: catalog.MayAll},
		{Claim: "groups", Value: "ops", Allow: catalog.MayPropose | catalog.MayRead, Projects: []string{"acme", "shop"}},
		{Claim: "https://acme.example/%{x}", Value: `*"\`, Allow: catalog.MayRead, Projects: []string{}},
	}
	plain := catalog.NewLogin("plain")
	plain.Issuer, plain.ClientID = "https://plain.example/", "fingerpost"
	plain.Rules = full.Rules[:1]
	src, err := hcledit.AddLogin(nil, plain)
	if err != nil {
		t.Fatal(err)
	}
	const want = `login "plain" {
  issuer    = "https://plain.example/"
  client_id = "fingerpost"

  rule {
    claim = "groups"
    value = "ops"
    allow = ["resolve", "read", "write", "mail", "secrets"]
  }
}
`
	if string(src) != want {
		t.Errorf("got\n%s", src)
	}
	if src, err = hcledit.AddLogin(src, full); err != nil {
		t.Fatal(err)
	}
	if got := loginsIn(t, src); !reflect.DeepEqual(got, []catalog.Login{*plain, *full}) {
		t.Errorf("%+v", got)
	}
	if _, err := hcledit.AddLogin(src, plain); err == nil {
		t.Error("a name is added twice")
	}
	if src, err = hcledit.RemoveLogin(src, "plain"); err != nil || len(loginsIn(t, src)) != 1 {
		t.Errorf("%s, %v", src, err)
	}
}

const twoRules = `# ours
login "company" {
  issuer    = "https://login.example/" # theirs
  client_id = "fingerpost"

  # Operators.
  rule {
    claim = "groups"
    value = "ops" # as Keycloak has it
    allow = ["read"]
  }
  rule {
    claim    = "groups"
    value    = "shop"
    allow    = ["read"]
    projects = ["acme", "shop"] # two
  }
}
`

// TestChangeLogin: only the bytes of the values that differ change.
func TestChangeLogin(t *testing.T) {
	t.Parallel()
	f := func(name string, change func(l *catalog.Login), pairs ...string) {
		t.Helper()
		was := loginsIn(t, []byte(twoRules))[0]
		want := was.Clone()
		change(&want)
		out, err := hcledit.ChangeLogin([]byte(twoRules), &was, &want)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if got := loginsIn(t, out); !reflect.DeepEqual(got, []catalog.Login{want}) {
			t.Errorf("%s: it says %+v, want %+v", name, got, want)
		}
		if text := strings.NewReplacer(pairs...).Replace(twoRules); len(pairs) > 0 && string(out) != text {
			t.Errorf("%s: got\n%s\nwant\n%s", name, out, text)
		}
	}
	f("nothing", func(*catalog.Login) {}, "x y z", "")
	f("issuer", func(l *catalog.Login) { l.Issuer = "https://new.example/" }, "https://login.example/", "https://new.example/")
	f("a value", func(l *catalog.Login) { l.Rules[0].Value = "admins" }, `"ops" # as`, `"admins" # as`)
	f("a list", func(l *catalog.Login) { l.Rules[1].Projects = []string{"shop"} }, `["acme", "shop"] # two`, `["shop"] # two`)
	f("no list", func(l *catalog.Login) { l.Rules[1].Projects = nil })
	f("a new list", func(l *catalog.Login) { l.Rules[0].Projects = []string{} },
		"    claim = \"groups\"\n    value = \"ops\" # as Keycloak has it\n    allow = [\"read\"]\n",
		"    claim    = \"groups\"\n    value    = \"ops\" # as Keycloak has it\n    allow    = [\"read\"]\n    projects = []\n")
	f("all else", func(l *catalog.Login) {
		l.ClientID, l.ClientSecret, l.Scopes, l.Label, l.CAFile = "x", env("B")[0], []string{"openid"}, "Acme", "ca.pem"
		l.Rules[0].Claim, l.Rules[0].Allow = "roles", catalog.MayAll
	})
	f("a rule more", func(l *catalog.Login) { l.Rules = append(l.Rules, l.Rules[0]) })
	f("no rule", func(l *catalog.Login) { l.Rules = nil })
}

// TestReplaceInListsOfLogins: the lists of all rules follow a project, and nothing else of the block does.
func TestReplaceInListsOfLogins(t *testing.T) {
	t.Parallel()
	text := twoRules + "\nlogin \"acme\" {\n  issuer    = \"https://acme/\"\n  client_id = \"acme\"\n  rule {\n    claim    = \"acme\"\n" +
		"    value    = \"acme\"\n    allow    = [\"read\"]\n    projects = [\n      \"acme\", # why\n    ]\n  }\n}\n"
	if got, want := string(replaceInKeys(t, []byte(text), "acme", "new")),
		strings.NewReplacer(`["acme", `, `["new", `, `"acme", # why`, `"new", # why`).Replace(text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := string(replaceInKeys(t, []byte(text), "acme", "")),
		strings.NewReplacer(`["acme", `, `[`, "[\n      \"acme\", # why\n    ]", "[\n    ]").Replace(text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestMergeLogins: fields and rules that both sides have changed differently are a conflict; all others are merged.
func TestMergeLogins(t *testing.T) {
	t.Parallel()
	edit := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(twoRules) }
	f := func(name, after, theirs, want string, force bool) {
		t.Helper()
		got, err := hcledit.Merge("logins.hcl", []byte(twoRules), []byte(after), []byte(theirs), force)
		if want == "" {
			if conflict := new(hcledit.Conflict); !errors.As(err, &conflict) || conflict.All[0].Kind != catalog.KindLogin {
				t.Errorf("%s: %s, %v", name, got, err)
			}
		} else if err != nil || string(got) != want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", name, err, got, want)
		}
	}
	renamed := edit(`["acme", `, `["new", `)
	issuer := edit("https://login.example/", "https://new.example/")
	f("a rename", renamed, issuer, edit(`["acme", `, `["new", `, "https://login.example/", "https://new.example/"), false)
	f("a rename next to another rule", renamed, edit(`"ops"`, `"admins"`), edit(`["acme", `, `["new", `, `"ops"`, `"admins"`), false)
	first := "  # Operators.\n  rule {\n    claim = \"groups\"\n    value = \"ops\" # as Keycloak has it\n    allow = [\"read\"]\n  }\n"
	f("a rename next to a rule that is gone", renamed, edit(first, ""), edit(first, "", `["acme", `, `["new", `), false)
	f("a rename of a rule that lets others in", renamed, edit(`"shop"`+"\n", `"all"`+"\n"), "", false)
	f("a rename of a rule that is gone", edit(`"ops"`, `"admins"`), edit(first, ""), "", false)
	f("one rule more on one side, one changed on the other", edit("  # Operators.\n", first), edit(`"ops"`, `"admins"`), "", false)
	f("by force", renamed, edit(`"shop"`+"\n", `"all"`+"\n"), renamed, true)
	f("one field", issuer, edit("https://login.example/", "https://other.example/"), "", false)
	f("removed", "# none\n", issuer, "", false)
	f("gone there", issuer, "# none\n", "", false)
	clear := edit("  client_id", "  client_secret = \"hunter2\"\n  client_id")
	if out, err := hcledit.Merge("logins.hcl", []byte(twoRules), []byte(clear), []byte(issuer), false); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret in clear text: %s, %v", out, err)
	}
}

// FuzzLoginBlock: what Validate accepts is written as a block that decodes to the same.
func FuzzLoginBlock(f *testing.F) {
	f.Add("https://login.example/", "fingerpost", "", "Acme", "ca.pem", "groups", "ops-*", uint8(2), "acme,shop", true)
	f.Add("http://10.0.0.1:8080/realms/ops", "${x}", "openid,a", "%{if}", "", "realm_access.roles", `*"\`, uint8(255), "", false)
	f.Fuzz(func(t *testing.T, issuer, client, scopes, label, ca, claim, value string, allow uint8, projects string, two bool) {
		l := catalog.NewLogin("company")
		l.Issuer, l.ClientID, l.Label, l.CAFile = issuer, client, label, ca
		if scopes != "" {
			l.Scopes = strings.Split(scopes, ",")
		}
		r := catalog.LoginRule{Claim: claim, Value: value, Allow: catalog.Permission(allow) & (catalog.MayAll | catalog.MayPropose)}
		if projects != "" {
			r.Projects = strings.Split(projects, ",")
		}
		if l.Rules = []catalog.LoginRule{r}; two {
			l.Rules = append(l.Rules, catalog.LoginRule{Claim: "a", Value: "b", Allow: catalog.MayRead, Projects: []string{}})
		}
		for _, p := range l.Validate(nil) {
			if !p.Warning {
				t.Skip()
			}
		}
		if !utf8.ValidString(issuer + client + scopes + label + ca + claim + value) { // no file has such a text
			t.Skip()
		}
		got, ds := hclfile.Decode("logins.hcl", []byte(hcledit.LoginBlock(l)), hclfile.Options{})
		if ds.HasErrors() {
			if ca != "" { // Validate does not judge paths
				t.Skip()
			}
			t.Fatalf("%+v in\n%s", ds, hcledit.LoginBlock(l))
		}
		if !reflect.DeepEqual(got.Declared.Logins, []catalog.Login{*l}) {
			t.Errorf("%+v became %+v in\n%s", *l, got.Declared.Logins, hcledit.LoginBlock(l))
		}
	})
}
