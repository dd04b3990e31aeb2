package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/pebblefs"
)

// TestSalvageLeavesOut: a mail that was refused to its sender is not recovered from a damaged store, nor is its key.
func TestSalvageLeavesOut(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	before, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const mails, refused = 3, 2
	at := func(id int64) time.Time { return mailEpoch.Add(time.Duration(id) * time.Second) }
	for id := int64(1); id <= mails; id++ {
		log, mail := newMail(1, id, at(id))
		if _, err := before.AcceptMail(log, mail, idempotencyOf(log, fmt.Sprint("key-", id)), mailEpoch); err != nil {
			t.Fatal(err)
		}
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	aside := dir + ".damaged-1"
	if err := os.Rename(dir, aside); err != nil {
		t.Fatal(err)
	}
	s := mailStore(t, dir, Options{})
	v, err := s.OpenSalvage(t.Context(), aside, []int64{refused}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Copy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := v.CopyLog(t.Context()); err != nil {
		t.Fatal(err)
	}
	if gap, err := v.Close(mailEpoch); err != nil || gap.Entries != mails-1 || gap.Queued != mails-1 || !gap.Complete {
		t.Errorf("%+v, %v", gap, err)
	}
	for id := int64(1); id <= mails; id++ {
		_, entry, err1 := s.MailLog(1, id)
		_, queued, err2 := s.QueuedMail(id)
		key, kept, err3 := s.Idempotency(1, fmt.Sprint("key-", id), mailEpoch)
		if want := id != refused; entry != want || queued != want || kept != want || err1 != nil || err2 != nil || err3 != nil {
			t.Errorf("mail %d: entry %v, queued %v, key %v %v, want %v; %v, %v, %v", id, entry, queued, kept, key, want, err1, err2, err3)
		}
	}
}

// TestSalvageCommits: the trail of a damaged ledger keeps the commits of its writes. One that was made anew after an
// attempt that did not end stays as it is.
func TestSalvageCommits(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	before, err := Open(dir, Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	var writes []catalog.WriteCommit
	for i := range 3 {
		e := auditEntry(i)
		e.RequestID = fmt.Sprint("r", i)
		appendAll(t, before, e)
		writes = append(writes, catalog.WriteCommit{RequestID: e.RequestID, Generation: e.Generation, Commit: fmt.Sprint("c", i)})
	}
	if err := errors.Join(before.Committed(writes), before.Close(), os.Rename(dir, dir+".damaged-1")); err != nil {
		t.Fatal(err)
	}
	l := mailStore(t, dir, Options{Logger: quiet})
	for range 2 {
		v, err := l.OpenSalvage(t.Context(), dir+".damaged-1", nil, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(v.Copy(t.Context()), v.Abandon(), l.MoveCommits(map[string]string{"c1": "d1"})); err != nil || !v.gap.Complete {
			t.Fatal(v.gap, err)
		}
		page, err := l.Audit(catalog.AuditQuery{Ascending: true, Limit: 10})
		if err != nil || len(page.Entries) != 3 {
			t.Fatalf("%+v, %v", page, err)
		}
		for i, want := range []string{"c0", "d1", "c2"} {
			if got := page.Entries[i].Commit; got != want {
				t.Errorf("entry %d has the commit %q, want %q", i+1, got, want)
			}
		}
		if check := verified(t, l, [32]byte{}); check.Broken != nil {
			t.Error(check.Broken)
		}
	}
}

// TestSalvageFileByFile removes, and damages, each file of a ledger: the content of all other files is recovered, so
// that a lost MANIFEST, OPTIONS, marker or empty log costs nothing.
func TestSalvageFileByFile(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ledger")
	const mails, starts = 90, 3
	at := func(id int64) time.Time { return mailEpoch.Add(time.Duration(id) * time.Second) }
	for start := range int64(starts) { // each makes a table of the previous log
		l, err := Open(dir, Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		for id := start*mails/starts + 1; id <= (start+1)*mails/starts; id++ {
			log, mail := newMail(1, id, at(id))
			if _, err := l.AcceptMail(log, mail, idempotencyOf(log, fmt.Sprint("key-", id)), mailEpoch); err != nil {
				t.Fatal(err)
			}
			if id%3 > 0 {
				log.Status = catalog.MailSent
				if err := l.UpdateMail(log); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, e := range names {
		if !pebblefs.IsStoreFile(e.Name()) {
			continue
		}
		files++
		data := strings.HasSuffix(e.Name(), ".sst") || strings.HasSuffix(e.Name(), ".log")
		for _, flip := range []bool{false, true} {
			what := fmt.Sprintf("%s, flipped %v", e.Name(), flip)
			top := t.TempDir()
			aside := filepath.Join(top, "ledger.damaged-1")
			if err := os.CopyFS(aside, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(aside, e.Name())
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case !flip:
				err = os.Remove(name)
			case len(b) > 0:
				b[len(b)/2] ^= 0x55
				err = os.WriteFile(name, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			l := mailStore(t, filepath.Join(top, "ledger"), Options{Logger: quiet})
			v, err := l.OpenSalvage(t.Context(), aside, nil, quiet)
			if err != nil {
				t.Fatal(what, err)
			}
			if err := errors.Join(v.Copy(t.Context()), v.CopyLog(t.Context())); err != nil {
				t.Fatal(what, err)
			}
			gap, err := v.Close(mailEpoch)
			if err != nil {
				t.Fatal(what, err)
			}
			t.Logf("%s: %+v", what, gap)
			if !data && (gap.Entries != mails || gap.Queued != mails/3 || gap.Lost != 0) {
				t.Errorf("%s: %+v", what, gap)
			}
			if strings.HasSuffix(e.Name(), ".sst") && !flip && (gap.Complete || gap.Entries < mails/starts) {
				t.Errorf("%s: %+v", what, gap)
			}
			for id := int64(1); id <= mails; id++ {
				log, found, err := l.MailLog(1, id)
				_, queued, queuedErr := l.QueuedMail(id)
				if err != nil || queuedErr != nil || queued && (log.Status.Ended() || !found) {
					t.Errorf("%s: mail %d is %s, queued %v, %v, %v", what, id, log.Status, queued, err, queuedErr)
				}
				if queued && id%3 > 0 && !log.Uncertain {
					t.Errorf("%s: mail %d was sent, and would be sent again as one that was not", what, id)
				}
			}
			if err := l.Verify(); err != nil {
				t.Error(what, err)
			}
			l.Close()
		}
	}
	if files < 6 {
		t.Errorf("%d files are too few", files)
	}
}

var quiet = slog.New(slog.DiscardHandler)
