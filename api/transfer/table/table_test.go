package table_test

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"fingerpost/api/transfer/table"
	"fingerpost/resolver/catalog"
)

func read(t *testing.T, text string) *table.Table {
	t.Helper()
	got, err := table.Read(strings.NewReader(text), table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// describe writes projects as short texts.
func describe(projects []*table.Project) string {
	var b strings.Builder
	for _, p := range projects {
		fmt.Fprintf(&b, "%s %q %s", p.Project.Slug, p.Project.Name, p.Project.Status)
		if p.Project.Description != nil {
			fmt.Fprintf(&b, " %q", *p.Project.Description)
		}
		for _, l := range p.Project.Labels {
			fmt.Fprintf(&b, " %s=%s", l.Name, l.Value)
		}
		for _, d := range p.Domains {
			fmt.Fprintf(&b, " %s", d.Name)
			if d.Primary {
				b.WriteByte('!')
			}
			if !d.Active || d.Certificates != nil {
				b.WriteByte('?')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const acme = `acme "Acme Shop" ACTIVE "Storefront" plan=gold shard=eu-1 shop.acme.example! *.acme.example` + "\n" +
	`globex "globex" DRAFT` + "\n"

// TestRead: the same table in each form that programs write.
func TestRead(t *testing.T) {
	const plain = "slug,name,domain,primary,description,status,shard,plan\n" +
		"acme,Acme Shop,shop.acme.example,true,Storefront,ACTIVE,eu-1,gold\n" +
		"acme,,*.acme.example,,,,,\n" +
		"globex,,,,,,,\n"
	for name, text := range map[string]string{
		"commas":                    plain,
		"semicolons":                strings.ReplaceAll(plain, ",", ";"),
		"tabs":                      strings.ReplaceAll(plain, ",", "\t"),
		"a BOM":                     "\ufeff" + plain,
		"CRLF":                      strings.ReplaceAll(plain, "\n", "\r\n"),
		"no final newline":          strings.TrimSuffix(plain, "\n"),
		"empty lines":               "\n\r\n" + strings.ReplaceAll(plain, "\n", "\n\n , ,,,,,,\n"),
		"sep=;":                     "sep=;\r\n" + strings.ReplaceAll(strings.ReplaceAll(plain, ",", ";"), "\n", "\r\n"),
		"a BOM and sep=,":           "\ufeff\"sep=,\"\n" + plain,
		"CR":                        strings.ReplaceAll(plain, "\n", "\r"),
		"no empty cells at the end": regexp.MustCompile(`,+\n`).ReplaceAllString(plain, "\n"),
		"more empty cells":          strings.ReplaceAll(plain, "\n", ",,\n"),
		"headings in capitals":      strings.ToUpper(plain[:strings.IndexByte(plain, '\n')]) + plain[strings.IndexByte(plain, '\n'):],
		"blanks":                    strings.ReplaceAll(plain, ",", " , "),
		"quotes":                    `"` + strings.NewReplacer(",", `","`, "\n", "\"\n\"").Replace(strings.TrimSuffix(plain, "\n")) + `"`,
		"blanks and quotes":         strings.ReplaceAll(plain, "Acme Shop", ` "Acme Shop"`),
		"repeated values":           strings.ReplaceAll(plain, "acme,,*", "acme,Acme Shop,*"),
		"case of words":             strings.NewReplacer("true", "YES", "ACTIVE", "active").Replace(plain),
		"spelling of names":         strings.NewReplacer("shop.acme.example", "Shop.ACME.example.").Replace(plain),
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, text)
			if len(got.Problems) > 0 || describe(got.Projects) != acme || !slices.Equal(got.Labels, []string{"shard", "plan"}) {
				t.Errorf("problems %v, labels %q, projects\n%swant\n%s", got.Problems, got.Labels, describe(got.Projects), acme)
			}
		})
	}
}

// TestValues: values that need care.
func TestValues(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"line breaks and separators", "slug,description\r\nacme,\"one, \"\"two\"\"\r\nthree\"\r\nb,",
			`acme "acme" DRAFT "one, \"two\"\nthree"` + "\n" + `b "b" DRAFT` + "\n"},
		{"names beyond ASCII", "slug,name,domain\nacme,Cafe\u0301 日本,bücher.example\n",
			`acme "Café 日本" DRAFT xn--bcher-kva.example` + "\n"},
		{"equal in normal form", "slug,name\na,Cafe\u0301\na,Café\n", `a "Café" DRAFT` + "\n"},
		{"only slugs", "slug\na\nb\n", `a "a" DRAFT` + "\n" + `b "b" DRAFT` + "\n"},
		{"a column without heading or value", "slug;\na;\n", `a "a" DRAFT` + "\n"},
		{"separators in quoted headings", "\"slug\",\"domain\"\na,\"x.example\"\n", `a "a" DRAFT x.example` + "\n"},
		{"not primary, without a domain", "slug,primary,domain\na,no,\n", `a "a" DRAFT` + "\n"},
		{"a later row says more", "slug,name,plan\na,,\na,Acme,gold\n", `a "Acme" DRAFT plan=gold` + "\n"},
		{"headings only", "slug,name\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := read(t, c.text); len(got.Problems) > 0 || describe(got.Projects) != c.want {
				t.Errorf("problems %v, projects\n%swant\n%s", got.Problems, describe(got.Projects), c.want)
			}
		})
	}
}

