package resolver_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

var _ mailer.Ledger = (*resolver.Resolver)(nil)

// accept stores a mail of project 1 under a key.
func accept(r *resolver.Resolver, key string, size int) (id int64, err error) {
	id = r.NewMailID()
	log := &catalog.MailLog{
		ID: id, ProjectID: 1, ProviderType: catalog.ProviderSMTP, ToEmail: "ada@to.example", Subject: "Hello", Status: catalog.MailPending,
		MessageID: fmt.Sprintf("<%d@acme.example>", id), CreatedAt: noon.Add(time.Duration(id%1000) * time.Second),
	}
	mail := &catalog.QueuedMail{LogID: id, ProjectID: 1, From: "a@acme.example", To: log.ToEmail, Message: make([]byte, size)}
	random := rand.NewChaCha8([32]byte{byte(id), byte(id >> 8)})
	random.Read(mail.Message) // incompressible
	idem := &catalog.Idempotency{ProjectID: 1, Key: key, LogID: id, ExpiresAt: noon.Add(24 * time.Hour)}
	there, err := r.AcceptMail(log, mail, idem)
	if there != nil {
		id = there.LogID
	}
	return id, err
}

func mustAccept(t *testing.T, r *resolver.Resolver, key string, size int) int64 {
	t.Helper()
	id, err := accept(r, key, size)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func queue(t *testing.T, r *resolver.Resolver) (ids []int64) {
	t.Helper()
	err := r.EachQueued(func(log catalog.MailLog, mail catalog.QueuedMail) error {
		ids = append(ids, log.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func fixed(at time.Time) func() time.Time { return func() time.Time { return at } }

func TestMailIDs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	var clock atomic.Int64
	now := func() time.Time { return noon.Add(time.Duration(clock.Load())) }
	micros := func() int64 { return now().Sub(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)).Microseconds() }
	start := func() *resolver.Resolver {
		r, err := resolver.Open(resolver.Options{DataDir: dir, CacheBytes: testCacheBytes, Logger: quiet, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := start()
	if id := r.NewMailID(); id != micros() {
		t.Errorf("%d, and it is %d", id, micros())
	}
	if id := r.NewMailID(); id != micros()+1 {
		t.Errorf("%d, and the next one free is %d", id, micros()+1)
	}
	clock.Store(int64(time.Hour))
	last := r.NewMailID()
	if last != micros() {
		t.Errorf("%d, and it is %d", last, micros())
	}
	clock.Store(0)
	if id := r.NewMailID(); id != last+1 {
		t.Errorf("with the clock set back %d, and the last one was %d", id, last)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	// The ids above were given out and not stored; they must not recur.
	r = start()
	if id := r.NewMailID(); id != last+2 {
		t.Errorf("after a restart %d, and the last one was %d", id, last+1)
	}
	clock.Store(int64(2 * time.Hour))
	last = mustAccept(t, r, "k", 10)
	clock.Store(-int64(time.Hour))
	var ids sync.Map
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 200 {
				id := r.NewMailID()
				if _, twice := ids.LoadOrStore(id, true); twice || id <= last {
					t.Errorf("%d after %d", id, last)
				}
			}
		})
	}
	all.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	clock.Store(int64(290 * 365 * 24 * time.Hour))
	r = start()
	if id := r.NewMailID(); id <= last+16*200 || id >= 1<<53 {
		t.Errorf("with a clock that is out of its mind %d", id)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMailIDsAfterCrash: an id that was given out and not stored does not recur after a crash, even with the clock set
// back.
func TestMailIDsAfterCrash(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	start := func(fs vfs.FS, now time.Time) *resolver.Resolver {
		return open(t, resolver.Options{DataDir: "data", Now: fixed(now), Disk: resolver.DiskOptions{
			Store:  func(dir string, o store.Options) (*store.Store, error) { o.FS = fs; return store.Open(dir, o) },
			Ledger: func(dir string, o ledger.Options) (*ledger.Ledger, error) { o.FS = fs; return ledger.Open(dir, o) },
		}})
	}
	id := start(mem, noon).NewMailID()
	if next := start(mem.CrashClone(vfs.CrashCloneCfg{}), noon.Add(-time.Hour)).NewMailID(); next <= id {
		t.Errorf("%d after %d", next, id)
	}
}

func TestMailInMemory(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{Now: fixed(noon)})
	id := mustAccept(t, r, "k", 10)
	if got := queue(t, r); len(got) != 1 || got[0] != id {
		t.Errorf("queued %v", got)
	}
	log, found, err := r.MailLog(1, id)
	if !found || err != nil {
		t.Fatal(found, err)
	}
	log.Status = catalog.MailSent
	if err := r.UpdateMail(&log); err != nil {
		t.Fatal(err)
	}
	log.Status = catalog.MailRetrying
	if err := r.UpdateMail(&log); code(err) != catalog.CodeConflict {
		t.Errorf("after the end: %v", err)
	}
	log.ID++
	if err := r.UpdateMail(&log); code(err) != catalog.CodeNotFound {
		t.Errorf("of nothing: %v", err)
	}
	if page, total, err := r.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 10, Status: catalog.MailSent}); len(page) != 1 || total != 1 || err != nil {
		t.Errorf("%v, %d, %v", page, total, err)
	}
	_, _, err = r.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 10, Sort: "body"})
	var bad *catalog.Error
	if !errors.As(err, &bad) || bad.Code != catalog.CodeValidation || len(bad.Problems) != 1 || bad.Problems[0].Path != "sort" {
		t.Errorf("sorted by a field that is none: %v", err)
	}
	if err := r.PruneMail(noon.Add(time.Hour), noon.Add(48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, total, err := r.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 10}); total != 0 || err != nil {
		t.Errorf("%d entries after their time, %v", total, err)
	}
	if _, found, err := r.Idempotency(1, "k"); found || err != nil {
		t.Errorf("the key is there after its time, %v", err)
	}
}

// refuses checks that every mail call fails with the documented error.
func refuses(t *testing.T, r *resolver.Resolver) {
	t.Helper()
	_, err := accept(r, "another", 10)
	for what, err := range map[string]error{
		"accept":      err,
		"update":      r.UpdateMail(&catalog.MailLog{ID: 1, ProjectID: 1, Status: catalog.MailSent, CreatedAt: noon}),
		"answer":      r.AnswerMail(&catalog.Idempotency{ProjectID: 1, Key: "k"}),
		"idempotency": third(r.Idempotency(1, "k")),
		"queued":      third(r.QueuedMail(1)),
		"each queued": r.EachQueued(func(catalog.MailLog, catalog.QueuedMail) error { return nil }),
		"list":        third(r.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 1})),
		"entry":       third(r.MailLog(1, 1)),
		"prune":       r.PruneMail(noon, noon),
	} {
		if code(err) != catalog.CodeUnavailable {
			t.Errorf("%s: %v, want UNAVAILABLE", what, err)
		}
	}
}

