package configsrc_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
)

// problems loads a folder and returns its errors as "file: summary".
func problems(t *testing.T, dir string) (out []string) {
	t.Helper()
	c, err := offline.Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range c.Problems {
		if d.Severity == hclfile.Error {
			rel, _ := filepath.Rel(dir, d.File)
			out = append(out, rel+": "+d.Summary)
		}
	}
	return out
}

func project(slug string, domains ...string) string {
	var b strings.Builder
	b.WriteString("project \"" + slug + "\" {\n  name = \"" + slug + "\"\n")
	for _, d := range domains {
		b.WriteString("  domain \"" + d + "\" {}\n")
	}
	return b.String() + "}\n"
}

func TestCheckDuplicatesAcrossFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.hcl"), project("acme", "shop.example"))
	write(t, filepath.Join(dir, "b.hcl"), project("other", "SHOP.example."))
	write(t, filepath.Join(dir, "deep/c.hcl"), project("acme", "c.example"))
	write(t, filepath.Join(dir, "d.hcl"), "project \"copy\" {\n  name = \"x\"\n  id = 7\n}\n")
	write(t, filepath.Join(dir, "e.hcl"), "project \"copied\" {\n  name = \"x\"\n  id = 7\n}\n")
	got := strings.Join(problems(t, dir), "\n")
	for _, want := range []string{
		`b.hcl: domain "shop.example" is declared in ` + filepath.Join(dir, "a.hcl") + ":3 already",
		`deep/c.hcl: slug "acme" is declared in ` + filepath.Join(dir, "a.hcl") + ":1 already",
		`e.hcl: the id of project "copied" belongs to another object, in ` + filepath.Join(dir, "d.hcl") + ":1",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 2 {
		t.Errorf("one problem an object is enough:\n%s", got)
	}
}

// TestCheckIDsTheSameByChance: two domains whose uuids derive the same id, as happens among millions. The problem for
// the later file names the line to add.
func TestCheckIDsTheSameByChance(t *testing.T) {
	const one, two = "humble-bison-270266", "jolly-tern-418086"
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.hcl"), project(one, one+".example", "shop."+one+".example", "*."+one+".example", "region-3."+one+".example",
		"region-4."+one+".example", "region-5."+one+".example", "region-6."+one+".example", "region-7."+one+".example", "region-8."+one+".example"))
	later := filepath.Join(dir, "b.hcl")
	write(t, later, project(two, "*."+two+".example"))
	r, err := offline.Check(dir)
	if err != nil || len(r.Problems) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	p := r.Problems[0]
	_, line, found := strings.Cut(p.Detail, "uuid of its own: ")
	if !strings.Contains(p.Summary, "is by chance that of another object, too, in "+filepath.Join(dir, "a.hcl")+":") || !found {
		t.Fatalf("%+v", p)
	}
	write(t, later, strings.Replace(project(two, "*."+two+".example"), "example\" {}", "example\" {\n    "+line+"\n  }", 1))
	if got := problems(t, dir); len(got) != 0 {
		t.Errorf("with the line: %q", got)
	}
}

// TestCheckLoserFreesItsClaims: c loses against b only while b itself is accepted.
func TestCheckLoserFreesItsClaims(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.hcl"), project("one", "a.example"))
	write(t, filepath.Join(dir, "b.hcl"), project("two", "a.example", "b.example"))
	write(t, filepath.Join(dir, "c.hcl"), project("three", "b.example"))
	if got := problems(t, dir); len(got) != 1 || !strings.HasPrefix(got[0], "b.hcl: ") {
		t.Errorf("only b.hcl is to blame: %q", got)
	}
}

func TestCheckOddFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good.hcl"), project("good", "good.example"))
	write(t, filepath.Join(dir, "notes.txt"), "no config")
	write(t, filepath.Join(dir, ".hidden.hcl"), "not read (")
	write(t, filepath.Join(dir, "backup.hcl~"), "not read (")
	write(t, filepath.Join(dir, "#auto.hcl#"), "not read (")
	write(t, filepath.Join(dir, ".git/x.hcl"), "not read (")
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo.hcl"), 0o600); err != nil {
		t.Skip("no FIFOs here: ", err)
	}
	outside := write(t, filepath.Join(t.TempDir(), "outside.hcl"), project("outside"))
	for link, target := range map[string]string{"loop.hcl": "loop.hcl", "out.hcl": outside, "dangling.hcl": "nothing", "inside.hcl": "sub/target"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "sub/target"), project("linked"))
	if err := os.Mkdir(filepath.Join(dir, "folder.hcl"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "large.hcl"), strings.Repeat("# a line\n", 1<<17+1))
	write(t, filepath.Join(dir, "depth.hcl"), strings.Repeat("[", 120_000))
	got := problems(t, dir)
	want := []struct{ file, text string }{
		{"dangling.hcl", "link to nothing"}, {"depth.hcl", ""}, {"fifo.hcl", "FIFO"}, {"folder.hcl", "is a folder"}, {"large.hcl", "1 MiB"},
		{"loop.hcl", "leads back to itself"}, {"out.hcl", "leads out"},
	}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i, w := range want {
		if !strings.HasPrefix(got[i], w.file+": ") || !strings.Contains(got[i], w.text) {
			t.Errorf("problem %d is %q, want %s about %q", i, got[i], w.file, w.text)
		}
	}
}

