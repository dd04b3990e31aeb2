package hcledit_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// relabel gives the file's first project these labels and proves the edit.
func relabel(t *testing.T, src []byte, labels []catalog.Label) []byte {
	t.Helper()
	r, ds := hclfile.Decode("a.hcl", src, hclfile.Options{})
	if ds.HasErrors() {
		t.Fatalf("%s in\n%s", text(ds), src)
	}
	old := &r.Declared.Projects[0]
	want := *old
	want.Project.Labels = labels
	d := hcledit.NewDraft(r)
	err := d.RewriteProject(old, &want)
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.Bytes()
	if err != nil {
		t.Fatalf("%v: %v in\n%s", err, labels, src)
	}
	again, ds := hclfile.Decode("a.hcl", out, hclfile.Options{})
	if ds.HasErrors() || !slices.Equal(again.Declared.Projects[0].Project.Labels, labels) {
		t.Fatalf("%s%v, want %v, in\n%s\nfrom\n%s", text(ds), again.Declared.Projects[0].Project.Labels, labels, out, src)
	}
	if err := d.Prove(out); err != nil {
		t.Fatalf("%v in\n%s\nfrom\n%s", err, out, src)
	}
	return out
}

// parseLabels reads "plan=gold shard=eu-1".
func parseLabels(s string) (labels []catalog.Label) {
	for _, word := range strings.Fields(s) {
		name, value, _ := strings.Cut(word, "=")
		labels = append(labels, catalog.Label{Name: name, Value: value})
	}
	catalog.SortLabels(labels)
	return labels
}

func TestRelabel(t *testing.T) {
	f := func(before, labels, after string) {
		t.Helper()
		file := func(attr string) string {
			if attr != "" {
				attr = "  labels = " + attr + "\n"
			}
			out, ds := hclfile.Format([]byte("project \"a\" {\n  name = \"A\"\n" + attr + "}\n"))
			if ds.HasErrors() {
				t.Fatal(text(ds))
			}
			return string(out)
		}
		edited(t, before+" to "+labels, file(before), file(after), func(src []byte) ([]byte, error) {
			return relabel(t, src, parseLabels(labels)), nil
		})
	}
	f(``, "plan=gold", `{ plan = "gold" }`)
	f(``, "plan=gold for=x", `{ "for" = "x", plan = "gold" }`)
	f(`{ plan = "gold" }`, "", ``)
	f(`{}`, "plan=gold", `{ plan = "gold" }`)
	f("{\n  }", "plan=gold", `{ plan = "gold" }`)
	f("{\n    # none yet\n  }", "plan=gold b=c", "{\n    # none yet\n    b    = \"c\"\n    plan = \"gold\"\n  }")
	f("{ /* none yet */ }", "plan=gold", "{ /* none yet */ plan = \"gold\" }")
	f(`{ plan = "gold" } # why`, "plan=${x}", `{ plan = "$${x}" } # why`)
	f(`{ plan = "gold", shard = "eu-1" }`, "plan=gold shard=eu-2", `{ plan = "gold", shard = "eu-2" }`)
	f(`{ plan = "gold", shard = "eu-1" }`, "shard=eu-1", `{ shard = "eu-1" }`)
	f(`{ plan = "gold", shard = "eu-1" } # why`, "plan=gold", `{ plan = "gold" } # why`)
	f(`{ plan = "gold", shard = "eu-1", tier = "a" }`, "plan=gold", `{ plan = "gold" }`)
	f(`{ shard = ("eu-1"), "plan" = "gold" }`, "plan=free a=b shard=eu-2", `{ shard = ("eu-2"), "plan" = "free", a = "b" }`)
	f(`{ url = "https://x", shard = "#1" }`, "url=https://x", `{ url = "https://x" }`)
	f(`{ plan : "gold" }`, "plan=free a=b", `{ plan : "free", a = "b" }`)
	f(`{ a = "1", for = "x" }`, "for=x", `{ "for" = "x" }`)
	f("{\n    a   = \"1\"\n    for = \"x\"\n  }", "for=x", "{\n    \"for\" = \"x\"\n  }")
	f(`{ a = (/* one */ "1"), b = "2" }`, "a=2 b=2", `{ a = (/* one */ "2"), b = "2" }`)
	f(`{ a = "1", /* two */ b = "2" /* b */ }`, "a=1", `{ a = "1", /* two */ /* b */ }`)
	f(`{ a = "1", /* two */ b = "2" }`, "a=1 b=2 c=3", `{ a = "1", /* two */ b = "2", c = "3" }`)
	f(`{ a = "1" /* one */, b = "2" }`, "b=2 c=3", `{ /* one */ b = "2", c = "3" }`)

	const long = "{\n    # for the gateways\n    plan  = \"gold\" # paid\n    shard = \"eu-1\"\n  }"
	f(long, "plan=gold shard=eu-2", strings.Replace(long, "eu-1", "eu-2", 1))
	f(long, "plan=gold", "{\n    # for the gateways\n    plan = \"gold\" # paid\n  }")
	f(long, "shard=eu-1", "{\n    # for the gateways\n    shard = \"eu-1\"\n  }")
	f(long, "plan=gold shard=eu-1 t=x z=y", strings.Replace(long, "eu-1\"\n", "eu-1\"\n    t     = \"x\"\n    z     = \"y\"\n", 1))
	f(long, "plan=gold shards=eu-1", "{\n    # for the gateways\n    plan   = \"gold\" # paid\n    shards = \"eu-1\"\n  }")
	f(long, "x=y", "{\n    # for the gateways\n    x = \"y\"\n  }")
	f(long, "", "")

	const commas = "{\n    plan  = \"gold\", # paid\n    shard = \"eu-1\",\n\n    # the last\n    tier = \"a\"\n    # end\n  }"
	f(commas, "plan=gold shard=eu-1 tier=a x=y", strings.Replace(commas, "\"a\"\n", "\"a\",\n    x    = \"y\"\n", 1))
	f(commas, "plan=gold shard=eu-1", "{\n    plan  = \"gold\", # paid\n    shard = \"eu-1\",\n\n    # end\n  }")
	const shards = "{\n    plan = \"gold\"\n    # shard of\n    # the EU\n    shard = \"eu-1\"\n    zone  = \"z\"\n  }"
	f(shards, "plan=gold zone=z", "{\n    plan = \"gold\"\n    zone = \"z\"\n  }")
	f(shards, "plan=gold", "{\n    plan = \"gold\"\n  }")
	f("{\n    a = \"1\",\n  }", "a=1 b=2", "{\n    a = \"1\",\n    b = \"2\",\n  }")
	f("{\n    a = \"1\", b = \"2\"\n    c = \"3\"\n  }", "b=2 c=3 d=4", "{\n    b = \"2\"\n    c = \"3\",\n    d = \"4\"\n  }")
	f("{ a = \"1\",\n  b = \"2\" }", "a=1 b=2 c=3", "{ a = \"1\",\n  b = \"2\", c = \"3\" }")
	f("{\n    a = trimsuffix(<<-T\n      1\n    T\n    , \"\\n\")\n    b = \"2\"\n  }", "b=2", "{\n    b = \"2\"\n  }")
	f("{\n    a = trimsuffix(<<-T\n      1\n    T\n    , \"\\n\")\n    b = \"2\"\n  }", "a=3 b=2", "{\n    a = \"3\"\n    b = \"2\"\n  }")
}

