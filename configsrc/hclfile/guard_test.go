package hclfile_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hclfile"
)

// slow is what no file may take. It is far above what any does (tens of milliseconds on an idle machine), so that a busy
// one does not fail the test, and far below what evaluating or overflowing would take.
const slow = time.Minute

// rounds is the number of rounds of a random test: all n in CI, a twentieth elsewhere; a tenth under the race detector.
func rounds(t testing.TB, n int) int {
	t.Helper()
	if testrig.Race {
		n /= 10
	}
	return testrig.Size(t, n, max(n/80, 12))
}

// TestHostileFiles feeds what ends or stalls a naive reader. Each must give a diagnostic that says what is wrong.
func TestHostileFiles(t *testing.T) {
	testrig.Slow(t)
	r, large := strings.Repeat, 0
	f := func(name, src, want string) {
		t.Run(name, func(t *testing.T) {
			if testrig.Race && len(src) > 100_000 {
				t.Skip("large files are run without the race detector")
			}
			if len(src) > 100_000 {
				if large++; large%testrig.Size(t, 1, 12) != 0 {
					t.Skip("every twelfth of the large files is enough outside of CI")
				}
			}
			start := time.Now()
			res, ds := hclfile.Decode("h.hcl", []byte(src), hclfile.Options{})
			took := time.Since(start)
			if res == nil || res.Declared == nil {
				t.Fatal("no result")
			}
			if !ds.HasErrors() || !strings.Contains(text(ds), want) {
				t.Errorf("want %q, got %.2000s", want, text(ds))
			}
			testrig.AtMost(t, took, slow)
			checkRanges(t, []byte(src), ds)
			t.Log(took)
			if !strings.Contains(want, "nested too") && !strings.Contains(want, "operators") {
				return
			}
			if _, ds := hclfile.Format([]byte(src)); !ds.HasErrors() {
				t.Error("Format accepts it")
			}
			if s, ds := hclfile.Parse([]byte(src)); s != nil || !ds.HasErrors() {
				t.Errorf("Parse accepts it: %v", ds)
			}
		})
	}
	const deep, many = "nested too deeply", "operators, references or interpolations"
	f("too large", "# "+r("x", hclfile.MaxFileBytes), "larger than 1 MiB")
	f("binary", "\x7fELF\x02\x01\x01\x00\x00\x00", "NUL byte")
	f("latin 1", "project \"gr\xfc\xdfe\" {\n}\n", "not valid UTF-8")
	f("utf 16", "\xff\xfep\x00r\x00o\x00", "UTF-16")
	f("utf 16 big", "\xfe\xff\x00p\x00r\x00o", "UTF-16")
	f("carriage returns only", "project \"a\" {\r  name = \"A\"\r}\r", "")
	f("form feed", "project \"a\" {\f}\n", "")
	f("no-break space", "project \"a\"\u00a0{}\n", "")
	f("zero width space", "project \"a\" {\n  \u200bname = \"A\"\n}\n", "")
	f("open brackets", "a = "+r("[", 60000), deep)
	f("closed brackets", "a = "+r("[", 60000)+r("]", 60000), deep)
	f("bracket lines", "a = "+r("[\n", 60000)+r("]\n", 60000), deep)
	f("templates", "a = "+r(`"${`, 100000), deep)
	f("closed templates", "a = "+r(`"${`, 100000)+"1"+r(`}"`, 100000), deep)
	f("objects", "a = "+r("{a=", 100000), deep)
	f("parentheses", "a = "+r("(", 120000), deep)
	f("closed parentheses", "a = "+r("(", 120000)+"1"+r(")", 120000), deep)
	f("calls", "a = "+r("f(", 120000), deep)
	f("bangs", "a = "+r("!", 400000)+"true\n", many)
	f("minuses", "a = "+r("-", 400000)+"1\n", many)
	f("spaced minuses", "a = "+r("-                    ", 40000)+"1\n", many)
	f("conditionals", "a = "+r("1?1:", 200000)+"1\n", many)
	f("splats", "a = b"+r("[*]", 200000)+"\n", many)
	f("splat dots", "a = b"+r(".*", 200000)+"\n", many)
	f("directives", "a = \""+r("%{if 1}", 100000)+"\"\n", many)
	f("heredoc directives", "a = <<E\n"+r("%{if 1}%{ for a in b }\n", 40000)+"E\n", many)
	f("interpolations", "a = \""+r("${a}", 100000)+"\"\n", many)
	f("sum", "a = 1"+r("+1", 400000)+"\n", many)
	f("path", "a = b"+r(".b", 400000)+"\n", many)
	f("blocks", r("a {\n", 10000), deep)
	f("closed blocks", r("a {\n", 10000)+r("}\n", 10000), deep)
	f("project blocks", r("project \"a\" {\n", 10000)+r("}\n", 10000), deep)
	f("late", "# "+r("x", 100000)+"\n"+r("key \"a\" {}\n", 5000)+"a = "+r("[", 60000), deep)
	f("power", `project "a" { name = "${1e10000000}" }`, "write $${")
	f("bare power", `project "a" { id = 1e10000000 }`, "too large")
	f("great power", `project "a" { id = 1e999999999999999999 }`, "")
	f("small power", `project "a" { id = 1e-10000000 }`, "fraction")
	f("digits", `project "a" { id = `+r("9", 1000000)+` }`, "too many digits")
	f("digits after the point", `project "a" { id = 1.`+r("9", 1000000)+` }`, "too many digits")
	f("digit list", "a = ["+r(r("9", 33)+"."+r("9", 32)+",", 2000)+"]\n", "too many digits")
	f("nested for", "a = "+r("[for a in [1,1,1,1,1,1,1,1,1,1] : ", 7)+"1"+r("]", 7)+"\n", "unknown attribute")
	f("nested for in a name", "project \"a\" {\nname = "+r("[for a in [1,1,1,1,1,1,1,1,1,1] : ", 7)+"1"+r("]", 7)+"\n}\n", "references and expressions")
	f("many blocks", r("a{}\n", 70000), "more problems are not shown")
	f("many attributes", func() string {
		var b strings.Builder
		for i := range 60000 {
			fmt.Fprintf(&b, "a%d = %d\n", i, i)
		}
		return b.String()
	}(), "more problems are not shown")
	f("same attributes", r("a = 1\n", 90000), "more problem")
	f("broken lines", r("@\n", 400000), "")
	f("broken long line", r("@ ", 400000), "")
	f("open quotes", r("\"\n", 400000), "")
	f("quote lines", r("a = \"\n", 90000), "not closed")
	f("open heredocs", r("a = <<E\n", 100000), "too many lines")
	f("many lines", "template \"A\" {\n  body_text = <<E\n"+r("a\n", 400000)+"E\n}\n", "too many lines")
	f("many texts", r("a = <<E\n"+r("\n", 9000)+"E\n", 100), "too many lines")
	f("many escapes", "a = \""+r("$${", 300000)+"\"\n", "too many lines")
	f("many dollars", "a = \""+r("$ ", 300000)+"\"\n", "")
	f("many percents", "a = <<E\n"+r("%", 300000)+"\nE\n", "")
	f("passwords", r("password = \"", 80000), "")
	f("password words", "x "+r("pass ", 200000), "")
	f("password lines", r("password = (\n", 50000), "")
	f("long label", "project \""+r("a", 500000)+"\" {}\n", "longer than 63")
	f("long name", r("a", 500000)+" = 1\n", "unknown attribute")
	f("many labels", "project "+r("\"a\" ", 100000)+"{}\n", "one label only")
	f("long comment", "/*"+r("*", 500000), "")
	f("comments", r("# "+r("-", 500)+"\n", 1000)+"x = 1\n", "unknown attribute")
	f("brackets in text", "template \"A\" {\n  body_text = <<E\n"+r("[[[((({{{\n", 10000)+"E\n}\n", "never closed")
}

