package resolver_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// openOn opens a resolver whose store and ledger are on fs.
func openOn(fs vfs.FS, log *slog.Logger) (*resolver.Resolver, error) {
	disk := fast
	disk.Probe = func(string) error { return nil }
	disk.Store = func(dir string, o store.Options) (*store.Store, error) { o.FS = fs; return store.Open(dir, o) }
	disk.Ledger = func(dir string, o ledger.Options) (*ledger.Ledger, error) { o.FS = fs; return ledger.Open(dir, o) }
	return resolver.Open(resolver.Options{
		DataDir: "data", CacheBytes: testCacheBytes, Now: fixed(noon), Disk: disk, Logger: log,
	})
}

// earlierStore returns a data directory of an earlier release: the mail is in the store, and there is no ledger.
func earlierStore(t *testing.T, mails int) *vfs.MemFS {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	mem := vfs.NewCrashableMem()
	r, err := openOn(mem, quiet)
	must(err)
	apply(t, r, file("a.hcl", block("a", "a.example")))
	for n := range mails {
		id := mustAccept(t, r, fmt.Sprint("key-", n), 100)
		if n%3 == 0 {
			log, _, err := r.MailLog(1, id)
			must(err)
			log.Status = catalog.MailSent
			must(r.UpdateMail(&log))
		}
	}
	must(r.Close())
	o := func() *pebble.Options {
		return &pebble.Options{FS: mem, FormatMajorVersion: pebble.FormatValueSeparation, Logger: silent{}}
	}
	to, err := pebble.Open("data", o())
	must(err)
	from, err := pebble.Open("data/ledger", o())
	must(err)
	it, err := from.NewIter(&pebble.IterOptions{UpperBound: []byte("a")}) // mail keys have capital letters
	must(err)
	for ok := it.First(); ok; ok = it.Next() {
		must(to.Set(it.Key(), it.Value(), pebble.NoSync))
	}
	must(errors.Join(it.Close(), from.Close(), to.LogData(nil, pebble.Sync), to.Close(), mem.RemoveAll("data/ledger")))
	d, err := mem.OpenDir("data")
	must(err)
	must(errors.Join(d.Sync(), d.Close()))
	return mem
}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(string, ...any) {}

// moved waits until the ledger has all mail, and compares it with the store of the earlier release.
func moved(t *testing.T, what string, r *resolver.Resolver, mails int) {
	t.Helper()
	queued := 0
	testrig.Eventually(t, what+": mail is taken over", func() bool {
		_, total, err := r.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 1})
		if err != nil || total != mails {
			return false
		}
		queued = 0
		return r.EachQueued(func(log catalog.MailLog, _ catalog.QueuedMail) error {
			if log.Uncertain {
				return errors.New("a mail of a sound store is uncertain")
			}
			queued++
			return nil
		}) == nil
	})
	if want := mails - (mails+2)/3; queued != want {
		t.Errorf("%s: %d mails are queued, want %d", what, queued, want)
	}
	for n := range mails {
		if i, found, err := r.Idempotency(1, fmt.Sprint("key-", n)); err != nil || !found {
			t.Errorf("%s: key %d: %+v, %v", what, n, i, err)
		}
	}
	if len(r.MailGaps()) > 0 {
		t.Errorf("%s: %+v", what, r.MailGaps())
	}
}

// TestMailMovesToTheLedger cuts the power before every disk-changing operation of the first start, and starts again on
// what is left: all mail is there, once, and finally none of it is left in the store.
func TestMailMovesToTheLedger(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	if testing.Short() {
		t.Skip("left out with -short: it takes seconds")
	}
	const mails = 12
	mem := earlierStore(t, mails)
	var mu sync.Mutex
	var cuts []*vfs.MemFS
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			cuts = append(cuts, mem.CrashClone(vfs.CrashCloneCfg{}))
		}
		return nil
	}))
	r, err := openOn(disk, quiet)
	if err != nil {
		t.Fatal(err)
	}
	moved(t, "the first start", r, mails)
	late := mustAccept(t, r, "late", 10)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if len(cuts) < 40 {
		t.Fatalf("%d cuts are too few: the test looks at nothing", len(cuts))
	}
	t.Logf("%d cuts", len(cuts))
	mu.Lock()
	defer mu.Unlock()
	for n, cut := range cuts {
		s, err := store.Open("data", store.Options{FS: cut, Logger: quiet})
		if err != nil {
			t.Fatal(n, err)
		}
		_, left, err := s.FormerMail()
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(n, err)
		}
		for start := range 2 {
			log := new(lines)
			r, err := openOn(cut, slog.New(slog.NewTextHandler(log, nil)))
			if err != nil {
				t.Fatal(n, err)
			}
			have := mails
			if _, found, _ := r.MailLog(1, late); found {
				have++
			}
			if have == mails {
				moved(t, fmt.Sprintf("cut %d, start %d", n, start), r, mails)
			}
			if left && start == 0 {
				testrig.Eventually(t, "the store has no mail any more", func() bool {
					return strings.Contains(strings.Join(log.all(), "\n"), "mail moved from the store to the ledger")
				})
			}
			if err := r.Close(); err != nil {
				t.Fatal(n, err)
			}
		}
		s, err = store.Open("data", store.Options{FS: cut, Logger: quiet})
		if err != nil {
			t.Fatal(n, err)
		}
		if _, found, err := s.FormerMail(); found || err != nil {
			t.Errorf("cut %d: mail is left in the store: %v, %v", n, found, err)
		}
		s.Close()
	}
}