// TestProblems: each table lists its problems, as "line, column: part of the message".
func TestProblems(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{"1, : the table is empty"}},
		{"blank", "\n\r\n", []string{"1, : the table is empty"}},
		{"UTF-16", "\xff\xfes\x00", []string{"1, : UTF-16"}},
		{"no slug", "name,domain\na,b\n", []string{"1, slug: no column"}},
		{"headings", "slug,2plan,,plan,PLAN,Do-main\n",
			[]string{`1, "2plan": nor the name of a label`, `1, plan: columns 4 and 5`, `1, "do-main": did you mean "domain"?`}},
		{"a value without a heading", "slug,\na,x\n", []string{`2, : "x" stands in column 2`}},
		{"another number of values", "slug,name\na\na,b,c\n", []string{"3, : 3 values, the headings are 2"}},
		{"quotes", "slug,name\na,\"x\"y\nb,x\"y\nc,\"open\n\n", []string{"2, : quotes", "3, : quotes", "4, : quotes"}},
		{"quotes in headings", "slug,\"name\na,b\n", []string{"1, : quotes"}},
		{"no slug in a row", "slug,domain\n,a b\n", []string{"2, slug: is missing", `2, domain: "a b" holds a character`}},
		{"slugs", "slug\nAcme Shop\nresolve\n" + strings.Repeat("x", 130) + "\n",
			[]string{`2, slug: as "acme-shop" does`, `3, slug: word of the API`, "4, slug: longer than 63"}},
		{"names", "slug,name\na," + strings.Repeat("n", 121) + "\nb,x\x07y\n",
			[]string{"2, name: 121 characters", "3, name: control characters"}},
		{"description", "slug,description\na,\na," + strings.Repeat("d", 2001) + "\n", []string{"3, description: 2001 characters"}},
		{"status", "slug,status\na,\na,on\n", []string{`3, status: "ON" must be one of DRAFT`}},
		{"labels", "slug,plan\na,x\x01y\n", []string{"2, plan: printable"}},
		{"too many labels", "slug," + labels(33) + "\na" + strings.Repeat(",v", 33) + "\n", []string{"2, labels: 33 labels, 32"}},
		{"UTF-8", "slug,name,\xff\na,caf\xe9,\n", []string{"1, \"\ufffd\": nor the name of a label", "2, name: not valid UTF-8"}},
		{"values that differ", "slug,name,status,plan\na,A,,gold\nb,,,\na,B,DRAFT,\na,,ACTIVE,silver\n",
			[]string{`4, name: "B" differs from "A" on line 2`, `5, status: "ACTIVE" differs from "DRAFT" on line 4`,
				`5, plan: "silver" differs from "gold" on line 2`}},
		{"domains", "slug,domain\na,http://x.example/\na,10.0.0.1\na,a.*.example\na,x.example:80\na," + strings.Repeat("x", 64) + ".example\n",
			[]string{"2, domain: URL", "3, domain: IP address", "4, domain: whole first label", "5, domain: port", "6, domain: 63 octets"}},
		{"domains twice", "slug,domain\na,bücher.example\nb,XN--bcher-kva.example.\na,bücher.example\n",
			[]string{`3, domain: belongs to project "a" already, by line 2`, "4, domain: belongs to this project already, by line 2"}},
		{"primary", "slug,domain,primary\na,x.example,1\na,y.example,TRUE\na,z.example,maybe\na,,yes\n",
			[]string{`3, primary: "x.example" is the primary domain already, by line 2`, `4, primary: "maybe" is not one of`, "5, primary: the row has none"}},
		{"lines of quoted values", "slug,name,domain\na,\"x\n\ny\",a b\n", []string{"2, name: line breaks", "4, domain: holds a character"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, c.text)
			if len(got.Problems) != len(c.want) {
				t.Fatalf("got %q, want %d problems", got.Problems, len(c.want))
			}
			for i, p := range got.Problems {
				place, message, _ := strings.Cut(c.want[i], ": ")
				if place != fmt.Sprintf("%d, %s", p.Line, p.Column) || !strings.Contains(p.Message, message) {
					t.Errorf("got %+v, want %q", p, c.want[i])
				}
			}
			if len(got.Projects) > 0 && !slices.ContainsFunc(got.Projects, func(p *table.Project) bool { return p.Bad }) &&
				!slices.ContainsFunc(got.Problems, func(p table.Problem) bool { return p.Column == "" || p.Line == 1 }) {
				t.Error("no project is bad")
			}
		})
	}
}

