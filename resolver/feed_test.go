package resolver_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// next reads everything from a cursor, as "kind slug: domains", one line per event.
func next(c *resolver.Cursor) (text string) {
	return eventText(drain(c), nil)
}

// drain reads everything from a cursor, a few at a time.
func drain(c *resolver.Cursor) (events []*resolver.Event) {
	for {
		n := len(events)
		if events = c.Next(events, 3); len(events) == n {
			return events
		}
	}
}

// eventText shows what the holder of a key gets; nil stands for a key that reaches all projects.
func eventText(events []*resolver.Event, k *resolver.Key) string {
	var lines []string
	for _, e := range events {
		if k != nil && !e.Concerns(k) {
			continue
		}
		if e.Slug == "" {
			if k == nil || e.Kind != resolver.KeysChanged {
				lines = append(lines, fmt.Sprintf("%q", e.Kind))
			}
			continue
		}
		var d struct {
			Revision  uint64
			ProjectID int64
			Slug      string
			Domains   []string
		}
		if err := json.Unmarshal(e.Data, &d); err != nil || d.Revision != e.Revision || d.Slug != e.Slug || d.ProjectID == 0 {
			lines = append(lines, fmt.Sprintf("%v in %s", err, e.Data))
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", e.Kind, d.Slug, strings.Join(d.Domains, " ")))
	}
	return strings.Join(lines, "\n")
}

// keys declares keys named like the slugs that they reach; "all" reaches every project.
func keys(names ...string) catalog.FileChange {
	f := file("keys.hcl")
	for _, name := range names {
		k := catalog.Key{Name: name, ID: name, Allow: catalog.MayResolve}
		if name != "all" {
			k.Projects = strings.Split(name, "+")
		}
		f.Declared.Keys = append(f.Declared.Keys, k)
	}
	return f
}

func TestEventsSayWhatChanged(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	a, b := block("a", "a.example", "*.a.example"), block("b", "b.example")
	apply(t, r, file("a.hcl", a), file("b.hcl", b), keys("all", "a", "b", "z", "a+z"))
	cursor, _ := r.Events().Newest()
	f := func(what, want string, files ...catalog.FileChange) []*resolver.Event {
		t.Helper()
		apply(t, r, files...)
		events := drain(&cursor)
		all := eventText(events, r.Keys().Lookup([]byte("all")))
		if all != want {
			t.Errorf("%s:\n%s\nwant\n%s", what, all, want)
		}
		return events
	}
	sees := func(events []*resolver.Event, key, want string) {
		t.Helper()
		if got := eventText(events, r.Keys().Lookup([]byte(key))); got != want {
			t.Errorf("the key of %s is told\n%s\nwant\n%s", key, got, want)
		}
	}
	f("nothing", "", file("a.hcl", a))
	a.Service.MailEnabled = true
	events := f("settings", "project.changed a: *.a.example a.example", file("a.hcl", a))
	sees(events, "a", "project.changed a: *.a.example a.example")
	sees(events, "b", "")
	b.Templates = []catalog.Template{{ID: 5, UUID: catalog.NewUUID(), Code: "T"}}
	f("a template", "", file("b.hcl", b))
	b.Domains = append(b.Domains, block("b", "c.example", "d.example").Domains...)
	f("new domains", "domain.changed b: c.example d.example", file("b.hcl", b))
	b.Domains[1].Active = false
	f("a switched domain", "domain.changed b: c.example", file("b.hcl", b))
	b.Domains = b.Domains[:2]
	b.Domains[0].Primary = true
	f("one domain gone, one changed", "domain.deleted b: d.example\ndomain.changed b: b.example", file("b.hcl", b))
	b.Project.Name, b.Domains = "B", b.Domains[:1]
	f("a domain gone from a changed project", "project.changed b: b.example c.example", file("b.hcl", b))

	a.Domains, b.Domains = a.Domains[1:], append(b.Domains, block("b", "a.example").Domains...)
	events = f("a domain goes to another project", "domain.deleted a: a.example\ndomain.changed b: a.example", file("a.hcl", a), file("b.hcl", b))
	sees(events, "a", "domain.deleted a: a.example")
	sees(events, "b", "domain.changed b: a.example")

	a.Project.Slug, a.Domains = "z", append(a.Domains, block("a", "new.example").Domains...)
	events = f("another slug", "project.changed z: *.a.example new.example", file("a.hcl", a))
	sees(events, "z", "project.changed z: *.a.example new.example")
	sees(events, "a", "project.deleted a: *.a.example")
	sees(events, "a+z", "project.changed z: *.a.example new.example")
	sees(events, "b", "")

	f("a project goes, its name is taken", "project.deleted z: *.a.example new.example\ndomain.changed b: *.a.example",
		gone("a.hcl"), file("b.hcl", withDomains(b, "*.a.example")))
	f("a new project", "project.changed n: n.example", file("n.hcl", block("n", "n.example")))
	f("a project without domains", "project.changed e: ", file("e.hcl", block("e")))

	defaults := file("defaults.hcl")
	defaults.Declared.Defaults = &catalog.Defaults{Auth: &catalog.AuthSettings{TwoFactorRequired: true, Said: catalog.FieldSet(0).With(5)}}
	events = f("defaults", `"reset"`, defaults)
	sees(events, "a", `"reset"`)
	if got := string(events[0].Data); got != `{"revision":`+strconv.FormatUint(r.Generation(), 10)+`}` {
		t.Errorf("a reset is %s", got)
	}
	apply(t, r, keys("all", "b"), file("n.hcl", block("n")))
	if got, want := next(&cursor), "\"\"\ndomain.deleted n: n.example"; got != want {
		t.Errorf("keys: %s, want %s", got, want)
	}
}

// A key is told of all that changes its answers, also where another project's name below its wildcard does it.
func TestEventsOfCoveredNames(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	a, b := block("a", "*.a.example"), block("b", "b.example", "*.deep.b.example")
	apply(t, r, file("a.hcl", a), file("b.hcl", b), keys("all", "a", "b"))
	cursor, _ := r.Events().Newest()
	f := func(what, toA, toB string, files ...catalog.FileChange) {
		t.Helper()
		apply(t, r, files...)
		events := drain(&cursor)
		for key, want := range map[string]string{"a": toA, "b": toB} {
			if got := eventText(events, r.Keys().Lookup([]byte(key))); got != want {
				t.Errorf("%s: the key of %s is told\n%s\nwant\n%s", what, key, got, want)
			}
		}
	}
	b2 := withDomains(b, "x.a.example")
	f("a name", "domain.changed a: x.a.example", "domain.changed b: x.a.example", file("b.hcl", b2))
	b3 := withDomains(b2, "*.y.a.example", "www.y.a.example")
	f("a wildcard with a name", "domain.changed a: *.y.a.example", "domain.changed b: *.y.a.example www.y.a.example", file("b.hcl", b3))
	f("both go", "domain.changed a: *.y.a.example www.y.a.example", "domain.deleted b: *.y.a.example www.y.a.example", file("b.hcl", b2))
	f("a name above", "", "domain.changed b: a.example", file("b.hcl", withDomains(b2, "a.example")))
	f("the project goes", "domain.changed a: x.a.example", "project.deleted b: *.deep.b.example a.example b.example x.a.example", gone("b.hcl"))
	f("a new project", "domain.changed a: shop.a.example", "project.changed b: shop.a.example", file("b.hcl", block("b", "shop.a.example")))
	a2 := withDomains(a, "other.a.example")
	a2.Project.Name = "Renamed"
	f("its own name", "project.changed a: *.a.example other.a.example", "", file("a.hcl", a2))
}

// withDomains is a copy of p with more domains.
func withDomains(p catalog.ProjectConfig, names ...string) catalog.ProjectConfig {
	p.Domains = append(p.Domains[:len(p.Domains):len(p.Domains)], block(p.Project.Slug, names...).Domains...)
	return p
}

func TestEventsAfter(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	feed := r.Events()
	one := func(i int) catalog.FileChange {
		return file(fmt.Sprintf("p%d.hcl", i), block(fmt.Sprintf("p%d", i)))
	}
	f := func(after uint64, want string) {
		t.Helper()
		c, _ := feed.After(catalog.Position{Epoch: r.Position().Epoch, Generation: after})
		if got := next(&c); got != want {
			t.Errorf("after %d of %d:\n%s\nwant\n%s", after, r.Generation(), got, want)
		}
	}
	f(0, `"reset"`) // from the store before this process
	apply(t, r, one(1))
	apply(t, r, one(2), one(3))
	apply(t, r, file("nothing.hcl"))
	apply(t, r, one(4))
	f(0, `"reset"`)
	f(1, "project.changed p1: \nproject.changed p2: \nproject.changed p3: \nproject.changed p4: ")
	f(2, "project.changed p2: \nproject.changed p3: \nproject.changed p4: ") // the second event may have been lost
	f(3, "project.changed p4: ")
	f(4, "project.changed p4: ") // as well: another node may have had more events of this revision
	f(5, `"reset"`)
	f(1<<63, `"reset"`)
	cursor, newest := feed.Newest()
	if got := next(&cursor); got != "" || newest != (catalog.Position{Epoch: r.Position().Epoch, Generation: 4}) {
		t.Errorf("the newest is %v, then %q", newest, got)
	}
	apply(t, r, keys("all"), one(5))
	if got := next(&cursor); got != "\"\"\nproject.changed p5: " {
		t.Errorf("a cursor that was there gets %s", got)
	}
	f(4, `"reset"`) // the key may reach further than before
	f(5, "\"\"\nproject.changed p5: ")
	apply(t, r, one(6))
	f(5, "\"\"\nproject.changed p5: \nproject.changed p6: ")
}

// After a restart it is unknown which events a client has seen.
func TestEventsAfterRestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first, err := resolver.Open(resolver.Options{DataDir: dir, CacheBytes: testCacheBytes, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, first, file("a.hcl", block("a")))
	apply(t, first, file("b.hcl", block("b")))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	r := open(t, resolver.Options{DataDir: dir})
	for revision := range uint64(4) {
		if c, _ := r.Events().After(catalog.Position{Epoch: r.Position().Epoch, Generation: revision}); next(&c) != `"reset"` {
			t.Errorf("after %d", revision)
		}
	}
	if n := apply(t, r, file("c.hcl", block("c"))); n != 3 {
		t.Errorf("revision %d", n)
	}
	for revision, want := range []string{`"reset"`, `"reset"`, `"reset"`, "project.changed c: "} {
		c, _ := r.Events().After(catalog.Position{Epoch: r.Position().Epoch, Generation: uint64(revision)})
		if next(&c) != want {
			t.Errorf("after %d", revision)
		}
	}
}

// A client resumes on another node: it gets every event that it may have missed, or a reset.
func TestEventsOnAnotherNode(t *testing.T) {
	t.Parallel()
	edge := open(t, resolver.Options{})
	const epoch, restored = "0123456789abcdef", "fedcba9876543210"
	take := func(epoch string, generation uint64, files ...catalog.FileChange) {
		t.Helper()
		at := &catalog.Position{Epoch: epoch, Generation: generation}
		if _, err := edge.Apply(&catalog.Change{Position: at, Files: files}); err != nil {
			t.Fatal(err)
		}
	}
	f := func(epoch string, generation uint64, want string, ahead bool) {
		t.Helper()
		c, got := edge.Events().After(catalog.Position{Epoch: epoch, Generation: generation})
		if text := next(&c); text != want || got != ahead {
			t.Errorf("after %s.%d: %s, ahead %v; want %s, %v", epoch, generation, text, got, want, ahead)
		}
	}
	connected, _ := edge.Events().Newest()
	take(epoch, 7, file("a.hcl", block("a", "a.example")))
	if got := next(&connected); got != "\"\"\n\"reset\"" {
		t.Errorf("the first position of an authority: %s", got)
	}
	take(epoch, 8, file("b.hcl", block("b", "b.example")), file("c.hcl", block("c")))
	take(epoch, 9, file("c.hcl"))
	f(epoch, 6, `"reset"`, false)
	f(epoch, 7, "\"\"\n\"reset\"\nproject.changed b: b.example\nproject.changed c: \nproject.deleted c: ", false)
	f(epoch, 8, "project.changed b: b.example\nproject.changed c: \nproject.deleted c: ", false)
	f(epoch, 9, "project.deleted c: ", false)
	f(epoch, 10, `"reset"`, true)
	f(restored, 9, `"reset"`, false)
	f(restored, 99, `"reset"`, false)

	// The edge was away for 10 and 11. What 10 did and 11 undid has no event here, and a client may have seen it there.
	next(&connected)
	take(epoch, 11, file("b.hcl", block("b", "b.example", "new.example")))
	if got := next(&connected); got != "domain.changed b: new.example" {
		t.Errorf("a client of the edge is told %s", got)
	}
	f(epoch, 9, `"reset"`, false)
	f(epoch, 10, `"reset"`, false)
	f(epoch, 11, "domain.changed b: new.example", false)
	// Several events of several changes: a client that has the first would miss the second on the authority.
	take(epoch, 13, file("b.hcl", block("b", "b.example")), file("d.hcl", block("d")))
	if got := next(&connected); got != `"reset"` {
		t.Errorf("two changes at once: %s", got)
	}
	f(epoch, 13, `"reset"`, false)

	// A change without events moves the position, and wakes the streams that wait for it.
	changed := edge.Events().Changed()
	take(epoch, 14)
	select {
	case <-changed:
	default:
		t.Error("a change without events wakes nobody")
	}
	f(epoch, 14, "", false)

	take(restored, 2, file("d.hcl")) // the authority was restored: its generations begin again
	if got := next(&connected); got != "\"\"\n\"reset\"" {
		t.Errorf("another epoch: %s", got)
	}
	f(epoch, 14, `"reset"`, false)
	f(epoch, 99, `"reset"`, false)
	take(restored, 3, file("d.hcl", block("d")))
	f(restored, 2, "\"\"\n\"reset\"\nproject.changed d: ", false)
	f(restored, 3, "project.changed d: ", false)
	f(restored, 1, `"reset"`, false)
	c, _ := edge.Events().After(catalog.Position{Epoch: restored, Generation: 3})
	if e := drain(&c); e[0].Position() != (catalog.Position{Epoch: restored, Generation: 3}) {
		t.Errorf("the event is at %v", e[0].Position())
	}
}

// A load of many projects is one event; so is a change with very many names or very long lists.
func TestMassChangeIsOneReset(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	r := open(t, resolver.Options{})
	cursor, _ := r.Events().Newest()
	check := func(what string, files ...catalog.FileChange) {
		t.Helper()
		apply(t, r, files...)
		if got := next(&cursor); got != `"reset"` {
			t.Errorf("%s: %d bytes of events: %.100s", what, len(got), got)
		}
	}
	check("many projects", manyFiles()...)
	names := make([]string, 25_000)
	for i := range names {
		names[i] = fmt.Sprint("n", i, ".example")
	}
	check("many names", file("a.hcl", block("a", names...)))
	long := make([]string, 9000)
	for i := range long {
		long[i] = fmt.Sprint("l", i, strings.Repeat("."+strings.Repeat("long", 15), 2)+strings.Repeat(".long", 5), ".example")
	}
	check("long names", file("b.hcl", block("b", long...)))

	// A first load comes in parts; only the last one counts.
	empty := open(t, resolver.Options{})
	cursor, _ = empty.Events().Newest()
	if err := empty.Fill(&catalog.Change{Files: []catalog.FileChange{file("a.hcl", block("a", "a.example"))}}); err != nil {
		t.Fatal(err)
	}
	if got := next(&cursor); got != "" {
		t.Errorf("a part of a load tells %s", got)
	}
	apply(t, empty)
	if got := next(&cursor); got != "\"\"\n\"reset\"" {
		t.Errorf("a load tells %s", got)
	}
}

// The history is bounded in bytes; a client that falls behind gets a reset, then the following events.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	testrig.Campaign(t)
	r := open(t, resolver.Options{})
	p := block("p")
	for i := range 3000 {
		p.Domains = append(p.Domains, block("p", fmt.Sprintf("d%d.%s.example", i, strings.Repeat("x", 50))).Domains...)
	}
	apply(t, r, file("p.hcl", p))
	behind, _ := r.Events().Newest()
	const changes = 100 // 200 kB each
	for i := range changes {
		p.Project.Name = fmt.Sprint("name ", i)
		apply(t, r, file("p.hcl", p))
	}
	bytes, first := 0, uint64(0)
	for revision := r.Generation(); revision > 0 && first == 0; revision-- {
		c, _ := r.Events().After(catalog.Position{Epoch: r.Position().Epoch, Generation: revision})
		events := drain(&c)
		bytes = max(bytes, sizeOf(events))
		if len(events) > 0 && events[0].Kind == resolver.Reset {
			first = revision
		}
	}
	if bytes > 8<<20 || bytes < 6<<20 || first < changes/2 {
		t.Errorf("the history has %d bytes and begins after revision %d", bytes, first)
	}
	p.Domains = nil
	if got := next(&behind); got != `"reset"` {
		t.Errorf("who is behind gets %.100s", got)
	}
	apply(t, r, file("q.hcl", block("q")))
	if got := next(&behind); got != "project.changed q: " {
		t.Errorf("and then %.100s", got)
	}
}

