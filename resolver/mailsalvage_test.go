package resolver_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// recovered reports that no mail of a damaged store is left to recover.
func recovered(r *resolver.Resolver) func() bool {
	return func() bool {
		for _, gap := range r.MailGaps() {
			if gap.Found.IsZero() {
				return false
			}
		}
		return len(r.MailGaps()) > 0
	}
}

// TestMailOfADamagedStore starts on a store with damaged blocks in a table: readable mail is sent, unreadable mail is
// reported, and the next start sends nothing from it again.
func TestMailOfADamagedStore(t *testing.T) {
	testrig.Thorough(t)
	if testing.Short() {
		t.Skip("left out with -short: it takes seconds")
	}
	blocks := func(t *testing.T, dir string) {
		names, err := filepath.Glob(filepath.Join(dir, ledger.Folder, "*.sst"))
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []int{30, 60, 84} { // messages, entries or other records
				b[len(b)*at/100] ^= 0x55
			}
			if err := os.WriteFile(name, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	manifest := func(t *testing.T, dir string) {
		names, err := filepath.Glob(filepath.Join(dir, ledger.Folder, "MANIFEST-*"))
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, strike := range map[string]func(t *testing.T, dir string){
		"blocks":              blocks,
		"manifest":            manifest,
		"manifest and blocks": func(t *testing.T, dir string) { manifest(t, dir); blocks(t, dir) },
		"all blocks":          func(t *testing.T, dir string) { corruptTables(t, filepath.Join(dir, ledger.Folder)) },
		"a lost marker only": func(t *testing.T, dir string) {
			names, err := filepath.Glob(filepath.Join(dir, ledger.Folder, "marker.manifest.*"))
			if err != nil || len(names) != 1 {
				t.Fatal(names, err)
			}
			if err := os.Remove(names[0]); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			clock := noon
			start := func(log *slog.Logger) *resolver.Resolver {
				clock = clock.Add(time.Minute)
				r, err := resolver.Open(resolver.Options{
					DataDir: dir, CacheBytes: testCacheBytes, Disk: fast, Now: fixed(clock), Logger: log,
				})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			mails := 400
			if name == "all blocks" {
				mails = 100 // Pebble looks for a flipped bit in a bad block in quadratic time
			}
			all := map[int64]bool{}
			for range 2 { // the second start turns the log into a table
				r := start(quiet)
				for n := range mails / 2 {
					all[mustAccept(t, r, fmt.Sprint(len(all), " ", n), 800)] = true
				}
				apply(t, r, manyFiles()[:200]...)
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := start(quiet).Close(); err != nil {
				t.Fatal(err)
			}
			strike(t, dir)
			log := new(lines)
			r := start(slog.New(slog.NewTextHandler(log, nil)))
			testrig.Eventually(t, "something is moved aside", func() bool {
				// If the start does not hit the damage, this query does.
				_, _, _ = r.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 1, ToEmail: "nobody"})
				_ = r.Files(func(string, *catalog.FileRow) bool { return true })
				for id := range all {
					_, _, _ = r.QueuedMail(id)
				}
				return len(r.MailGaps()) > 0
			})
			testrig.Eventually(t, "it is looked through", func() bool { return healthy(r)() && recovered(r)() })
			if _, err := accept(r, "after", 10); err != nil {
				t.Fatal(err)
			}
			gaps := r.MailGaps()
			if len(gaps) != 1 || gaps[0].Complete || gaps[0].Reason == "" || strings.Contains(gaps[0].Reason, dir) {
				t.Fatalf("%+v", gaps)
			}
			queued := map[int64]bool{}
			for _, id := range queue(t, r) {
				queued[id] = true
				m, found, err := r.QueuedMail(id)
				if all[id] && (err != nil || !found || len(m.Message) != 800 || m.To != "ada@to.example") {
					t.Errorf("%+v, %v, %v", m, found, err)
				}
			}
			page, total, err := r.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 1000})
			if err != nil || total != gaps[0].Entries+1 || len(queued) != gaps[0].Queued+1 {
				t.Errorf("%d entries, %d queued, the gap says %+v, %v", total, len(queued), gaps[0], err)
			}
			for _, log := range page {
				if queued[log.ID] == log.Status.Ended() {
					t.Errorf("%+v, queued: %v", log, queued[log.ID])
				}
			}
			t.Logf("of %d mails %d go on and %d are known to be lost", len(all), gaps[0].Queued, gaps[0].Lost)
			if strings.HasSuffix(name, "blocks") && name != "all blocks" && (gaps[0].Queued == 0 || gaps[0].Queued == len(all)) {
				t.Error("the damage is not in the middle of it")
			}
			if text := strings.Join(log.all(), "\n"); strings.Count(text, "mail recovered from a damaged store") != 1 {
				t.Errorf("the log says\n%s", text)
			}
			for id := range queued { // all are sent now
				log, _, err := r.MailLog(1, id)
				if err != nil {
					t.Fatal(err)
				}
				log.Status = catalog.MailSent
				if err := r.UpdateMail(&log); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(dir); err != nil { // on purpose, with the service stopped
				t.Fatal(err)
			}
			r = start(quiet)
			defer r.Close()
			if ids := queue(t, r); len(ids) != 0 {
				t.Errorf("%v are had back once more", ids)
			}
		})
	}
}

// TestMailOfASoundStoreMovedAside: damage elsewhere costs no mail and no idempotency key.
func TestMailOfASoundStoreMovedAside(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	r, err := resolver.Open(resolver.Options{DataDir: dir, CacheBytes: testCacheBytes, Logger: quiet, Now: fixed(noon)})
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for n := range 50 {
		ids = append(ids, mustAccept(t, r, fmt.Sprint(n), 10))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.MoveAside(filepath.Join(dir, ledger.Folder), noon); err != nil {
		t.Fatal(err)
	}
	// The state after a process was killed between the two steps.
	r = open(t, resolver.Options{DataDir: dir, Disk: fast, Now: fixed(noon.Add(-time.Hour))})
	testrig.Eventually(t, "the mail is back", recovered(r))
	if gap := r.MailGaps()[0]; !gap.Complete || gap.Queued != 50 || gap.Entries != 50 || gap.Lost != 0 {
		t.Errorf("%+v", gap)
	}
	if got := queue(t, r); fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("queued %v, want %v", got, ids)
	}
	if id := mustAccept(t, r, "7", 10); id != ids[7] {
		t.Errorf("a key that was used stands for %d, and not %d", id, ids[7])
	}
	if id := r.NewMailID(); id <= ids[49] {
		t.Errorf("%d after %d", id, ids[49])
	}
}

// TestMailMissingFromTheLog: a truncation of the store's log, which looks like a regular end to Pebble, is reported.
func TestMailMissingFromTheLog(t *testing.T) {
	for name, strike := range map[string]func(b []byte) []byte{
		"untouched": func(b []byte) []byte { return b },
		"flipped":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"last":      func(b []byte) []byte { b[len(b)-20] ^= 1; return b },
		"cut":       func(b []byte) []byte { return b[:len(b)/3] },
		"zeroed":    func(b []byte) []byte { clear(b[len(b)/2:]); return b },
		"removed":   func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, killed := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "data")
			r := open(t, resolver.Options{DataDir: dir, Now: fixed(noon)})
			for n := range 100 {
				mustAccept(t, r, fmt.Sprint(n), 100)
			}
			if err := os.CopyFS(killed, os.DirFS(dir)); err != nil { // as kill -9 leaves it
				t.Fatal(err)
			}
			logs, err := filepath.Glob(filepath.Join(killed, ledger.Folder, "*.log"))
			if err != nil || len(logs) != 1 {
				t.Fatal(logs, err)
			}
			b, err := os.ReadFile(logs[0])
			if err != nil {
				t.Fatal(err)
			}
			for len(b) > 0 && b[len(b)-1] == 0 { // preallocated space of the log
				b = b[:len(b)-1]
			}
			err = os.Remove(logs[0])
			if b = strike(b); b != nil && err == nil {
				err = os.WriteFile(logs[0], b, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			for start := range 2 {
				r, err := resolver.Open(resolver.Options{
					DataDir: killed, CacheBytes: testCacheBytes, Now: fixed(noon), Logger: quiet,
				})
				if err != nil {
					t.Fatal(err)
				}
				_, total, err := r.MailLogs(1, catalog.MailQuery{Page: 1, Limit: 1})
				if err != nil || (total == 100) != (name == "untouched") {
					t.Errorf("%d entries, %v", total, err)
				}
				lost := 100 - total
				if name == "removed" {
					lost++ // the record of reserved ids
				}
				switch gaps := r.MailGaps(); {
				case name == "untouched":
					if len(gaps) != 0 {
						t.Errorf("start %d: %+v", start, gaps)
					}
				case len(gaps) != 1 || !strings.Contains(gaps[0].Reason, fmt.Sprintf("the last %d writes", lost)):
					t.Errorf("start %d: of %d entries %+v", start, total, gaps)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
