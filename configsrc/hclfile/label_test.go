package hclfile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// TestDecodeLabels compares the labels and certificates of every spelling.
func TestDecodeLabels(t *testing.T) {
	r, src := readGood(t, "projectlabels.hcl")
	yes, no := true, false
	one, many, none := r.Declared.Projects[0], r.Declared.Projects[1], r.Declared.Projects[2]
	for i, want := range []*bool{&no, &yes, nil} {
		if got := one.Domains[i].Certificates; fmt.Sprint(got == nil) != fmt.Sprint(want == nil) || got != nil && *got != *want {
			t.Errorf("domain %d: %v", i, got)
		}
	}
	if got := one.Project.Labels; !slices.Equal(got, []catalog.Label{{Name: "plan", Value: "gold"}, {Name: "shard", Value: "eu-1"}}) {
		t.Errorf("%v", got)
	}
	want := []catalog.Label{{Name: "empty"}, {Name: "for", Value: "${x} %{y}"}, {Name: "plan", Value: "gold"}, {Name: "shard", Value: "eu-1"},
		{Name: "text", Value: "a heredoc"}, {Name: "true", Value: "parentheses"}}
	if !slices.Equal(many.Project.Labels, want) {
		t.Errorf("%v", many.Project.Labels)
	}
	if none.Project.Labels != nil {
		t.Errorf("%v", none.Project.Labels)
	}
	out, ds := hclfile.Format(src)
	if len(ds) > 0 {
		t.Fatal(text(ds))
	}
	again, ds := hclfile.Decode("", out, hclfile.Options{})
	if ds.HasErrors() || !slices.Equal(again.Declared.Projects[1].Project.Labels, want) {
		t.Errorf("after Format: %s%v", text(ds), again.Declared.Projects[1].Project.Labels)
	}
	if out, ds = hclfile.Format(out); len(ds) > 0 || !strings.Contains(string(out), `    shard : "eu-1"`) {
		t.Errorf("%s%s", text(ds), out)
	}
}

// TestRedactLabels: a label whose name is a secret's is hidden, its neighbours are not.
func TestRedactLabels(t *testing.T) {
	const src = "project \"a\" {\n  name = \"A\"\n  labels = {\n    plan = \"gold\"\n    api_token = \"" + sentinel + "\"\n    Shard = \"eu-1\"\n  }\n}\n"
	if got := string(hclfile.Redact([]byte(src))); strings.Contains(got, sentinel) || !strings.Contains(got, "gold") || !strings.Contains(got, "eu-1") {
		t.Error(got)
	}
	_, ds := hclfile.Decode("a.hcl", []byte(src), hclfile.Options{})
	if got := text(ds); !strings.Contains(got, "a.hcl:6:5: error") || strings.Contains(got, sentinel) {
		t.Error(got)
	}
}

// TestManyMaps: a file may have any number of maps, in every notation.
func TestManyMaps(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "project \"p%d\" {\n  name = \"P\"\n  labels = { plan : \"gold\", shard : \"eu-%d\" }\n}\n", i, i)
	}
	if _, ds := hclfile.Decode("", []byte(b.String()), hclfile.Options{}); len(ds) > 0 {
		t.Error(text(ds))
	}
}

// FuzzLabels: a label that is written as a literal string is read as it was, or is a problem.
func FuzzLabels(f *testing.F) {
	for _, seed := range [][2]string{{"plan", "gold"}, {"Plan", "${x}"}, {"for", "%{if}"}, {"a\nb", "\u2028"}, {"", ""}} {
		f.Add(seed[0], seed[1])
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "${", "$${", "%{", "%%{").Replace
	f.Fuzz(func(t *testing.T, name, value string) {
		src := "project \"a\" {\n  name = \"A\"\n  labels = { \"" + quote(name) + "\" = \"" + quote(value) + "\" }\n}\n"
		r, ds := hclfile.Decode("", []byte(src), hclfile.Options{})
		checkRanges(t, []byte(src), ds)
		value = strings.ToValidUTF8(value, "\ufffd")
		if good := catalog.ValidateLabels([]catalog.Label{{Name: name, Value: value}}) == nil; !good && !ds.HasErrors() {
			t.Errorf("accepted: %q = %q", name, value)
		} else if !ds.HasErrors() && !slices.Equal(r.Declared.Projects[0].Project.Labels, []catalog.Label{{Name: name, Value: value}}) {
			t.Errorf("%q = %q became %v", name, value, r.Declared.Projects[0].Project.Labels)
		}
	})
}