func labels(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("l%d", i))
	}
	return strings.Join(names, ",")
}

// TestAgainst: what other files of the folder have is a problem at the line that wants it.
func TestAgainst(t *testing.T) {
	got := read(t, "slug,domain\nfree,free.example\ntaken,\nwants,bücher.example\nboth,\nboth,both.example\n")
	project := func(slug string, domains ...string) catalog.ProjectConfig {
		p := catalog.ProjectConfig{Project: catalog.Project{Slug: slug}}
		for _, name := range domains {
			p.Domains = append(p.Domains, catalog.Domain{Name: name})
		}
		return p
	}
	got.Against("d/team.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{project("both", "both.example", "other.example"),
		project("has", "xn--bcher-kva.example"), project("taken")}})
	got.Against("d/else.hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{project("else", "else.example")}})
	want := []table.Problem{
		{Line: 3, Column: "slug", Message: `"taken" is declared in d/team.hcl already`},
		{Line: 4, Column: "domain", Message: `"xn--bcher-kva.example" belongs to project "has" in d/team.hcl already`},
		{Line: 5, Column: "slug", Message: `"both" is declared in d/team.hcl already`},
	}
	if !slices.Equal(got.Problems, want) {
		t.Errorf("%+v", got.Problems)
	}
	for _, p := range got.Projects {
		if p.Bad == (p.Project.Slug == "free") {
			t.Errorf("%s: bad %v", p.Project.Slug, p.Bad)
		}
	}
}

// TestReadFails: an error of the reader is not a table that ends there.
func TestReadFails(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, head := range []string{"", "slug,na", "slug,name\na,b\nc"} {
		if _, err := table.Read(io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)), table.Options{}); !errors.Is(err, broken) {
			t.Errorf("after %q: %v", head, err)
		}
	}
}

// TestLarge: the time grows with the table. 100,000 rows that are all wrong, and all in the same way, are the worst case
// of everything that is looked up: with a scan in place of a lookup this does not end within the test's time limit.
func TestLarge(t *testing.T) {
	const rows = 100_000
	var many, one strings.Builder
	many.WriteString("slug,name,domain,plan\n")
	one.WriteString("slug,domain,primary\n")
	for i := range rows {
		fmt.Fprintf(&many, "p%d,N,d%d.example,gold\np%d,M,d%d.example,\n", i, i, i, i)
		fmt.Fprintf(&one, "p,d%d.example,1\n", i)
	}
	if got := read(t, many.String()); len(got.Projects) != rows || len(got.Problems) != 2*rows {
		t.Errorf("%d projects, %d problems", len(got.Projects), len(got.Problems))
	}
	if got := read(t, one.String()); len(got.Projects) != 1 || len(got.Projects[0].Domains) != rows || len(got.Problems) != rows-1 {
		t.Errorf("%d projects, %d problems", len(got.Projects), len(got.Problems))
	}
}