func sizeOf(events []*resolver.Event) (n int) {
	for _, e := range events {
		n += len(e.Data)
	}
	return n
}

// TestNoEventBeforeItsAnswer: a client that asks because of an event gets an answer as new as the event.
func TestNoEventBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	versions := int64(testrig.Size(t, 3000, 300))
	if testrig.Race {
		versions = 300
	}
	r := open(t, resolver.Options{})
	w := new(world)
	apply(t, r, w.files(1)[:2]...) // without the defaults, which would cause a reset
	var wg sync.WaitGroup
	for range 4 {
		cursor, newest := r.Events().Newest()
		wg.Go(func() {
			for at := newest.Generation; at < uint64(versions); {
				changed := r.Events().Changed()
				events := cursor.Next(nil, 1)
				if len(events) == 0 {
					<-changed
					continue
				}
				at = events[0].Revision
				for _, name := range []string{"p.example", "y.wild.test"} {
					a, err := r.Resolve([]byte(name), resolver.Nested)
					if err != nil {
						t.Error(err)
						return
					}
					v, err := strconv.ParseUint(nameVersion.FindStringSubmatch(a.Data)[1], 10, 64)
					if err != nil || v < at {
						t.Errorf("%s is of version %d after an event of %d", name, v, at)
						return
					}
				}
			}
		})
	}
	for v := int64(2); v <= versions; v++ {
		apply(t, r, w.files(v)[:2]...)
		runtime.Gosched()
	}
	wg.Wait()
}

// TestEventsWhileTheDiskGoes: an uncertain change is a reset, and no event is sent before its answers.
func TestEventsWhileTheDiskGoes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	g := new(gate)
	r := open(t, resolver.Options{DataDir: dir, Disk: resolver.DiskOptions{CheckEvery: fast.CheckEvery, RetryEvery: fast.RetryEvery, Probe: g.probe}})
	apply(t, r, file("a.hcl", block("a", "a.example")))
	cursor, _ := r.Events().Newest()
	remove(t, dir)
	testrig.Eventually(t, "the loss is noticed", degraded(r))
	if got := next(&cursor); got != "" {
		t.Errorf("the loss of the disk tells %s: nothing that is answered has changed", got)
	}
	apply(t, r, file("b.hcl", block("b", "b.example")))
	if got := next(&cursor); got != "project.changed b: b.example" {
		t.Errorf("a change in memory tells %s", got)
	}
	g.open.Store(true)
	testrig.Eventually(t, "the store is back", healthy(r))
	apply(t, r, file("c.hcl", block("c")))
	if got := next(&cursor); got != "project.changed c: " {
		t.Errorf("a change after the way back tells %s", got)
	}
}