// TestCutFile decodes and formats a file that was cut at every byte, as a reader may see it while it is written.
func TestCutFile(t *testing.T) {
	for _, name := range []string{"good/acme.hcl", "good/plain.hcl"} {
		src, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, eol := range []string{"\n", "\r\n"} {
			src := bytes.ReplaceAll(src, []byte("\n"), []byte(eol))
			step := 1
			if eol != "\n" {
				step = 5 // the tokens are the same but for the line ends
			}
			step *= testrig.Size(t, 1, 5)
			for n := 0; n < len(src); n += step {
				_, ds := hclfile.Decode("cut.hcl", src[:n], hclfile.Options{ReadFile: mail})
				checkRanges(t, src[:n], ds)
				if t.Failed() {
					t.Fatalf("%s cut at %d:\n%s", name, n, text(ds))
				}
			}
		}
	}
}

// TestLineEndings reads one file with CRLF, with a byte order mark and as it is, to the same result.
func TestLineEndings(t *testing.T) {
	for _, name := range []string{"acme.hcl", "plain.hcl"} {
		want, src := readGood(t, name)
		f := func(what string, src []byte) {
			t.Helper()
			got, ds := hclfile.Decode(name, src, hclfile.Options{ReadFile: mail})
			if ds.HasErrors() || fmt.Sprintf("%#v", got.Declared.Projects[0].Templates) != fmt.Sprintf("%#v", want.Declared.Projects[0].Templates) ||
				!got.Declared.Projects[0].Auth.Same(&want.Declared.Projects[0].Auth) || got.Declared.Projects[0].SMTP.Password != want.Declared.Projects[0].SMTP.Password {
				t.Errorf("%s, %s: %s", name, what, text(ds))
			}
		}
		crlf := bytes.ReplaceAll(src, []byte("\n"), []byte("\r\n"))
		f("CRLF", crlf)
		f("mark", append([]byte("\xef\xbb\xbf"), src...))
		f("CRLF and mark", append([]byte("\xef\xbb\xbf"), crlf...))
	}
}

