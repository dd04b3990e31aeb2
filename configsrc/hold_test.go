package configsrc_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/folder"
	"fingerpost/resolver/catalog"
)

// looked saves and waits until a look has seen it: until a look ends that began after the debounce of events.
func (n *node) looked(save func()) {
	n.Helper()
	least := time.Now().Add(25 * time.Millisecond)
	save()
	n.until("another look", func() bool { return n.source.Status().LastReload.After(least) })
}

// TestCutFile leaves a file of two projects truncated at every few bytes, long enough for a look. One in six truncated
// files parses; no project may disappear.
func TestCutFile(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir := t.TempDir()
	whole := project("one", "one.example") + project("two", "two.example")
	file := write(t, filepath.Join(dir, "a.hcl"), whole)
	n := newNode(t, dir, nodeOptions{})
	for cut := 0; cut < len(whole); cut += 5 {
		var saved time.Time
		n.looked(func() { write(t, file, whole[:cut]); saved = time.Now() })
		got := n.name("one.example") + " " + n.name("two.example")
		// A busy machine comes too late for some cuts: they were there for the time of a second look.
		if got != "one two" && time.Since(saved) < configsrc.SecondLook {
			t.Fatalf("cut at byte %d: %s", cut, got)
		}
		n.looked(func() { write(t, file, whole) })
	}
	n.untilState(configsrc.StateOK)
	// A file that stays truncated is accepted in the end: a person has removed the block.
	write(t, file, project("one", "one.example"))
	n.untilName("two.example", "NOT_FOUND")
}

func manyProjects(t *testing.T, count int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range count {
		write(t, filepath.Join(dir, fmt.Sprintf("p%02d.hcl", i)), project(fmt.Sprintf("p%02d", i), fmt.Sprintf("p%02d.example", i)))
	}
	return dir
}

func TestBrake(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir, data := manyProjects(t, 20), filepath.Join(t.TempDir(), "store")
	// What goes at once is a folder, so that no look sees a part of it.
	of := func(name string, from, to int) (goes func()) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		for i := from; i < to; i++ {
			file := fmt.Sprintf("p%02d.hcl", i)
			must(t, os.Rename(filepath.Join(dir, file), filepath.Join(dir, name, file)))
		}
		return func() { must(t, os.Rename(filepath.Join(dir, name), filepath.Join(t.TempDir(), name))) }
	}
	fiveGo, nineGo := of("five", 6, 11), of("nine", 11, 20)
	n := newNode(t, dir, nodeOptions{data: data})

	// Six of twenty is 30 %, which is not more than 30 %.
	for i := range 6 {
		must(t, os.Remove(filepath.Join(dir, fmt.Sprintf("p%02d.hcl", i))))
	}
	n.untilName("p05.example", "NOT_FOUND")
	n.until("all six are gone", func() bool { return n.source.Status().Projects == 14 })

	// Five of fourteen is more. Everything of that look is held, the new file too.
	fiveGo()
	n.untilState(configsrc.StateHeld)
	if h := n.source.Status().Held; h.Projects != 5 || h.Domains != 5 || !strings.Contains(h.Reason, "5 of 14 projects") ||
		!slices.Equal(h.Removes, []string{"five/p06.hcl: project p06", "five/p07.hcl: project p07", "five/p08.hcl: project p08",
			"five/p09.hcl: project p09", "five/p10.hcl: project p10"}) {
		t.Errorf("held: %+v", h)
	}
	write(t, filepath.Join(dir, "new.hcl"), project("new", "new.example"))
	if err := n.source.Reload(context.Background()); !errors.Is(err, configsrc.ErrHeld) {
		t.Errorf("a reload while held: %v", err)
	}
	if got := n.name("p10.example") + " " + n.name("new.example"); got != "p10 NOT_FOUND" {
		t.Errorf("while held: %s", got)
	}
	n.stop()

	// It is held at a start, too, unless the start accepts it.
	n = newNode(t, dir, nodeOptions{data: data, loadOnly: true})
	if n.source.Status().Held == nil || n.name("p10.example") != "p10" {
		t.Errorf("at a start: %+v", n.source.Status())
	}
	n.stop()
	n = newNode(t, dir, nodeOptions{data: data})
	n.untilState(configsrc.StateHeld)
	must(t, n.source.Confirm(context.Background(), catalog.Author{}))
	n.untilName("p10.example", "NOT_FOUND")
	n.untilName("new.example", "new")
	n.untilState(configsrc.StateOK)

	// A confirmation is good once.
	nineGo()
	n.untilState(configsrc.StateHeld)
	n.stop()
	n = newNode(t, dir, nodeOptions{data: data, accept: true, loadOnly: true})
	if st := n.source.Status(); st.Projects != 1 || st.Held != nil {
		t.Errorf("a start that accepts deletes: %+v", st)
	}
}

