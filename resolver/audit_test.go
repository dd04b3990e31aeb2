package resolver_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// trail returns all entries, the oldest first.
func trail(t testing.TB, r *resolver.Resolver) (entries []catalog.AuditEntry) {
	t.Helper()
	for q := (catalog.AuditQuery{Page: 1, Limit: 100}); ; q.Page++ {
		page, err := r.Audit(q)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, page.Entries...)
		if len(page.Entries) == 0 {
			slices.Reverse(entries)
			return entries
		}
	}
}

// brief returns entries without their changes, one a word.
func brief(entries []catalog.AuditEntry) string {
	var words []string
	for _, e := range entries {
		words = append(words, fmt.Sprintf("%d:%s:%s:%s:%s", e.Generation, e.Action, e.Object, e.Door, e.RequestID))
	}
	return strings.Join(words, " ")
}

func byClient(f catalog.FileChange, request string) catalog.FileChange {
	f.By = &catalog.Author{Door: catalog.DoorAPI, Actor: "Ann <ann@acme.example>", Key: "ci", RequestID: request}
	f.Waits = true
	return f
}

func TestAuditTrail(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	apply(t, r, file("a.hcl", block("a", "a.example")))
	apply(t, r, byClient(file("b.hcl", block("b", "b.example")), "r1"))
	apply(t, r, gone("b.hcl"), byClient(file("a.hcl", block("a")), "r2"))
	r.Note(catalog.AuditConfirm, catalog.Author{Door: catalog.DoorCLI})
	want := "1:store.load::file: 2:project.create:b:api:r1 2:domain.create:b.example:api:r1 " +
		"3:project.delete:b:file: 3:domain.delete:a.example:api:r2 3:domain.delete:b.example:file: 3:brake.confirm::cli:"
	entries := trail(t, r)
	if got := brief(entries); !sameWords(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if e := entries[1]; e.Actor != "Ann <ann@acme.example>" || e.Key != "ci" || !e.Time.Equal(noon.Truncate(time.Microsecond)) || e.ProjectID == 0 {
		t.Errorf("%+v", e)
	}
	if e := entries[0]; !reflect.DeepEqual(e.Changes, []catalog.FieldChange{{Field: "projects", After: int64(1)}, {Field: "domains", After: int64(1)}}) {
		t.Errorf("%+v", e)
	}
}

// sameWords compares without regard to the order of entries of one change.
func sameWords(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// onDisk puts store and ledger on a file system.
func onDisk(fs vfs.FS) resolver.DiskOptions {
	return resolver.DiskOptions{
		Store:      func(dir string, o store.Options) (*store.Store, error) { o.FS = fs; return store.Open(dir, o) },
		Ledger:     func(dir string, o ledger.Options) (*ledger.Ledger, error) { o.FS = fs; return ledger.Open(dir, o) },
		Probe:      func(string) error { return nil },
		CheckEvery: time.Hour,
	}
}

// A folder is a config folder, as far as the resolver sees one: it loses nothing in a power cut.
type folder struct {
	t       *testing.T
	rand    *rand.Rand
	files   map[string]catalog.FileChange
	version int
	acked   map[string]bool // request ids
}

func (f *folder) path() string { return fmt.Sprintf("p%d.hcl", f.rand.IntN(3)) }

// edit changes a file in some way.
func (f *folder) edit() (change catalog.FileChange) {
	path := f.path()
	f.version++
	had, there := f.files[path]
	if there && f.rand.IntN(6) == 0 {
		delete(f.files, path)
		return gone(path)
	}
	slug := strings.TrimSuffix(path, ".hcl")
	p := block(slug, slug+".example", "www."+slug+".example")
	if there {
		p = had.Declared.Projects[0]
	}
	switch f.rand.IntN(5) {
	case 0:
		p.Project.Name = fmt.Sprint("name ", f.version)
	case 1:
		p.Project.Status = catalog.Statuses[f.rand.IntN(3)]
	case 2:
		p.Domains = slices.Clone(p.Domains[:f.rand.IntN(1+len(p.Domains))])
	case 3:
		p.Domains = block(slug, slug+".example", "www."+slug+".example").Domains
	case 4:
		p.SMTP = &catalog.SMTPConfig{ID: 1, Host: fmt.Sprintf("mail%d.example", f.version), Password: catalog.Secret{Source: catalog.SecretEnv, Ref: "X"}}
	}
	change = file(path, p)
	change.Row.Stamp.Hash = [32]byte{byte(f.version), byte(f.version >> 8), 1}
	f.files[path] = change
	return change
}

// look is what configsrc does at a start: it applies what differs, and ends the load.
func (f *folder) look(r *resolver.Resolver) {
	f.t.Helper()
	has := map[string][32]byte{}
	if err := r.Files(func(path string, row *catalog.FileRow) bool { has[path] = row.Stamp.Hash; return true }); err != nil {
		f.t.Fatal(err)
	}
	var found []catalog.FileChange
	for path, file := range f.files {
		if has[path] != file.Row.Stamp.Hash {
			found = append(found, file)
		}
		delete(has, path)
	}
	for path := range has {
		found = append(found, gone(path))
	}
	slices.SortFunc(found, func(a, b catalog.FileChange) int { return strings.Compare(a.Path, b.Path) })
	if len(found) > 0 || r.Generation() == 0 {
		apply(f.t, r, found...)
	}
	if err := r.SetDecoderRevision(1); err != nil {
		f.t.Fatal(err)
	}
}

// check replays the trail: each entry must tell of a change from what the entries before it have left, all of them
// together must lead to what the folder declares, and each acknowledged write must have its entries under its id.
func (f *folder) check(r *resolver.Resolver) {
	f.t.Helper()
	objects := map[string]map[string]any{}
	requests := map[string]bool{}
	entries := trail(f.t, r)
	for _, e := range entries[1:] { // store.load of the empty folder is first
		noun, verb, _ := strings.Cut(e.Action, ".")
		key := fmt.Sprint(noun, e.ProjectID, e.Object)
		is, there := objects[key]
		if there != (verb != "create") {
			f.t.Fatalf("entry %d, %s of %s: there: %v\n%s", e.ID, e.Action, e.Object, there, brief(entries))
		}
		if is == nil {
			is = map[string]any{}
		}
		for _, c := range e.Changes {
			if was := is[c.Field]; !reflect.DeepEqual(was, c.Before) {
				f.t.Fatalf("entry %d, %s of %s: %s was %v, it says %v\n%s", e.ID, e.Action, e.Object, c.Field, was, c.Before, brief(entries))
			}
			if is[c.Field] = c.After; c.After == nil {
				delete(is, c.Field)
			}
		}
		if objects[key] = is; verb == "delete" {
			delete(objects, key)
		}
		requests[e.RequestID] = true
	}
	for id := range f.acked {
		if !requests[id] {
			f.t.Fatalf("the write %s was answered and has no entry", id)
		}
	}
	want := map[string]map[string]any{}
	declare := func(noun string, project int64, object string, fields []catalog.Field) {
		values := map[string]any{}
		for _, c := range catalog.FieldChanges(nil, fields) {
			values[c.Field] = c.After
		}
		want[fmt.Sprint(noun, project, object)] = values
	}
	for _, file := range f.files {
		p := &file.Declared.Projects[0]
		declare("project", p.Project.ID, p.Project.Slug, p.Project.AllFields())
		for i := range p.Domains {
			declare("domain", p.Project.ID, p.Domains[i].Name, p.Domains[i].AllFields())
		}
		if p.SMTP != nil {
			declare("smtp-config", p.Project.ID, p.Project.Slug, p.SMTP.Fields())
		}
	}
	if !reflect.DeepEqual(objects, want) {
		f.t.Fatalf("the trail leads to\n%v\nthe files say\n%v\n%s", objects, want, brief(entries))
	}
	if check, err := r.VerifyAudit([32]byte{}); err != nil || check.Broken != nil {
		f.t.Fatalf("%+v, %v", check.Broken, err)
	}
}

// Power cuts under writes of clients and of people: the store loses its last commits, the trail loses nothing that was
// answered, and no change is told twice. A write may be cut off between the exchange of its file and its entry.
func TestAuditPowerCut(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for seed := range uint64(testrig.Size(t, 300, 6)) {
		random := rand.New(rand.NewPCG(seed, 7))
		mem := vfs.NewCrashableMem()
		f := &folder{t: t, rand: random, files: map[string]catalog.FileChange{}, acked: map[string]bool{}}
		start := func() *resolver.Resolver {
			r, err := resolver.Open(resolver.Options{DataDir: "data", CacheBytes: testCacheBytes, Logger: quiet, Now: fixed(noon), Disk: onDisk(mem)})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		r := start()
		f.look(r)
		stays := file("stays.hcl", block("stays"))
		f.files[stays.Path] = stays
		apply(t, r, stays)
		if err := r.Close(); err != nil { // from here on the store is never empty
			t.Fatal(err)
		}
		for range 4 {
			r = start()
			f.look(r)
			f.check(r)
			for range random.IntN(12) {
				was := len(trail(t, r))
				c := f.edit()
				if random.IntN(4) > 0 {
					c = byClient(c, fmt.Sprint("r", f.version))
				}
				apply(t, r, c)
				if c.By != nil && len(trail(t, r)) > was {
					f.acked[c.By.RequestID] = true
				}
			}
			f.check(r)
			for range random.IntN(3) {
				f.edit() // of which nobody has heard when the power fails
			}
			image := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(2) * random.IntN(101), RNG: random})
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			mem = image
		}
		r = start()
		f.look(r)
		f.check(r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// While the ledger refuses, a client's write is refused and changes nothing, and a person's goes live; its entry is in
// the trail once the ledger is back. What the failed ledger has of refused writes is no entry.
func TestAuditWhileTheLedgerFails(t *testing.T) {
	t.Parallel()
	d := newHealingDisk()
	o, sound := d.options(), vfs.NewMem()
	o.Store = func(dir string, so store.Options) (*store.Store, error) { so.FS = sound; return store.Open(dir, so) }
	r := open(t, resolver.Options{DataDir: "data", Disk: o})
	apply(t, r, file("a.hcl", block("a", "a.example")))
	apply(t, r, byClient(file("b.hcl", block("b")), "r1"))
	d.shut.Store(true)
	d.broken.Store(true)
	for i := range 3 {
		generation := r.Generation()
		_, err := r.Apply(&catalog.Change{Files: []catalog.FileChange{byClient(file("c.hcl", block("c")), "r2")}})
		if !errors.Is(err, catalog.ErrUnaudited) || r.Generation() != generation {
			t.Fatalf("%d: %v, generation %d", i, err, r.Generation())
		}
		if _, err := r.ProjectBySlug("c"); code(err) != catalog.CodeNotFound {
			t.Fatalf("%d: the refused write is seen: %v", i, err)
		}
		apply(t, r, file(fmt.Sprintf("d%d.hcl", i), block(fmt.Sprint("d", i))))
	}
	testrig.Eventually(t, "the loss is noticed", degraded(r))
	d.broken.Store(false)
	d.shut.Store(false)
	testrig.Eventually(t, "the ledger is back", healthy(r))
	apply(t, r, byClient(file("e.hcl", block("e")), "r3"))
	want := "1:store.load::file: 2:project.create:b:api:r1 3:project.create:d0:file: 4:project.create:d1:file: 5:project.create:d2:file: 6:project.create:e:api:r3"
	if got := brief(trail(t, r)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if check, err := r.VerifyAudit([32]byte{}); err != nil || check.Broken != nil || check.Entries != 6 {
		t.Errorf("%+v, %v", check, err)
	}
}

// Entries that tell of no change have the generation and the slug of their project, also when it is gone, and come with
// the named values or not at all. Nothing waits while the ledger refuses.
func TestNoteAll(t *testing.T) {
	t.Parallel()
	d := newHealingDisk()
	r := open(t, resolver.Options{DataDir: "data", Disk: d.options()})
	p := block("a", "a.example")
	apply(t, r, file("a.hcl", p))
	note := func(action, object, value string) error {
		return r.NoteAll([]catalog.AuditEntry{{Action: action, Object: object, ProjectID: p.Project.ID, Slug: "as it was"},
			{Action: action, Object: object}}, map[string][]byte{"conditions": []byte(value)})
	}
	if err := note("condition.begins", "x", "1"); err != nil {
		t.Fatal(err)
	}
	d.shut.Store(true)
	d.broken.Store(true)
	if err := note("condition.begins", "refused", "2"); err == nil {
		t.Error("a broken disk takes entries")
	}
	testrig.Eventually(t, "the loss is noticed", degraded(r))
	d.broken.Store(false)
	d.shut.Store(false)
	testrig.Eventually(t, "the ledger is back", healthy(r))
	apply(t, r, gone("a.hcl"))
	if value, _, err := r.Named("conditions"); err != nil || string(value) == "" {
		t.Errorf("%q, %v", value, err)
	}
	if err := note("condition.ends", "x", "3"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range trail(t, r) {
		if strings.HasPrefix(e.Action, "condition.") {
			got = append(got, fmt.Sprint(e.Action, " ", e.Object, " ", e.Slug, " ", e.ProjectID != 0, " ", e.Generation > 0, " ", !e.Time.IsZero()))
		}
	}
	want := []string{"condition.begins x a true true true", "condition.begins x  false true true",
		"condition.ends x as it was true true true", "condition.ends x  false true true"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if value, _, err := r.Named("conditions"); string(value) != "3" || err != nil {
		t.Errorf("%q, %v", value, err)
	}
	if check, err := r.VerifyAudit([32]byte{}); err != nil || check.Broken != nil {
		t.Errorf("%+v, %v", check.Broken, err)
	}
}

// Entries stay for the auditRetentionDays of their project, also when it is gone.
func TestAuditRetention(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[time.Time]
	set := func(at time.Time) { now.Store(&at) }
	set(noon)
	r := open(t, resolver.Options{Now: func() time.Time { return *now.Load() }})
	apply(t, r, file("stays.hcl", block("stays")))
	short := block("short", "short.example")
	short.Service.AuditRetentionDays, short.Service.Said = 10, catalog.FieldSet(0).With(5)
	apply(t, r, file("short.hcl", short))
	apply(t, r, file("gone.hcl", block("gone")))
	deleted := block("deleted")
	deleted.Service.AuditRetentionDays, deleted.Service.Said = 20, catalog.FieldSet(0).With(5)
	apply(t, r, file("deleted.hcl", deleted))
	apply(t, r, gone("deleted.hcl"), gone("gone.hcl"))
	left := func(days int, want map[string]int) {
		t.Helper()
		at := noon.AddDate(0, 0, days)
		set(at)
		if err := r.PruneAudit(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, e := range trail(t, r) {
			name, _, _ := strings.Cut(e.Object, ".")
			got[name]++
		}
		if !maps.Equal(got, want) {
			t.Errorf("after %d days %v, want %v", days, got, want)
		}
		if check, err := r.VerifyAudit([32]byte{}); err != nil || check.Broken != nil {
			t.Errorf("after %d days %+v, %v", days, check.Broken, err)
		}
	}
	left(9, map[string]int{"": 1, "short": 3, "gone": 2, "deleted": 3}) // "" is store.load
	left(11, map[string]int{"": 1, "gone": 2, "deleted": 3})
	left(21, map[string]int{"": 1, "gone": 2})
	left(89, map[string]int{"": 1, "gone": 2})
	left(91, map[string]int{})
	apply(t, r, file("short.hcl", block("short")))
	left(92, map[string]int{"short": 2}) // its days and its domain
}