// TestMarkColumn counts the byte order mark as nothing.
func TestMarkColumn(t *testing.T) {
	src := "\xef\xbb\xbfproject \"ä\" { nme = 1 }\n"
	_, ds := hclfile.Decode("m.hcl", []byte(src), hclfile.Options{})
	if len(ds) != 3 || ds[1].Start.Column != 9 || ds[2].Start.Column != 15 || ds[2].Snippet != `project "ä" { nme = 1 }` {
		t.Errorf("%+v", ds)
	}
	_, ds = hclfile.Decode("m.hcl", []byte("\xef\xbb\xbf<<<<<<< a\n=======\n>>>>>>> b\n"), hclfile.Options{})
	if !ds.HasErrors() {
		t.Error("a conflict after the mark is not seen")
	}
}

// TestNestingLimit lets through what is allowed and no more.
func TestNestingLimit(t *testing.T) {
	f := func(n int, tooDeep bool) {
		t.Helper()
		src := "a = " + strings.Repeat("[", n) + strings.Repeat("]", n) + "\n"
		_, ds := hclfile.Decode("n.hcl", []byte(src), hclfile.Options{})
		if got := strings.Contains(text(ds), "nested too deeply"); got != tooDeep {
			t.Errorf("%d levels: %s", n, text(ds))
		}
	}
	f(1, false)
	f(100, false)
	f(101, true)
}

// TestFlatGuard compares the quick look at the bytes with the tokens: no file of random brackets may pass the quick look
// that the tokens would refuse. Both are behind Decode, so the files are small and what they nest is deep.
func TestFlatGuard(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	parts := []string{"[", "(", "{", "{{a}}", "\"${", "\"", "}", "${", "%{", "!", "-", " - ", "?", "*", "\n", "<<A\n", "A\n", "#", "a=", "1", "\\", "$", "{{a b.c}}", "${{a}}"}
	for range rounds(t, 3000) {
		var b strings.Builder
		for range 400 + rnd.IntN(2000) {
			b.WriteString(parts[rnd.IntN(len(parts))])
		}
		src := []byte(b.String())
		_, ds := hclfile.Decode("r.hcl", src, hclfile.Options{})
		checkRanges(t, src, ds)
	}
}