// TestBlockMoves: whichever file is saved first, the project never disappears, and it keeps its record.
func TestBlockMoves(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.hcl"), filepath.Join(dir, "b.hcl")
	block, rest := project("acme", "acme.example"), project("rest", "rest.example")
	write(t, a, rest+block)
	write(t, b, project("other", "other.example"))
	n := newNode(t, dir, nodeOptions{})
	before, err := n.resolver.ProjectBySlug("acme")
	must(t, err)
	watch := func(until func() bool) {
		t.Helper()
		n.until("the move is through", func() bool {
			if got := n.name("acme.example"); got != "acme" {
				t.Fatalf("in between it was %q", got)
			}
			return until()
		})
	}
	in := func(path string) func() bool {
		return func() bool {
			row, err := n.resolver.File(path)
			return err == nil && len(row.Refs) == 4 && n.source.Status().State == configsrc.StateOK
		}
	}
	n.looked(func() { write(t, a, rest) }) // the gap is seen, and must not be believed
	write(t, b, project("other", "other.example")+block)
	watch(in("b.hcl"))
	n.looked(func() { write(t, a, rest+block) })
	write(t, b, project("other", "other.example"))
	watch(in("a.hcl"))
	after, err := n.resolver.ProjectBySlug("acme")
	must(t, err)
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the record changed: %+v, then %+v", before, after)
	}

	// A broken target: the block stays until it is repaired.
	write(t, a, rest)
	write(t, b, project("other", "other.example")+block+"}")
	n.problem("b.hcl", "")
	n.problem("a.hcl", "it stays until that file is repaired")
	if got := n.name("acme.example"); got != "acme" {
		t.Errorf("with a broken target: %q", got)
	}
	write(t, b, project("other", "other.example")+block)
	watch(in("b.hcl"))
}

func TestRenameIsHeld(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "acme.hcl"), project("acme", "acme.example"))
	n := newNode(t, dir, nodeOptions{})
	old, err := n.resolver.ProjectBySlug("acme")
	must(t, err)

	// In the same file.
	write(t, file, project("acme-shop", "acme.example"))
	n.problem("acme.hcl", `uuid = "`+old.UUID.String()+`"`)
	if got := n.name("acme.example"); got != "acme" {
		t.Errorf("while held: %q", got)
	}
	// Into a new file, recognised by the domain: both files are held.
	must(t, os.Remove(file))
	write(t, filepath.Join(dir, "shop.hcl"), project("acme-shop", "acme.example"))
	n.problem("shop.hcl", `uuid = "`+old.UUID.String()+`"`)
	n.problem("acme.hcl", "is gone from here")
	if got := n.name("acme.example"); got != "acme" {
		t.Errorf("while both are held: %q", got)
	}
	write(t, filepath.Join(dir, "shop.hcl"), strings.Replace(project("acme-shop", "acme.example"), "{\n", "{\n  uuid = \""+old.UUID.String()+"\"\n", 1))
	n.untilName("acme.example", "acme-shop")
	n.untilState(configsrc.StateOK)
	if p, err := n.resolver.ProjectBySlug("acme-shop"); err != nil || p.ID != old.ID || !p.CreatedAt.Equal(old.CreatedAt) {
		t.Errorf("it is another project now: %+v, %v", p, err)
	}
}

func TestUUIDNew(t *testing.T) {
	block := strings.Replace(project("acme", "acme.example"), "{\n", "{\n  uuid = \"new\" # meant so\n", 1)
	for _, readOnly := range []bool{false, true} {
		dir := t.TempDir()
		file := write(t, filepath.Join(dir, "acme.hcl"), block)
		n := newNode(t, dir, nodeOptions{readOnly: readOnly})
		n.untilName("acme.example", "acme")
		p, err := n.resolver.ProjectBySlug("acme")
		must(t, err)
		want := block
		if !readOnly {
			want = strings.Replace(block, `"new"`, `"`+p.UUID.String()+`"`, 1)
			if p.UUID.String()[14] != '4' {
				t.Errorf("%s is no random uuid", p.UUID)
			}
		}
		if got := read(t, file); got != want {
			t.Errorf("read-only %v: the file is\n%s", readOnly, got)
		}
		n.stop()
	}
}

// TestConflictsLive: the present owner keeps a name, whatever the file names are.
func TestConflictsLive(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "z.hcl"), named("z", "has it", "x.example"))
	n := newNode(t, dir, nodeOptions{})
	write(t, filepath.Join(dir, "a.hcl"), named("a", "wants it", "x.example"))
	n.problem("a.hcl", `domain "x.example" is declared in`)
	if got := n.name("x.example"); got != "has it" {
		t.Errorf("got %q", got)
	}
	// It is accepted as soon as the other file gives it up.
	write(t, filepath.Join(dir, "z.hcl"), named("z", "has it", "z.example"))
	n.untilName("x.example", "wants it")
	n.untilState(configsrc.StateOK)
}

