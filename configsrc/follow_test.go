package configsrc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// An edge is a Source that follows, with a real resolver.
type edge struct{ *node }

// newEdge starts an edge on a data folder; "" is in memory.
func newEdge(t *testing.T, data string) *edge {
	t.Helper()
	r := openResolver(t, data)
	n := &node{T: t, resolver: r}
	n.source = configsrc.New(configsrc.Options{Follow: true, Sink: r, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), MaxDelete: 0.3})
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.source.Watch()
	n.load()
	n.running.Go(func() { _ = n.source.Run(n.ctx) })
	n.stop = sync.OnceFunc(func() {
		n.cancel()
		n.running.Wait()
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	t.Cleanup(n.stop)
	return &edge{node: n}
}

func (e *edge) apply(c catalog.TreeChange) error { return e.source.ApplyTree(e.ctx, c) }

// An authority is a node that keeps what it tells of its tree.
type authority struct {
	*node
	mu   sync.Mutex // guards told
	told []catalog.TreeChange
}

func newAuthority(t *testing.T, dir, data string) *authority {
	t.Helper()
	a := &authority{}
	r := openResolver(t, data)
	a.node = &node{T: t, dir: dir, resolver: r}
	a.source = configsrc.New(configsrc.Options{Dir: dir, Sink: r, Logger: slog.New(slog.DiscardHandler), MaxDelete: 1, Hooks: configsrc.Hooks{OnCommit: func(c catalog.TreeChange) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.told = append(a.told, c)
	}}})
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.load()
	a.run()
	a.stop = sync.OnceFunc(func() {
		a.cancel()
		a.running.Wait()
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	t.Cleanup(a.stop)
	return a
}

// take returns what was told since the last call.
func (a *authority) take() []catalog.TreeChange {
	a.mu.Lock()
	defer a.mu.Unlock()
	told := a.told
	a.told = nil
	return told
}

// whole returns the accepted tree as one change.
func (a *authority) whole() catalog.TreeChange {
	a.Helper()
	c := catalog.TreeChange{Position: a.resolver.Position()}
	for path := range acceptedTree(a.node) {
		f, err := a.resolver.TreeFile(path)
		if err != nil {
			a.Fatal(err)
		}
		c.Put = append(c.Put, f)
	}
	return c
}

// acceptedTree returns the accepted tree of a node.
func acceptedTree(n *node) map[string]string {
	n.Helper()
	all := map[string]string{}
	if err := n.resolver.Tree(func(path string, content []byte) bool {
		all[path] = string(content)
		return true
	}); err != nil {
		n.Fatal(err)
	}
	return all
}

// same fails if an edge does not have the authority's tree, position and answers.
func same(a *authority, e *edge, domains ...string) {
	a.Helper()
	if x, y := acceptedTree(a.node), acceptedTree(e.node); !maps.Equal(x, y) {
		a.Errorf("the edge has\n%v\nand the authority\n%v", y, x)
	}
	if x, y := a.resolver.Position(), e.resolver.Position(); x != y {
		a.Errorf("the edge is at %v, the authority at %v", y, x)
	}
	for _, domain := range domains {
		x, xerr := a.resolver.Resolve([]byte(domain), resolver.Nested)
		y, yerr := e.resolver.Resolve([]byte(domain), resolver.Nested)
		if xerr != nil || yerr != nil || string(x.Data) != string(y.Data) || x.Code != y.Code {
			a.Errorf("%s: the edge answers %s %s (%v), the authority %s %s (%v)", domain, y.Code, y.Data, yerr, x.Code, x.Data, xerr)
		}
	}
}

const withBody = `project "acme" {
  name = "Acme"
  domain "acme.example" {}
  template "HI" {
    name             = "Hi"
    subject_template = "Hi"
    body_text        = file("mail/hi.txt")
  }
}
`

func TestFollow(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "acme.hcl"), withBody)
	write(t, filepath.Join(dir, "mail/hi.txt"), "hello\n")
	write(t, filepath.Join(dir, "other.hcl"), "project \"other\" {\n  name = \"Other\"\n  domain \"other.example\" {}\n}\n")
	a := newAuthority(t, dir, "")
	data := t.TempDir()
	e := newEdge(t, data)
	if told := a.take(); len(told) != 1 || len(told[0].Put) != 0 || told[0].Position != a.resolver.Position() {
		t.Fatalf("after the first load: %+v", told)
	}
	if err := e.apply(a.whole()); err != nil {
		t.Fatal(err)
	}
	same(a, e, "acme.example", "other.example", "nowhere.example")

	// Whatever happens to the files reaches the edge as told, with the times of the objects.
	step := func(what string, done func() bool) {
		t.Helper()
		a.until(what+", and the edge has it", func() bool { // the store has a change a moment before it is told
			for _, c := range a.take() {
				if err := e.apply(c); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			return done() && maps.Equal(acceptedTree(a.node), acceptedTree(e.node)) && a.resolver.Position() == e.resolver.Position()
		})
		same(a, e, "acme.example", "other.example", "new.example", "www.acme.example")
	}
	write(t, filepath.Join(dir, "mail/hi.txt"), "good day\n")
	step("a body changes", func() bool { return acceptedTree(a.node)["mail/hi.txt"] == "good day\n" })
	write(t, filepath.Join(dir, "new.hcl"), "project \"new\" {\n  name = \"New\"\n  domain \"new.example\" {}\n}\n")
	step("a file comes", func() bool { return a.name("new.example") == "New" })
	write(t, filepath.Join(dir, "other.hcl"), "project \"other\" {\n  broken\n")
	a.until("a file is broken", func() bool { return a.source.Status().Quarantined == 1 })
	same(a, e, "other.example")
	write(t, filepath.Join(dir, "other.hcl"), "project \"other\" {\n  name = \"Other 2\"\n  domain \"other.example\" {}\n}\n")
	step("it is repaired", func() bool { return a.name("other.example") == "Other 2" })
	write(t, filepath.Join(dir, "acme.hcl"), "project \"acme\" {\n  name = \"Acme\"\n  domain \"acme.example\" {}\n}\n")
	step("a body is used no more", func() bool { _, has := acceptedTree(a.node)["mail/hi.txt"]; return !has })

	// An edge restarts from its own store.
	before := acceptedTree(e.node)
	e.stop()
	e = newEdge(t, data)
	if now := acceptedTree(e.node); !maps.Equal(now, before) {
		t.Errorf("after a restart: %v, want %v", now, before)
	}
	same(a, e, "acme.example", "other.example", "new.example")
	if st := e.source.Status(); st.State != configsrc.StateOK || st.Projects != 3 {
		t.Errorf("after a restart: %+v", st)
	}
	var refused *catalog.Error
	if err := createProject(e.ctx, e.source, &catalog.Project{Slug: "x", Name: "X", UUID: catalog.NewUUID()}); !errors.As(err, &refused) || refused.Code != catalog.CodeReadOnly {
		t.Errorf("a write at an edge: %v", err)
	}
}

// TestFollowRefused: a file that the edge does not understand keeps its last good state, over a restart too, and counts
// as received.
func TestFollowRefused(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	good := "project \"acme\" {\n  name = \"Acme\"\n  domain \"acme.example\" {}\n}\n"
	newer := strings.Replace(good, "\n}\n", "\n  quota { requests = 5 }\n}\n", 1)
	epoch := catalog.NewEpoch()
	at := func(n uint64) catalog.Position { return catalog.Position{Epoch: epoch, Generation: n} }
	data := t.TempDir()
	e := newEdge(t, data)
	must(t, e.apply(catalog.TreeChange{Position: at(7), Put: []catalog.TreeFile{{Path: "acme.hcl", Bytes: []byte(good)}}}))
	must(t, e.apply(catalog.TreeChange{Position: at(9), Put: []catalog.TreeFile{{Path: "acme.hcl", Bytes: []byte(newer)}}}))
	check := func() {
		t.Helper()
		if got := e.name("acme.example"); got != "Acme" {
			t.Errorf("acme.example is %q", got)
		}
		if got := acceptedTree(e.node)["acme.hcl"]; got != newer {
			t.Errorf("received is %q", got)
		}
		if st := e.source.Status(); st.Quarantined != 1 || st.Generation != 9 || e.resolver.Position() != at(9) {
			t.Errorf("%+v at %v", st, e.resolver.Position())
		}
	}
	check()
	e.stop()
	e = newEdge(t, data)
	check()
	must(t, e.apply(catalog.TreeChange{Position: at(10), Put: []catalog.TreeFile{{Path: "acme.hcl", Bytes: []byte(strings.Replace(good, "Acme\"", "Acme 2\"", 1))}}}))
	if got := e.name("acme.example"); got != "Acme 2" {
		t.Errorf("acme.example is %q", got)
	}
	if st := e.source.Status(); st.Quarantined != 0 || st.State != configsrc.StateOK {
		t.Errorf("%+v", st)
	}
	must(t, e.apply(catalog.TreeChange{Position: at(11), Removed: []string{"acme.hcl"}, Put: []catalog.TreeFile{{Path: "b.hcl", Bytes: []byte("project \"b\" {\n  name = \"B\"\n}\n")}}}))
	if got := e.name("acme.example"); got != "NOT_FOUND" {
		t.Errorf("acme.example is %q", got)
	}
}

// TestFollowEmptyFiles: an empty body and an empty config file are files.
func TestFollowEmptyFiles(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	data := t.TempDir()
	e := newEdge(t, data)
	acme := strings.Replace(withBody, "body_text        = file(\"mail/hi.txt\")", "body_html = \"hi\"\n    body_text = file(\"mail/hi.txt\")", 1)
	must(t, e.apply(catalog.TreeChange{Position: catalog.Position{Epoch: catalog.NewEpoch(), Generation: 3},
		Put: []catalog.TreeFile{{Path: "acme.hcl", Bytes: []byte(acme)}, {Path: "empty.hcl"}, {Path: "mail/hi.txt"}}}))
	check := func() {
		t.Helper()
		if st := e.source.Status(); st.State != configsrc.StateOK || st.Projects != 1 {
			t.Errorf("%+v", st)
		}
		if got := slices.Sorted(maps.Keys(acceptedTree(e.node))); !slices.Equal(got, []string{"acme.hcl", "empty.hcl", "mail/hi.txt"}) {
			t.Errorf("the edge has %q", got)
		}
	}
	check()
	e.stop()
	e = newEdge(t, data)
	check()
}

// A failingSink fails with the second part of a first load.
type failingSink struct {
	*resolver.Resolver
	parts int
}

func (s *failingSink) Fill(c *catalog.Change) error {
	if len(c.Files) > 0 {
		if s.parts++; s.parts > 1 {
			return errors.New("killed here")
		}
	}
	return s.Resolver.Fill(c)
}

// TestFirstTreeInParts: a first tree that ends half-way leaves files and no generation, by which the edge knows that it is
// not whole. The next try takes all of it.
func TestFirstTreeInParts(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	const files = 1100 // in two parts
	for i := range files {
		write(t, filepath.Join(dir, fmt.Sprintf("p%d.hcl", i)), fmt.Sprintf("project \"p%d\" {\n  name = \"P\"\n}\n", i))
	}
	whole := newAuthority(t, dir, "").whole()

	r := openResolver(t, data)
	source := configsrc.New(configsrc.Options{Follow: true, Sink: &failingSink{Resolver: r}, Logger: slog.New(slog.DiscardHandler), MaxDelete: 0.3})
	ctx, cancel := context.WithCancel(t.Context())
	source.Watch()
	if err := source.Load(ctx); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = source.Run(ctx) })
	if err := source.ApplyTree(ctx, whole); err == nil {
		t.Error("it has taken all of it")
	}
	cancel()
	running.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	e := newEdge(t, data)
	if n, p := len(acceptedTree(e.node)), e.resolver.Position(); n == 0 || n >= files || p.Generation != 0 {
		t.Errorf("it starts with %d files at %v", n, p)
	}
	if err := e.apply(whole); err != nil {
		t.Fatal(err)
	}
	if n, p := len(acceptedTree(e.node)), e.resolver.Position(); n != files || p != whole.Position {
		t.Errorf("it ends with %d files at %v", n, p)
	}
}