func TestCheckSealingRequire(t *testing.T) {
	dir := t.TempDir()
	const secret = "a-very-secret-value-of-32-bytes-or-more"
	write(t, filepath.Join(dir, "a.hcl"), "project \"a\" {\n  name = \"a\"\n  auth_settings { jwt_secret = \""+secret+"\" }\n}\n")
	if got := problems(t, dir); len(got) != 0 {
		t.Errorf("a warning is no error: %q", got)
	}
	write(t, filepath.Join(dir, "z.hcl"), "sealing { require = true }\n")
	got := problems(t, dir)
	if len(got) != 1 || !strings.HasPrefix(got[0], "a.hcl: ") || strings.Contains(got[0], secret) {
		t.Errorf("got %q", got)
	}
}

func TestCheckRecipients(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "s.hcl"), "sealing { recipients = [\"age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq\"] }\n")
	if got := problems(t, dir); len(got) != 1 || !strings.Contains(got[0], "age") {
		t.Errorf("got %q", got)
	}
}

func TestCheckMissingFolder(t *testing.T) {
	if _, err := offline.Check(filepath.Join(t.TempDir(), "nowhere")); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v", err)
	}
}

// TestCheckWith judges files that do not exist yet as if they did, in place of those that they would replace.
func TestCheckWith(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.hcl"), project("acme", "shop.example"))
	write(t, filepath.Join(dir, "b.hcl"), "project {")
	c, err := offline.CheckWith(dir, offline.Options{Written: map[string][]byte{
		"b.hcl": []byte(project("bold", "b.example")),
		"c.hcl": []byte(project("copy", "shop.example")),
		"d.hcl": []byte("# " + strings.Repeat("x", folder.MaxFileBytes)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range c.Problems {
		got = append(got, filepath.Base(d.File)+": "+d.Summary)
	}
	want := []string{
		`c.hcl: domain "shop.example" is declared in ` + filepath.Join(dir, "a.hcl") + ":3 already",
		"d.hcl: the file would have 1048578 bytes, 1048576 are allowed",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(c.Files) != 2 {
		t.Errorf("%d good files, want a.hcl and the new b.hcl", len(c.Files))
	}
	if _, err := os.Stat(filepath.Join(dir, "c.hcl")); err == nil {
		t.Error("it was written")
	}
}

// TestCheckSharedTokens: projects for which the same tokens are good are a warning, which an audience ends.
func TestCheckSharedTokens(t *testing.T) {
	f := func(warnings int, second, defaults string) {
		t.Helper()
		dir := t.TempDir()
		block := func(slug, more string) string {
			return "project \"" + slug + "\" {\n  name = \"x\"\n  auth_settings {\n" + more + "  }\n}\n"
		}
		const rules = "jwt_algorithms = [\"RS256\"]\njwks_url = \"https://login.example/jwks\"\njwt_issuer = \"https://login.example/\"\n"
		write(t, filepath.Join(dir, "a.hcl"), block("acme", rules))
		write(t, filepath.Join(dir, "b.hcl"), block("globex", strings.ReplaceAll(second, "RULES", rules)))
		write(t, filepath.Join(dir, "d.hcl"), "defaults {\n  auth_settings {\n"+strings.ReplaceAll(defaults, "RULES", rules)+"  }\n}\n")
		c, err := offline.Check(dir)
		if err != nil || c.Problems.HasErrors() {
			t.Fatal(err, c.Problems)
		}
		n := 0
		for _, d := range c.Problems {
			if strings.Contains(d.Summary, "tokens without projectId") {
				if n++; !strings.Contains(d.Summary, "acme") || !strings.Contains(d.Summary, "globex") || filepath.Base(d.File) != "b.hcl" {
					t.Errorf("the warning is %v", d)
				}
			}
		}
		if n != warnings {
			t.Errorf("%q, %q: %d warnings, want %d: %v", second, defaults, n, warnings, c.Problems)
		}
	}
	f(1, "RULES", "")
	f(0, "RULES jwt_audience = \"globex\"\n", "")
	f(0, "RULES", "jwt_audience = \"all\"\n")
	f(0, "", "RULES") // of defaults: such tokens are not good there
	f(0, "jwt_issuer = \"https://login.example/\"\n", "")
	f(0, "jwt_algorithms = [\"RS256\"]\njwks_url = \"https://other.example/jwks\"\njwt_issuer = \"https://login.example/\"\n", "")
}
