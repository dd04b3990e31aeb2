package configsrc_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
)

// warnings returns the warnings among problems, as "file:line: summary".
func warnings(dir string, problems hclfile.Diagnostics) (out []string) {
	for _, d := range problems {
		if d.Severity == hclfile.Warning {
			rel, _ := filepath.Rel(dir, d.File)
			out = append(out, fmt.Sprintf("%s:%d: %s", rel, d.Start.Line, strings.ReplaceAll(d.Summary, dir+"/", "")))
		}
	}
	return out
}

func checkedWarnings(t *testing.T, dir string) []string {
	t.Helper()
	c, err := offline.Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	return warnings(dir, c.Problems)
}

// TestOverlapsAreWarnedOf: validate and /status name a wildcard above another project's name, with file and line, also
// after the other side was added or removed, and after a restart.
func TestOverlapsAreWarnedOf(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	write(t, filepath.Join(dir, "acme.hcl"), project("acme", "acme.example", "*.acme.example", "shop.acme.example"))
	write(t, filepath.Join(dir, "other.hcl"), project("other", "other.example"))
	n := newNode(t, dir, nodeOptions{data: data})
	expect := func(want ...string) {
		t.Helper()
		if got := checkedWarnings(t, dir); !slices.Equal(got, want) {
			t.Errorf("validate warns of %q, want %q", got, want)
		}
		n.Helper()
		n.until(fmt.Sprintf("/status warns of %q", want), func() bool {
			st := n.source.Status()
			return slices.Equal(warnings(dir, st.Problems), want) && st.Warnings == len(want)
		})
	}
	restart := func() {
		n.stop()
		n = newNode(t, dir, nodeOptions{data: data})
	}
	expect()

	const warned = `acme.hcl:4: wildcard "*.acme.example" lies above "login.acme.example" of project "other", in other.hcl`
	replace(t, filepath.Join(dir, "other.hcl"), project("other", "other.example", "login.acme.example"))
	expect(warned)
	restart()
	expect(warned)
	write(t, filepath.Join(dir, "new.hcl"), project("new", "new.example"))
	expect(warned)

	// The warning follows the wildcard's line and the other project's file and slug.
	replace(t, filepath.Join(dir, "acme.hcl"), "# a line more\n"+project("acme", "acme.example", "*.acme.example", "shop.acme.example"))
	expect(strings.Replace(warned, ":4:", ":5:", 1))
	replace(t, filepath.Join(dir, "acme.hcl"), project("acme", "acme.example", "*.acme.example", "shop.acme.example"))
	uuid := "  uuid = \"0d8d9b0c-5f2b-4c6e-9d8f-3b1f6f0a2c11\"\n"
	replace(t, filepath.Join(dir, "new.hcl"), strings.Replace(project("new", "new.example"), "{\n", "{\n"+uuid, 1))
	expect(warned)

	// The name is removed, and with it the warning, also after a restart.
	replace(t, filepath.Join(dir, "other.hcl"), project("other", "other.example"))
	expect()
	restart()
	expect()

	// Now the wildcard comes after the name, and is one below a wildcard itself.
	replace(t, filepath.Join(dir, "other.hcl"), project("other", "other.example", "*.other.example", "a.b.other.example"))
	replace(t, filepath.Join(dir, "new.hcl"), strings.Replace(project("new", "*.b.other.example"), "{\n", "{\n"+uuid, 1))
	expect(`new.hcl:4: wildcard "*.b.other.example" lies above "a.b.other.example" of project "other", in other.hcl`,
		`other.hcl:4: wildcard "*.other.example" lies above "*.b.other.example" of project "new", in new.hcl`)
	replace(t, filepath.Join(dir, "new.hcl"), strings.Replace(project("renamed", "*.b.other.example"), "{\n", "{\n"+uuid, 1))
	expect(`new.hcl:4: wildcard "*.b.other.example" lies above "a.b.other.example" of project "other", in other.hcl`,
		`other.hcl:4: wildcard "*.other.example" lies above "*.b.other.example" of project "renamed", in new.hcl`)
	must(t, os.Remove(filepath.Join(dir, "new.hcl")))
	expect()

	// All names of others are listed, also those that come and go one by one.
	const listed = `acme.hcl:4: wildcard "*.acme.example" lies above "login.acme.example" of project "other", in other.hcl`
	replace(t, filepath.Join(dir, "other.hcl"), project("other", "other.example", "login.acme.example"))
	write(t, filepath.Join(dir, "new.hcl"), project("new", "a.b.acme.example", "*.z.acme.example"))
	expect(`acme.hcl:4: wildcard "*.acme.example" lies above "*.z.acme.example" of project "new", in new.hcl; ` +
		`"a.b.acme.example" of project "new", in new.hcl; "login.acme.example" of project "other", in other.hcl`)
	replace(t, filepath.Join(dir, "new.hcl"), project("new", "new.example"))
	expect(listed)
	many := []string{}
	for i := range 150 {
		many = append(many, fmt.Sprintf("n%03d.acme.example", i))
	}
	replace(t, filepath.Join(dir, "new.hcl"), project("new", many...))
	if got := checkedWarnings(t, dir); len(got) != 1 || !strings.HasSuffix(got[0], `"n098.acme.example" of project "new", in new.hcl; and 51 more`) {
		t.Errorf("many names: %q", got)
	}
	expect(checkedWarnings(t, dir)...)
	must(t, os.Remove(filepath.Join(dir, "new.hcl")))
	expect(listed)

	// Both in one file, and a name that moves from one project to the other.
	replace(t, filepath.Join(dir, "other.hcl"), project("other", "*.one.example")+project("second", "x.one.example"))
	expect(`other.hcl:3: wildcard "*.one.example" lies above "x.one.example" of project "second", in other.hcl`)
	replace(t, filepath.Join(dir, "other.hcl"), project("other", "*.one.example", "x.one.example")+project("second"))
	expect()
	restart()
	expect()
}