func TestGitLockIsWaitedFor(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "projects.d")
	file := write(t, filepath.Join(dir, "a.hcl"), named("a", "v1", "a.example"))
	n := newNode(t, dir, nodeOptions{})
	lock := write(t, filepath.Join(top, ".git/index.lock"), "")
	write(t, file, named("a", "v2", "a.example"))
	// A save in another folder without git, made later: once it is in force, the first would have been.
	elsewhere := t.TempDir()
	other := write(t, filepath.Join(elsewhere, "b.hcl"), named("b", "v1", "b.example"))
	m := newNode(t, elsewhere, nodeOptions{})
	write(t, other, named("b", "v2", "b.example"))
	m.untilName("b.example", "v2")
	if got := n.name("a.example"); got != "v1" {
		t.Fatalf("git is at work, and %q came in", got)
	}
	must(t, os.Remove(lock))
	n.untilName("a.example", "v2")
}

// TestMendedUnderTheOldTime: a quarantined file is read again when it is repaired, even with its previous size and
// mtime.
func TestMendedUnderTheOldTime(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	good := project("b", "b.example")
	broken := strings.Replace(good, "project", "projecT", 1)
	old := time.Now().Add(-time.Hour)
	file := write(t, filepath.Join(dir, "b.hcl"), broken)
	must(t, os.Chtimes(file, old, old))
	n := newNode(t, dir, nodeOptions{})
	n.problem("b.hcl", "projecT")
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(good)
	must(t, err)
	must(t, f.Close())
	must(t, os.Chtimes(file, old, old)) // size, time and inode are unchanged
	n.untilName("b.example", "b")
}

// A blindSink reports each file as accepted with its present stat, as on a file system that shows no change.
type blindSink struct {
	configsrc.Sink
	dir string
}

func (b blindSink) Files(yield func(path string, row *catalog.FileRow) bool) error {
	return b.Sink.Files(func(path string, row *catalog.FileRow) bool {
		b.blind(path, &row.Stamp)
		for i := range row.Deps {
			b.blind(row.Deps[i].Path, &row.Deps[i].Stamp)
		}
		return yield(path, row)
	})
}

func (b blindSink) blind(path string, s *catalog.Stamp) {
	if info, err := os.Stat(filepath.Join(b.dir, path)); err == nil {
		hash := s.Hash
		*s = folder.StatOf(info)
		s.Hash = hash
	}
}

// TestHashSweepSeesWhatStatDoesNot: the next hash sweep finds content that changed under the same stamp, also of a
// file().
func TestHashSweepSeesWhatStatDoesNot(t *testing.T) {
	t.Parallel()
	const template = "template \"A\" {\n  name = \"A\"\n  subject_template = \"s\"\n  body_text = file(\"a.txt\")\n}\n"
	for _, c := range []struct {
		what, file, before, after, other string
		shows                            func(n *node) string
	}{
		{"the file itself", "a.hcl", named("a", "v1", "a.example"), named("a", "v2", "a.example"), "",
			func(n *node) string { return n.name("a.example") }},
		{"what it takes text from", "a.txt", "v1", "v2", template, func(n *node) string {
			a, err := n.resolver.MailTemplate(0, "A")
			if err != nil {
				return err.Error()
			}
			return a.BodyText
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			dir, data := t.TempDir(), t.TempDir()
			old := time.Now().Add(-time.Hour)
			if c.other != "" {
				must(t, os.Chtimes(write(t, filepath.Join(dir, "a.hcl"), c.other), old, old))
			}
			file := write(t, filepath.Join(dir, c.file), c.before)
			must(t, os.Chtimes(file, old, old))
			newNode(t, dir, nodeOptions{data: data, loadOnly: true}).stop()
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteString(c.after)
			must(t, err)
			must(t, f.Close())
			must(t, os.Chtimes(file, old, old))

			written := time.Now()
			testrig.Eventually(t, "the stamp to be old enough", func() bool { return time.Since(written) > 100*time.Millisecond })
			r := openResolver(t, data)
			t.Cleanup(func() { must(t, r.Close()) })
			n := newNode(t, dir, nodeOptions{data: data, sink: blindSink{r, dir}, resolver: r})
			if got := c.shows(n); got != "v1" {
				t.Fatalf("the start itself read it: %q", got)
			}
			must(t, n.source.HashSweep(context.Background()))
			n.until("the new content is there", func() bool { return c.shows(n) == "v2" })
		})
	}
}

func TestBrakeNamesDomains(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := manyProjects(t, 20)
	n := newNode(t, dir, nodeOptions{loadOnly: true})
	want := []string{"p06.hcl: project p06"}
	for i := range 6 {
		slug := fmt.Sprintf("p%02d", i)
		write(t, filepath.Join(dir, slug+".hcl"), fmt.Sprintf("project %q {\n  name = \"Renamed\"\n}\n", slug))
		want = append(want, fmt.Sprintf("%s.hcl: domain %s.example", slug, slug))
	}
	must(t, os.Remove(filepath.Join(dir, "p06.hcl")))
	must(t, os.Rename(filepath.Join(dir, "p07.hcl"), filepath.Join(dir, "moved.hcl"))) // goes nowhere
	// A watch that runs already may see the change in parts, each too small for the brake.
	n.run()
	n.untilState(configsrc.StateHeld)
	n.until("the whole change is held", func() bool { return slices.Equal(n.source.Status().Held.Removes, want) })
}