// A healingDisk is a store's disk in memory whose syncs fail for a while.
type healingDisk struct {
	vfs.FS
	broken, shut atomic.Bool
}

func newHealingDisk() *healingDisk {
	d := new(healingDisk)
	d.FS = errorfs.Wrap(vfs.NewCrashableMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.broken.Load() && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			return syscall.EIO
		}
		return nil
	}))
	return d
}

func (d *healingDisk) options() resolver.DiskOptions {
	o := fast
	o.Probe = func(string) error {
		if d.shut.Load() {
			return errors.New("not yet")
		}
		return nil
	}
	o.Store = func(dir string, o store.Options) (*store.Store, error) { o.FS = d; return store.Open(dir, o) }
	o.Ledger = func(dir string, o ledger.Options) (*ledger.Ledger, error) { o.FS = d; return ledger.Open(dir, o) }
	return o
}

// TestMailWhileTheDiskIsGone: while the disk fails, mail is refused and not kept in memory. Mail accepted before is
// there when the disk is back; mail refused at the moment of the failure is not, even if its batch reached the disk.
func TestMailWhileTheDiskIsGone(t *testing.T) {
	t.Parallel()
	d := newHealingDisk()
	r := open(t, resolver.Options{DataDir: "data", Now: fixed(noon), Disk: d.options()})
	apply(t, r, file("a.hcl", block("a", "a.example")))
	before := mustAccept(t, r, "before", 10)
	d.shut.Store(true)
	d.broken.Store(true)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			if _, err := accept(r, fmt.Sprint("lost", n), 10); code(err) != catalog.CodeUnavailable {
				t.Errorf("on a disk that cannot sync: %v", err)
			}
		})
	}
	all.Wait()
	testrig.Eventually(t, "the loss is noticed", degraded(r))
	refuses(t, r)
	if resolve(t, r, "a.example", resolver.Nested).Slug != "a" {
		t.Error("resolve has gone with the mail")
	}
	d.broken.Store(false)
	d.shut.Store(false)
	testrig.Eventually(t, "the store is back", healthy(r))
	if ids := queue(t, r); len(ids) != 1 || ids[0] != before {
		t.Errorf("queued %v, want %d", ids, before)
	}
	for n := range 8 {
		if _, found, err := r.Idempotency(1, fmt.Sprint("lost", n)); found || err != nil {
			t.Errorf("the key of a mail that was refused is kept: %v", err)
		}
	}
	if id := mustAccept(t, r, "after", 10); id <= before {
		t.Errorf("%d after %d", id, before)
	}
	if _, total, err := r.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 10}); total != 2 || err != nil || len(r.MailGaps()) != 0 {
		t.Errorf("%d entries, %v, %v", total, err, r.MailGaps())
	}
}

