package hclfile_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestWriteText compares what people see with golden files, and asserts that none of it holds a secret.
func TestWriteText(t *testing.T) {
	files, err := filepath.Glob("testdata/text/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, ds := hclfile.Decode("projects.d/"+filepath.Base(file), src, hclfile.Options{ReadFile: mail})
		got := text(ds)
		golden := strings.TrimSuffix(file, ".hcl") + ".txt"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s:\n--- got\n%s\n--- want\n%s", file, got, want)
		}
		if strings.Contains(got, "hunter") {
			t.Errorf("%s: a secret is shown:\n%s", file, got)
		}
	}
}

// TestWriteColor paints only where asked to.
func TestWriteColor(t *testing.T) {
	_, ds := hclfile.Decode("a.hcl", []byte("projct \"a\" {}\n"), hclfile.Options{})
	if strings.Contains(text(ds), "\x1b") {
		t.Error("escape sequences without colour")
	}
	var b strings.Builder
	if err := ds.WriteText(&b, true); err != nil {
		t.Fatal(err)
	}
	plain := b.String()
	for _, code := range []string{"\x1b[31;1m", "\x1b[33;1m", "\x1b[1m", "\x1b[2m", "\x1b[0m"} {
		plain = strings.ReplaceAll(plain, code, "")
	}
	if plain != text(ds) || b.Len() == len(plain) {
		t.Errorf("%q", b.String())
	}
}

// TestJSON fixes the shape that editors and CI read.
func TestJSON(t *testing.T) {
	_, ds := hclfile.Decode("a.hcl", []byte("sealing {\n  requir = true\n}\n"), hclfile.Options{})
	got, err := json.Marshal(ds)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"severity":"error","summary":"unknown attribute \"requir\"","detail":"did you mean ` + "`require`?" + `","file":"a.hcl",` +
		`"start":{"line":2,"column":3,"byte":12},"end":{"line":2,"column":9,"byte":18},"snippet":"  requir = true"}]`
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	r, ds := hclfile.Decode("a.hcl", []byte("project \"a\" {\n  name = \"A\"\n  auth_settings {\n    jwt_secret = \"0123456789abcdef0123456789abcdef\"\n  }\n}\n"), hclfile.Options{})
	if len(ds) != 1 || ds[0].Rule != hclfile.RuleClearTextSecret || !r.PlainSecret || ds.HasErrors() || ds[0].Snippet != "    jwt_secret = (redacted)" {
		t.Errorf("%+v", ds)
	}
}

// TestEscapes shows no byte to a terminal that a terminal acts upon.
func TestEscapes(t *testing.T) {
	f := func(src, snippet string) {
		t.Helper()
		_, ds := hclfile.Decode("\x1b[2Jevil.hcl", []byte(src), hclfile.Options{})
		if len(ds) == 0 || ds[0].Snippet != snippet {
			t.Errorf("%q: %+v", src, ds)
		}
		if out := text(ds); strings.ContainsAny(out, "\x1b\r\x07\u202e\u009b") {
			t.Errorf("%q", out)
		}
	}
	f("a = \"\x1b[31mred\x07\"\n", `a = "\x1b[31mred\x07"`)
	f("a = \"\u202eevil\"\n", `a = "\u202eevil"`)
	f("a = \"\u009b31m\"\n", `a = "\u009b31m"`)
	f("a\r\n", "a")
	f("\tb = 1\t# ü\n", "\tb = 1\t# ü")
	f("project \"\x1b]0;x\x07\" {}\n", `project "\x1b]0;x\x07" {}`)
	long := strings.Repeat("x", 500)
	_, ds := hclfile.Decode("l.hcl", []byte("a = \""+long+"\" b = \""+long+"\"\n"), hclfile.Options{})
	if len(ds) == 0 || len(ds[0].Snippet) > 300 || !strings.HasPrefix(ds[0].Snippet, "…") || !strings.HasSuffix(ds[0].Snippet, "…") {
		t.Errorf("%+v", ds)
	}
}

// TestSecretsStayHidden breaks files around secrets in many ways.
func TestSecretsStayHidden(t *testing.T) {
	const secret = "hunter2"
	f := func(src string) {
		t.Helper()
		r, ds := hclfile.Decode("s.hcl", []byte(src), hclfile.Options{})
		ds = append(ds, r.Diagnose(catalog.Ref{Kind: catalog.KindProject, Name: "a"}, hclfile.Error, "s", "d"))
		if out := text(ds); strings.Contains(out, secret) || len(ds) < 2 {
			t.Errorf("%q gives:\n%s", src, out)
		}
	}
	wrap := func(s string) string { return "project \"a\" {\n  name = \"A\"\n  smtp_config {\n" + s + "\n  }\n}\n" }
	for _, s := range []string{
		`password = "hunter2" junk`, `password = "hunter2`, `password = hunter2`, `password = hunter2.x["y"]`, `password: "hunter2"`, `password "hunter2"`, `password hunter2`,
		`password = ["hunter2"]`, `password = { a = "hunter2" }`, `password = "a${hunter2}"`, `password = upper("hunter2")`, `password = hunter2("x")`, `pasword = "hunter2"`,
		`Password = "hunter2"`, `smtp_password = "hunter2"`, `secret = "hunter2"`, `jwt_sekret = "hunter2"`, `hash = "sha256:hunter2"`, `password = sealed("hunter2")`,
		`password = sealed("hunter2"`, `password = env("hunter2 x")`, `password = env(hunter2)`, `password = file("../hunter2")`, "password = <<EOT\nhunter2\nEOT", "password = <<EOT\nhunter2\nEOT junk",
		"password = <<EOT\nhunter2", "password = trimsuffix(<<EOT\nhunter2\nEOT\n, 3)", "password = (\n\"hunter2\" junk)", "password = \"a\nhunter2\"", "port = \"x\" # password = \"hunter2\"",
		"username = \"a\npassword = \"hunter2 {\"", "x = [ password = \"hunter2\"", "/* password = \"hunter2\" */ port = \"x\"", "password = 7 # hunter2", "password = -\"hunter2\"", "password = \"hunter2\"\npassword = \"hunter2\"",
		"password = \"x\" \"hunter2\"", "password = sealed(\n  \"hunter2\", 3\n)", "password =\n\"hunter2\"", "password=\"\\u{hunter2}\"", `password = "\hunter2"`, `"password" = "hunter2"`,
	} {
		f(wrap("    " + s))
		f(wrap("    "+s+"\n    host = ") + "\n")
		f("password\n" + wrap("    "+s))
		f(strings.ReplaceAll(wrap("    "+s), "\n", "\r\n"))
	}
}