// TestRelabelAtRandom: in maps of every layout the edit has the intended labels, no comment is lost except on the line of
// a removed entry, and a formatted file stays formatted.
func TestRelabelAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	names := []string{"a", "bb", "for", "plan", "true", "z_1"}
	values := []string{"", "gold", "${x}", "%{y}", "# no", `"q"`, "ü", "https://x"}
	for range testrig.Size(t, 5000, 60) {
		var b strings.Builder
		b.WriteString("# head\nproject \"a\" {\n  name   = \"A\"\n  labels = {" + pick("", " ", "\n", " # c0\n", "/* c1 */", "\n\n  # c2\n"))
		chosen := slices.DeleteFunc(slices.Clone(names), func(string) bool { return random.IntN(3) == 0 })
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		for i, name := range chosen {
			if name == "for" || random.IntN(4) == 0 {
				name = `"` + name + `"`
			}
			value := hcledit.Quote(values[random.IntN(len(values))])
			if random.IntN(5) == 0 {
				value = "(" + value + ")"
			}
			b.WriteString(pick("", "    ") + name + pick(" = ", "=", ": ") + value + pick("", " ", " /* c4 */"))
			separators := []string{",", ", ", "\n", " # c5\n", ",\n", ", # c6\n", "\n\n", "\n# c7\n", ", /* c8 */ ", ",\n\n  # c9\n\n"}
			if i == len(chosen)-1 {
				separators = append(separators, "", "")
			}
			b.WriteString(pick(separators...))
		}
		b.WriteString("}" + pick("", " # c10") + "\n  domain \"x.example\" {}\n}\n# tail\n")
		var want []catalog.Label
		for _, name := range names {
			if random.IntN(2) == 0 {
				want = append(want, catalog.Label{Name: name, Value: values[random.IntN(len(values))]})
			}
		}
		src := []byte(b.String())
		formatted, ds := hclfile.Format(src)
		if ds.HasErrors() {
			t.Fatalf("%s in\n%s", text(ds), src)
		}
		for _, src := range [][]byte{src, bytes.ReplaceAll(src, []byte("\n"), []byte("\r\n")), formatted} {
			out := relabel(t, src, want)
			if again, _ := hclfile.Format(out); bytes.Equal(src, formatted) && !bytes.Equal(again, out) {
				t.Fatalf("not formatted:\n%s\nfrom\n%s", out, src)
			}
			if !bytes.HasPrefix(out, []byte("# head")) || !bytes.Contains(out, []byte("# tail")) || fmt.Sprint(bytes.Count(out, []byte("\r\n"))) != fmt.Sprint(bytes.Count(out, []byte("\n"))) && bytes.Contains(src, []byte("\r\n")) {
				t.Fatalf("%q from\n%q", out, src)
			}
			if out2 := relabel(t, out, want); !bytes.Equal(out, out2) {
				t.Fatalf("a second time:\n%s\nfrom\n%s", out2, out)
			}
		}
	}
}
