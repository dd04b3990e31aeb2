package hcledit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// forms are files with the same content that fmt would change, and one that it would not.
var forms = map[string]string{
	"fmt": "project \"a\" {\n  name        = \"A\" # the name\n  status      = \"DRAFT\"\n  description = \"d\" # more\n\n" +
		"  domain \"x.example\" { primary = true }\n  domain \"y.example\" {}\n\n  auth_settings {\n" +
		"    password_min_length         = 12 # long\n    two_factor_required         = true\n  }\n}\n",
	"not aligned": "project \"a\" {\n  name = \"A\" # the name\n  status = \"DRAFT\"\n  description = \"d\" # more\n\n" +
		"  domain \"x.example\" { primary = true }\n  domain \"y.example\" {}\n\n  auth_settings {\n" +
		"    password_min_length = 12 # long\n    two_factor_required = true\n  }\n}\n",
	"tabs": "project \"a\" {\n\tname\t= \"A\" # the name\n\tstatus\t= \"DRAFT\"\n\tdescription\t= \"d\" # more\n\n" +
		"\tdomain \"x.example\" { primary = true }\n\tdomain \"y.example\" {}\n\n\tauth_settings {\n" +
		"\t\tpassword_min_length = 12 # long\n\t\ttwo_factor_required = true\n\t}\n}\n",
	"four blanks": "project \"a\" {\n    name = \"A\"   # the name\n    status = \"DRAFT\"\n    description = \"d\"   # more\n\n" +
		"    domain \"x.example\" { primary = true }\n    domain \"y.example\" {}\n\n    auth_settings {\n" +
		"        password_min_length = 12    # long\n        two_factor_required = true\n    }\n}\n",
	"comments far right": "project \"a\" {\n  name = \"A\"                                       # the name\n  status = \"DRAFT\"\n" +
		"  description = \"d\"                                # more\n\n  domain \"x.example\" { primary = true }               # x\n" +
		"  domain \"y.example\" {}\n\n  auth_settings {\n    password_min_length = 12                         # long\n" +
		"    two_factor_required = true\n  }\n}\n",
	"no indentation": "project \"a\" {\nname=\"A\" # the name\nstatus=\"DRAFT\"\ndescription=\"d\" # more\n\n" +
		"domain \"x.example\" { primary=true }\ndomain \"y.example\" {}\n\nauth_settings {\n" +
		"password_min_length=12 # long\ntwo_factor_required=true\n}\n}\n",
}

// A write changes the lines that it must, whatever form the file has; a file that is in the form of fmt stays in it.
func TestFormStays(t *testing.T) {
	t.Parallel()
	forms["fmt"] = mustFormat(t, forms["fmt"])
	edits := map[string]struct {
		change    func(p *catalog.ProjectConfig)
		gone, new int // lines, where nothing is aligned anew
	}{
		"set":          {func(p *catalog.ProjectConfig) { p.Project.Name = "Longer name" }, 1, 1},
		"set another":  {func(p *catalog.ProjectConfig) { p.Project.Status = "ACTIVE" }, 1, 1},
		"remove":       {func(p *catalog.ProjectConfig) { p.Project.Description = nil }, 1, 0},
		"add a domain": {func(p *catalog.ProjectConfig) { p.Domains = append(p.Domains, domain("z.example")) }, 0, 1},
		"add two domains": {func(p *catalog.ProjectConfig) {
			p.Domains = append(p.Domains, domain("z.example"), domain("*.z.example"))
		}, 0, 2},
		"remove a domain":  {func(p *catalog.ProjectConfig) { p.Domains = p.Domains[:1] }, 1, 0},
		"change a domain":  {func(p *catalog.ProjectConfig) { p.Domains[0].Primary = false }, 1, 1},
		"set inside":       {func(p *catalog.ProjectConfig) { p.Auth.TwoFactorRequired = false }, 1, 1},
		"set with comment": {func(p *catalog.ProjectConfig) { p.Auth.Password.MinLength = 8 }, 1, 1},
		"add inside":       {func(p *catalog.ProjectConfig) { p.Auth.RegistrationMode = "INVITE_ONLY" }, 0, 2},
		"add a label":      {func(p *catalog.ProjectConfig) { p.Project.Labels = []catalog.Label{{Name: "plan", Value: "gold"}} }, 0, 1},
	}
	for form, src := range forms {
		for name, edit := range edits {
			r, ds := hclfile.Decode("a.hcl", []byte(src), hclfile.Options{})
			if ds.HasErrors() {
				t.Fatalf("%s: %v", form, ds)
			}
			old := r.Declared.Projects[0]
			want := old
			want.Domains = slices.Clone(old.Domains)
			edit.change(&want)
			d := hcledit.NewDraft(r)
			if err := d.RewriteProject(&old, &want); err != nil {
				t.Fatalf("%s, %s: %v", form, name, err)
			}
			out, err := d.Bytes()
			if err != nil {
				t.Fatalf("%s, %s: %v", form, name, err)
			}
			if form == "fmt" {
				if got := mustFormat(t, string(out)); got != string(out) {
					t.Errorf("%s: not in the form of fmt any more:\n%s", name, out)
				}
				continue
			}
			gone, added := lost(src, string(out)), lost(string(out), src)
			if len(gone) > edit.gone || len(added) > edit.new {
				t.Errorf("%s, %s: %d lines went and %d came, want %d and %d:\n%s", form, name, len(gone), len(added), edit.gone, edit.new, out)
			}
		}
	}
}

// TestFormBehindBraces: the formatter aligns comments behind braces with those of the lines next to them.
func TestFormBehindBraces(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		"project \"a\" { # the shop\n  name = \"A\" # its name\n}\n",
		"project \"a\" {\n  name = \"A\"\n\n  auth_settings { # strict\n    password_min_length = 12 # long\n  } # so far\n}\n",
		"project \"a\" { /* one\n  two */\n  name = \"A\" # its name\n}\n",
		"project \"a\" {\n  /* one\n\n  two */ name = \"A\" # its name\n}\n",
	} {
		src = mustFormat(t, src)
		out, err := rewrite([]byte(src), "a", func(p *catalog.ProjectConfig) {
			p.Project.Name, p.Auth.Password.MinLength = "A longer name", 8
		})
		if err != nil {
			t.Errorf("%v in\n%s", err, src)
		} else if got := mustFormat(t, string(out)); got != string(out) {
			t.Errorf("not in the form of fmt any more:\n%s", out)
		}
	}
}

func domain(name string) catalog.Domain {
	u := catalog.DeriveDomainUUID(catalog.DeriveProjectUUID("a"), name)
	return catalog.Domain{ID: catalog.DeriveID(catalog.KindDomain, u), UUID: u, Name: name, Active: true}
}

func mustFormat(t *testing.T, src string) string {
	t.Helper()
	out, ds := hclfile.Format([]byte(src))
	if ds.HasErrors() {
		t.Fatal(fmt.Sprint(ds), src)
	}
	return string(out)
}

// lost returns the lines of a that b has less often.
func lost(a, b string) (lines []string) {
	count := map[string]int{}
	for line := range strings.Lines(b) {
		count[line]++
	}
	for line := range strings.Lines(a) {
		if count[line]--; count[line] < 0 {
			lines = append(lines, line)
		}
	}
	return lines
}