// A pacedSink notes whether it was paced at each change.
type pacedSink struct {
	*resolver.Resolver
	paced bool
	at    []bool
}

func (s *pacedSink) Pace(on bool) {
	s.paced = on
	s.Resolver.Pace(on)
}

func (s *pacedSink) Apply(c *catalog.Change) (uint64, error) {
	s.at = append(s.at, s.paced)
	return s.Resolver.Apply(c)
}

// TestFirstTreeIsNotPaced: before its first tree an edge answers nobody, and needs to leave nothing free for answers.
func TestFirstTreeIsNotPaced(t *testing.T) {
	t.Parallel()
	r := openResolver(t, "")
	t.Cleanup(func() { _ = r.Close() })
	sink := &pacedSink{Resolver: r}
	source := configsrc.New(configsrc.Options{Follow: true, Sink: sink, Logger: slog.New(slog.DiscardHandler), MaxDelete: 0.3})
	if err := source.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = source.Run(ctx) })
	epoch := catalog.NewEpoch()
	for generation := range uint64(2) {
		c := catalog.TreeChange{Position: catalog.Position{Epoch: epoch, Generation: generation + 1}}
		c.Put = []catalog.TreeFile{{Path: fmt.Sprintf("p%d.hcl", generation), Bytes: fmt.Appendf(nil, "project \"p%d\" {\n  name = \"P\"\n}\n", generation)}}
		if err := source.ApplyTree(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	running.Wait()
	if want := []bool{false, true}; !slices.Equal(sink.at, want) {
		t.Errorf("paced at its changes: %v, want %v", sink.at, want)
	}
}

// TestFollowBrake: the brake holds on an edge, and the same change passes once somebody has confirmed it.
func TestFollowBrake(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "")
	epoch := catalog.NewEpoch()
	first := catalog.TreeChange{Position: catalog.Position{Epoch: epoch, Generation: 1}}
	for i := range 20 {
		first.Put = append(first.Put, catalog.TreeFile{Path: fmt.Sprintf("p%02d.hcl", i), Bytes: fmt.Appendf(nil, "project \"p%02d\" {\n  name = \"P\"\n  domain \"p%02d.example\" {}\n}\n", i, i)})
	}
	must(t, e.apply(first))
	less := catalog.TreeChange{Position: catalog.Position{Epoch: epoch, Generation: 2}}
	for i := range 15 {
		less.Removed = append(less.Removed, fmt.Sprintf("p%02d.hcl", i))
	}
	if err := e.apply(less); !errors.Is(err, configsrc.ErrHeld) {
		t.Fatalf("%v, want it held", err)
	}
	if st := e.source.Status(); st.State != configsrc.StateHeld || st.Projects != 20 || e.name("p03.example") != "P" || e.resolver.Position() != first.Position {
		t.Errorf("%+v", st)
	}
	must(t, e.source.Confirm(e.ctx, catalog.Author{}))
	must(t, e.apply(less))
	if st := e.source.Status(); st.State != configsrc.StateOK || st.Projects != 5 || st.Held != nil || e.resolver.Position() != less.Position {
		t.Errorf("%+v", st)
	}
	if err := e.apply(catalog.TreeChange{Position: catalog.Position{Epoch: epoch, Generation: 3}, Removed: slices.Collect(maps.Keys(acceptedTree(e.node)))}); !errors.Is(err, configsrc.ErrHeld) {
		t.Errorf("%v: an empty tree is held, confirmed or not before", err)
	}
}