// TestPublicSuffixesAreWarnedOf: for suffixes of the list, not for single labels of a network.
func TestPublicSuffixesAreWarnedOf(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.hcl"), project("a", "com", "*.co.uk", "github.io", "localhost", "*.internal", "acme.com", "*.acme.com"))
	write(t, filepath.Join(dir, "b.hcl"), project("b", "b.example"))
	want := []string{
		`a.hcl:3: domain "com" is a public suffix, or a wildcard directly below one`,
		`a.hcl:4: domain "*.co.uk" is a public suffix, or a wildcard directly below one`,
		`a.hcl:5: domain "github.io" is a public suffix, or a wildcard directly below one`,
	}
	if got := checkedWarnings(t, dir); !slices.Equal(got, want) {
		t.Errorf("validate warns of %q, want %q", got, want)
	}
	n := newNode(t, dir, nodeOptions{})
	if got := warnings(dir, n.source.Status().Problems); !slices.Equal(got, want) {
		t.Errorf("/status warns of %q, want %q", got, want)
	}
}

func TestExampleHasNoWarnings(t *testing.T) {
	if got := checkedWarnings(t, "../projects.d"); len(got) > 0 {
		t.Errorf("the example gives warnings: %q", got)
	}
}

// TestOverlapsAgree changes files at random, and restarts at times, with its store or with an empty one: /status always
// has the warnings of validate, with the same names.
func TestOverlapsAgree(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	steps, least := testrig.Size(t, 80, 12), testrig.Size(t, 80, 4) // the first steps have few names that overlap
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	random := rand.New(rand.NewPCG(1, 2))
	pool := []string{"*.x.example", "a.x.example", "*.a.x.example", "b.a.x.example", "x.example", "*.y.example", "a.y.example", "c.y.example", "*.c.y.example"}
	n := newNode(t, dir, nodeOptions{data: data})
	held := map[string]string{} // which file has a name
	seen := 0
	for step := range steps {
		for range 1 + random.IntN(3) {
			name := pool[random.IntN(len(pool))]
			if held[name] != "" && random.IntN(2) == 0 {
				delete(held, name)
			} else {
				held[name] = fmt.Sprint("p", random.IntN(4))
			}
		}
		for i := range 4 {
			slug := fmt.Sprint("p", i)
			text := strings.Repeat("#\n", random.IntN(3)) + project(slug)
			rest := slices.Clone(pool)
			random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
			rest = slices.DeleteFunc(rest, func(name string) bool { return held[name] != slug })
			replace(t, filepath.Join(dir, slug+".hcl"), strings.Replace(text, "}\n", "", 1)+strings.TrimPrefix(project("", rest...), "project \"\" {\n  name = \"\"\n"))
		}
		if step%10 == 9 {
			n.stop()
			if step%20 == 9 {
				data = filepath.Join(t.TempDir(), "store") // a first load
			}
			n = newNode(t, dir, nodeOptions{data: data})
		}
		want := checkedWarnings(t, dir)
		seen += len(want)
		n.until(fmt.Sprintf("step %d: /status warns of %q", step, want), func() bool {
			return slices.Equal(warnings(dir, n.source.Status().Problems), want)
		})
	}
	if seen < least {
		t.Errorf("only %d warnings in all", seen)
	}
}
