package configsrc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A node is a Source with a real resolver behind it.
type node struct {
	*testing.T
	dir      string
	source   *configsrc.Source
	resolver *resolver.Resolver
	ctx      context.Context
	cancel   func()
	running  sync.WaitGroup
	stop     func()
}

type nodeOptions struct {
	data     string // "": in memory
	readOnly bool
	accept   bool
	loadOnly bool // do not call Run
	disk     atomicfile.Disk
	resolver *resolver.Resolver // shared, closed by its owner; nil: one of its own
	sink     configsrc.Sink     // nil: the resolver
	now      func() time.Time   // nil: the system's clock
	journal  configsrc.Journal  // nil: none
	allow    catalog.Allows
}

// newNode loads dir and, unless loadOnly is set, runs until the test ends or stop is called.
func newNode(t *testing.T, dir string, o nodeOptions) *node {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	r := o.resolver
	if r == nil {
		r = openResolver(t, o.data)
	}
	if o.sink == nil {
		o.sink = r
	}
	n := &node{T: t, dir: dir, resolver: r}
	n.source = configsrc.New(configsrc.Options{Dir: dir, Sink: o.sink, Logger: log, MaxDelete: 0.3, AcceptDeletes: o.accept, ReadOnly: o.readOnly, Disk: o.disk, Journal: o.journal,
		Allow: o.allow, Hooks: configsrc.Hooks{Now: o.now}})
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.load()
	if !o.loadOnly {
		n.run()
	}
	n.stop = sync.OnceFunc(func() {
		n.cancel()
		n.running.Wait()
		if o.resolver != nil {
			return
		}
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	t.Cleanup(n.stop)
	return n
}

func openResolver(t *testing.T, data string) *resolver.Resolver {
	t.Helper()
	r, err := resolver.Open(resolver.Options{DataDir: data, CacheBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (n *node) load() {
	n.Helper()
	if err := n.source.Load(n.ctx); err != nil {
		n.Fatalf("load: %v", err)
	}
}

// run starts Run.
func (n *node) run() {
	n.Helper()
	n.running.Go(func() {
		if err := n.source.Run(n.ctx); err != nil {
			n.Errorf("run: %v", err)
		}
	})
	n.until("the watch is up", func() bool { return n.source.Status().Watching })
}

// until waits for a condition.
func (n *node) until(what string, cond func() bool) {
	n.Helper()
	deadline := time.After(testrig.Patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			st, _ := json.MarshalIndent(n.source.Status(), "", " ")
			n.Fatalf("waited in vain until %s; status %s", what, st)
		}
	}
}

// name returns the name of the project that a domain resolves to, or the code.
func (n *node) name(domain string) string {
	n.Helper()
	a, err := n.resolver.Resolve([]byte(domain), resolver.Nested)
	if err != nil {
		n.Fatal(err)
	}
	if a.Code != "" {
		return string(a.Code)
	}
	var data struct{ Project struct{ Name string } }
	if err := json.Unmarshal([]byte(a.Data), &data); err != nil {
		n.Fatal(err)
	}
	return data.Project.Name
}

func (n *node) untilName(domain, want string) {
	n.Helper()
	n.until(fmt.Sprintf("%s is %q", domain, want), func() bool { return n.name(domain) == want })
}

func (n *node) untilState(state string) {
	n.Helper()
	n.until("the state is "+state, func() bool { return n.source.Status().State == state })
}

// problem waits for a problem with file that contains text.
func (n *node) problem(file, text string) {
	n.Helper()
	n.until(fmt.Sprintf("a problem of %s says %q", file, text), func() bool {
		for _, d := range n.source.Status().Problems {
			if strings.HasSuffix(d.File, file) && strings.Contains(d.Summary+" "+d.Detail, text) {
				return true
			}
		}
		return false
	})
}

func named(slug, name string, domains ...string) string {
	return strings.Replace(project(slug, domains...), `name = "`+slug+`"`, `name = "`+name+`"`, 1)
}

// replace writes a file by rename, as careful programs do.
func replace(t *testing.T, name, content string) {
	t.Helper()
	temp := write(t, name+".tmp", content)
	if err := os.Rename(temp, name); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWaysToSave goes through the ways in which editors and tools change files; each change must show, and the project
// must never be missing or nameless.
func TestWaysToSave(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	ways := map[string]func(t *testing.T, name, content string){
		"in place":    func(t *testing.T, name, content string) { write(t, name, content) },
		"rename over": replace,
		"delete, create": func(t *testing.T, name, content string) {
			must(t, os.Remove(name))
			write(t, name, content)
		},
		"backup and write": func(t *testing.T, name, content string) {
			must(t, os.Rename(name, name+"~"))
			write(t, name, content)
			must(t, os.Remove(name+"~"))
		},
		"truncate, then write in pieces": func(t *testing.T, name, content string) {
			f, err := os.Create(name)
			must(t, err)
			for i := range len(content) {
				_, err := f.WriteString(content[i : i+1])
				must(t, err)
			}
			must(t, f.Close())
		},
	}
	for way, save := range ways {
		t.Run(way, func(t *testing.T) {
			dir := t.TempDir()
			file := write(t, filepath.Join(dir, "a.hcl"), named("acme", "v0", "acme.example"))
			n := newNode(t, dir, nodeOptions{})
			for v := 1; v <= 5; v++ {
				old, want := fmt.Sprintf("v%d", v-1), fmt.Sprintf("v%d", v)
				save(t, file, named("acme", want, "acme.example"))
				n.until(want, func() bool {
					got := n.name("acme.example")
					if got != old && got != want {
						t.Fatalf("in between it was %q", got)
					}
					return got == want
				})
			}
			if st := n.source.Status(); st.Errors != 0 {
				t.Errorf("problems are left: %v", st.Problems)
			}
		})
	}
}

func TestFolders(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "config")
	write(t, filepath.Join(dir, "a.hcl"), named("a", "a", "a.example"))
	n := newNode(t, dir, nodeOptions{})

	write(t, filepath.Join(dir, "one/two/b.hcl"), named("b", "b1", "b.example"))
	n.untilName("b.example", "b1")
	write(t, filepath.Join(dir, "one/two/b.hcl"), named("b", "b2", "b.example"))
	n.untilName("b.example", "b2")

	must(t, os.Rename(filepath.Join(dir, "one"), filepath.Join(dir, "three")))
	n.until("the file is known under its new path", func() bool {
		_, err := n.resolver.File("three/two/b.hcl")
		return err == nil && n.name("b.example") == "b2"
	})
	write(t, filepath.Join(dir, "three/two/b.hcl"), named("b", "b3", "b.example"))
	n.untilName("b.example", "b3")

	must(t, os.RemoveAll(filepath.Join(dir, "three")))
	n.untilName("b.example", "NOT_FOUND")
	write(t, filepath.Join(dir, "three/two/b.hcl"), named("b", "b4", "b.example"))
	n.untilName("b.example", "b4")

	// The config folder itself: its removal is held, a new folder under the name is loaded, and is watched.
	must(t, os.Rename(dir, dir+".away"))
	n.untilState(configsrc.StateHeld)
	if got := n.name("a.example"); got != "a" {
		t.Errorf("with the folder gone: %q", got)
	}
	write(t, filepath.Join(dir, "a.hcl"), named("a", "a again", "a.example"))
	write(t, filepath.Join(dir, "b.hcl"), named("b", "b5", "b.example"))
	n.untilName("a.example", "a again")
	write(t, filepath.Join(dir, "a.hcl"), named("a", "a watched", "a.example"))
	n.untilName("a.example", "a watched")
}

// TestKubernetesAndGitSync swaps links: ..data inside a ConfigMap volume, and a link above the folder.
func TestKubernetesAndGitSync(t *testing.T) {
	t.Run("ConfigMap", func(t *testing.T) {
		dir := t.TempDir()
		version := func(v string) {
			write(t, filepath.Join(dir, ".."+v, "a.hcl"), named("a", v, "a.example"))
			must(t, os.Symlink(".."+v, filepath.Join(dir, "..data_tmp")))
			must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		}
		version("v1")
		must(t, os.Symlink("..data/a.hcl", filepath.Join(dir, "a.hcl")))
		n := newNode(t, dir, nodeOptions{})
		for _, v := range []string{"v2", "v3"} {
			version(v)
			n.untilName("a.example", v)
		}
	})
	t.Run("git-sync", func(t *testing.T) {
		top := t.TempDir()
		version := func(v string) {
			write(t, filepath.Join(top, "trees", v, "projects.d/a.hcl"), named("a", v, "a.example"))
			must(t, os.Symlink(filepath.Join("trees", v), filepath.Join(top, "tmp")))
			must(t, os.Rename(filepath.Join(top, "tmp"), filepath.Join(top, "current")))
		}
		version("v1")
		n := newNode(t, filepath.Join(top, "current/projects.d"), nodeOptions{})
		for _, v := range []string{"v2", "v3"} {
			version(v)
			n.untilName("a.example", v)
		}
		write(t, filepath.Join(top, "trees/v3/projects.d/a.hcl"), named("a", "v4", "a.example"))
		n.untilName("a.example", "v4")
	})
}

// TestBodyFile: a template's body file is part of the file that names it.
func TestBodyFile(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "mail/w.html"), "one {{userName}}")
	file := write(t, filepath.Join(dir, "a.hcl"), "template \"WELCOME\" {\n  name = \"W\"\n  subject_template = \"S\"\n  body_html = file(\"mail/w.html\")\n}\n")
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(file, old, old)) // its own stamp shows no change
	n := newNode(t, dir, nodeOptions{})
	gen := n.resolver.Generation()
	write(t, filepath.Join(dir, "mail/w.html"), "two {{userName}}")
	n.until("a new generation", func() bool { return n.resolver.Generation() > gen })
	must(t, os.Remove(filepath.Join(dir, "mail/w.html")))
	n.problem("a.hcl", "no such file")
	write(t, filepath.Join(dir, "mail/w.html"), "three")
	n.untilState(configsrc.StateOK)
}

func TestRestart(t *testing.T) {
	testrig.Thorough(t)
	testrig.Slow(t)
	t.Parallel()
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	write(t, filepath.Join(dir, "a.hcl"), named("a", "good", "a.example"))
	write(t, filepath.Join(dir, "b.hcl"), named("b", "b", "b.example"))
	const warned = "project \"w\" {\n  name = \"w\"\n  auth_settings { jwt_secret = \"in clear text\" }\n}\n"
	write(t, filepath.Join(dir, "w.hcl"), warned)
	n := newNode(t, dir, nodeOptions{data: data})
	generation := func() {
		t.Helper()
		if st := n.source.Status(); st.Generation == 0 || st.Generation != n.resolver.Generation() {
			t.Errorf("the status says generation %d, the answers %d", st.Generation, n.resolver.Generation())
		}
	}
	n.problem("w.hcl", "a secret stands in the file in clear text")
	must(t, os.Remove(filepath.Join(dir, "w.hcl")))
	n.untilState(configsrc.StateOK)
	n.stop()
	n = newNode(t, dir, nodeOptions{data: data})
	generation() // though nothing has changed

	write(t, filepath.Join(dir, "w.hcl"), warned)
	n.problem("w.hcl", "a secret stands in the file in clear text")
	created := n.createdAt("a")
	write(t, filepath.Join(dir, "a.hcl"), `project "a" { name = `)
	n.untilState(configsrc.StateProblems)
	n.stop()

	n = newNode(t, dir, nodeOptions{data: data})
	if got := n.name("a.example"); got != "good" {
		t.Errorf("after a restart with a broken file: %q", got)
	}
	n.problem("a.hcl", "")
	n.problem("w.hcl", "a secret stands in the file in clear text")
	generation()
	n.stop()

	// A decoder that reads the same bytes differently decodes everything again, the broken file from its last good bytes.
	r, err := resolver.Open(resolver.Options{DataDir: data, CacheBytes: 1 << 20})
	must(t, err)
	must(t, r.SetDecoderRevision(0))
	must(t, r.Close())
	n = newNode(t, dir, nodeOptions{data: data})
	if got := n.name("a.example") + " " + n.name("b.example"); got != "good b" {
		t.Errorf("after a change of the decoder: %q", got)
	}
	if at := n.createdAt("a"); !at.Equal(created) {
		t.Errorf("createdAt moved from %v to %v", created, at)
	}
	if _, err := n.resolver.File("a.hcl"); err != nil {
		t.Errorf("the broken file's row is lost: %v", err)
	}
}

func (n *node) createdAt(slug string) time.Time {
	n.Helper()
	p, err := n.resolver.ProjectBySlug(slug)
	if err != nil {
		n.Fatal(err)
	}
	return p.CreatedAt
}

// TestPublicURLGone: a start without --public-url warns of templates with a category in files that have not changed, and one
// with it no more.
func TestPublicURLGone(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	old := time.Now().Add(-time.Hour)
	name := write(t, filepath.Join(dir, "news.hcl"), "template \"NEWS\" {\n  name = \"News\"\n  category = \"news\"\n"+
		"  subject_template = \"News\"\n  body_text = \"News\"\n}\n")
	must(t, os.Chtimes(name, old, old))
	for _, missing := range []bool{false, true, true, false, true} {
		n := newNode(t, dir, nodeOptions{data: data, loadOnly: true, allow: catalog.Allows{NoPublicURL: missing}})
		if st := n.source.Status(); st.Errors != 0 || (st.Warnings == 1) != missing {
			t.Errorf("without the flag %t: %+v", missing, st)
		}
		n.stop()
	}
}

// TestUnchangedIsNotParsed: a second start with the same tree applies nothing.
func TestUnchangedIsNotParsed(t *testing.T) {
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	old := time.Now().Add(-time.Hour)
	for i := range 50 {
		name := write(t, filepath.Join(dir, fmt.Sprintf("p%d.hcl", i)), project(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.example", i)))
		must(t, os.Chtimes(name, old, old))
	}
	n := newNode(t, dir, nodeOptions{data: data, loadOnly: true})
	gen := n.resolver.Generation()
	n.stop()
	// Its bytes would not load any more; they are not read because its stat is unchanged.
	victim := filepath.Join(dir, "p7.hcl")
	b := []byte(strings.Replace(read(t, victim), "project", "projecT", 1))
	f, err := os.OpenFile(victim, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.Write(b)
	must(t, err)
	must(t, f.Close())
	must(t, os.Chtimes(victim, old, old))
	written := time.Now()
	testrig.Eventually(t, "the stamp to be old enough", func() bool { return time.Since(written) > 100*time.Millisecond })
	r := openResolver(t, data)
	t.Cleanup(func() { must(t, r.Close()) })
	n = newNode(t, dir, nodeOptions{loadOnly: true, sink: blindSink{r, dir}, resolver: r})
	if st := n.source.Status(); st.Errors != 0 || n.resolver.Generation() != gen || st.Files != 50 || st.Domains != 50 {
		t.Errorf("the tree was parsed again: generation %d after %d, %+v", n.resolver.Generation(), gen, st)
	}
}

func TestTwoNodesAgree(t *testing.T) {
	write1, read2 := t.TempDir(), t.TempDir()
	for _, dir := range []string{write1, read2} {
		write(t, filepath.Join(dir, "a.hcl"), project("a", "a.example", "*.a.example")+project("b", "b.example"))
	}
	one := newNode(t, write1, nodeOptions{})
	two := newNode(t, read2, nodeOptions{readOnly: true})
	for _, d := range []string{"a.example", "x.a.example", "b.example"} {
		a, err := one.resolver.Resolve([]byte(d), resolver.Nested)
		must(t, err)
		b, err := two.resolver.Resolve([]byte(d), resolver.Nested)
		must(t, err)
		if a.ETag != b.ETag || a.ProjectID != b.ProjectID {
			t.Errorf("%s: %s %d and %s %d", d, a.ETag, a.ProjectID, b.ETag, b.ProjectID)
		}
	}
}

var _ configsrc.Sink = (*resolver.Resolver)(nil)
var _ = catalog.CodeNotFound