func TestMailWithoutADiskAtTheStart(t *testing.T) {
	t.Parallel()
	d := newHealingDisk()
	r, err := resolver.Open(resolver.Options{
		DataDir: "data", CacheBytes: testCacheBytes, Now: fixed(noon), Disk: d.options(), Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	id := mustAccept(t, r, "k", 10)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	d.shut.Store(true)
	o := d.options()
	whole := o.Store
	o.Store = func(dir string, so store.Options) (*store.Store, error) {
		if d.shut.Load() {
			return nil, store.ErrUnavailable
		}
		return whole(dir, so)
	}
	r = open(t, resolver.Options{DataDir: "data", Now: fixed(noon.Add(-time.Hour)), Disk: o})
	refuses(t, r)
	d.shut.Store(false)
	testrig.Eventually(t, "the store is there", healthy(r))
	if ids := queue(t, r); len(ids) != 1 || ids[0] != id {
		t.Errorf("queued %v, want %d", ids, id)
	}
	if next := r.NewMailID(); next <= id {
		t.Errorf("%d after %d", next, id)
	}
}

// TestMailGoneWithItsDirectory: a gap that nothing can close is reported.
func TestMailGoneWithItsDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	log := new(lines)
	r := open(t, resolver.Options{DataDir: dir, Disk: fast, Now: fixed(noon), Logger: slog.New(slog.NewTextHandler(log, nil))})
	mustAccept(t, r, "k", 10)
	remove(t, dir)
	if _, err := accept(r, "l", 10); code(err) != catalog.CodeUnavailable {
		t.Errorf("into a directory that is gone: %v", err)
	}
	testrig.Eventually(t, "the gap is told", func() bool { return healthy(r)() && len(r.MailGaps()) == 1 })
	if gap := r.MailGaps()[0]; gap.Complete || !strings.Contains(gap.Reason, "removed") {
		t.Errorf("%+v", gap)
	}
	if all := strings.Join(log.all(), "\n"); strings.Count(all, "mail lost") != 1 {
		t.Errorf("the log says\n%s", all)
	}
	if err := r.PruneMail(noon.Add(time.Second), noon); err != nil || len(r.MailGaps()) != 0 {
		t.Errorf("after the retention: %v, %v", r.MailGaps(), err)
	}
}

// TestLedgerFailsAlone: configuration is written while mail is refused, and both failures are logged.
func TestLedgerFailsAlone(t *testing.T) {
	t.Parallel()
	d, log := newHealingDisk(), new(lines)
	o := d.options()
	sound := vfs.NewMem()
	o.Store = func(dir string, so store.Options) (*store.Store, error) { so.FS = sound; return store.Open(dir, so) }
	r := open(t, resolver.Options{DataDir: "data", Now: fixed(noon), Disk: o, Logger: slog.New(slog.NewTextHandler(log, nil))})
	before := mustAccept(t, r, "before", 10)
	d.shut.Store(true)
	d.broken.Store(true)
	if _, err := accept(r, "lost", 10); code(err) != catalog.CodeUnavailable {
		t.Errorf("on a disk that cannot sync: %v", err)
	}
	testrig.Eventually(t, "the loss is noticed", degraded(r))
	refuses(t, r)
	if !r.Writable() {
		t.Error("the store has failed with the ledger")
	}
	apply(t, r, file("a.hcl", block("a", "a.example")))
	if resolve(t, r, "a.example", resolver.Nested).Slug != "a" {
		t.Error("a change is not seen")
	}
	d.broken.Store(false)
	d.shut.Store(false)
	testrig.Eventually(t, "the ledger is back", healthy(r))
	if ids := queue(t, r); len(ids) != 1 || ids[0] != before {
		t.Errorf("queued %v, want %d", ids, before)
	}
	mustAccept(t, r, "after", 10)
	if l := log.all(); len(l) != 2 || !strings.Contains(l[0], "ledger on disk unavailable") || !strings.Contains(l[1], "ledger on disk is back") {
		t.Errorf("one line for each change of state, got:\n%s", strings.Join(l, "\n"))
	}
}