// TestFollowMany: the first tree of an edge is larger than one chunk, and two claims of one name are settled as on the
// authority.
func TestFollowMany(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	e := newEdge(t, t.TempDir())
	c := catalog.TreeChange{Position: catalog.Position{Epoch: catalog.NewEpoch(), Generation: 5}}
	const n = 2500
	for i := range n {
		c.Put = append(c.Put, catalog.TreeFile{Path: fmt.Sprintf("d%d/p%04d.hcl", i%7, i), Bytes: fmt.Appendf(nil, "project \"p%d\" {\n  name = \"P%d\"\n  domain \"p%d.example\" {}\n}\n", i, i, i)})
	}
	c.Put = append(c.Put, catalog.TreeFile{Path: "z.hcl", Bytes: []byte("project \"z\" {\n  name = \"Z\"\n  domain \"p9.example\" {}\n}\n")})
	must(t, e.apply(c))
	if st := e.source.Status(); st.Projects != n || st.Quarantined != 1 || e.resolver.Position() != c.Position {
		t.Errorf("%+v at %v", st, e.resolver.Position())
	}
	if got := e.name("p9.example"); got != "P9" {
		t.Errorf("p9.example is %q", got)
	}
	if got := len(acceptedTree(e.node)); got != n+1 {
		t.Errorf("%d files are received, want %d", got, n+1)
	}
}
