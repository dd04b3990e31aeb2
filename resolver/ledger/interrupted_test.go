package ledger

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// endsAfter is a context that ends when it was asked a number of times.
type endsAfter struct {
	context.Context
	left int
}

func (c *endsAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestSalvageInterrupted interrupts a salvage after each of its records, and opens the new ledger again: the next attempt
// ends with the same records as one that was not interrupted.
func TestSalvageInterrupted(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	aside := filepath.Join(t.TempDir(), "ledger.damaged-1")
	before, err := Open(aside, Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for id := int64(1); id <= 6; id++ {
		log, mail := newMail(1+id%2, id, mailEpoch.Add(time.Duration(id)*time.Second))
		_, err = before.AcceptMail(log, mail, idempotencyOf(log, fmt.Sprint("key-", id)), mailEpoch)
		if id%3 == 0 && err == nil {
			log.Status = catalog.MailSent
			err = before.UpdateMail(log)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var writes []catalog.WriteCommit
	for i := range 9 {
		e := auditEntry(i)
		e.RequestID = fmt.Sprint("r", i)
		appendAll(t, before, e)
		writes = append(writes, catalog.WriteCommit{RequestID: e.RequestID, Generation: e.Generation, Commit: fmt.Sprint("c", i)})
	}
	err = errors.Join(before.Committed(writes), before.SetNamed(map[string][]byte{"a": {1}, "b": {2}}),
		before.ChangeDomainNotes([]DomainNote{{catalog.UUID{7}, "acme.example", []byte("note")}}),
		before.NoteGap(&MailGap{MovedTo: "ledger.damaged-0", Found: mailEpoch}), before.Close())
	if err != nil {
		t.Fatal(err)
	}
	attempt := func(ctx context.Context, dir string) (err error) {
		l, err := Open(dir, Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		v, err := l.OpenSalvage(t.Context(), aside, nil, quiet)
		if err == nil {
			err = v.Copy(ctx)
		}
		if err == nil {
			err = v.CopyLog(ctx)
		}
		if err != nil {
			return errors.Join(err, v.Abandon())
		}
		_, err = v.Close(mailEpoch)
		return err
	}
	records := func(dir string) (all map[string]string) {
		l, err := Open(dir, Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		all = map[string]string{}
		err = l.scan(span{lower: firstRecord, upper: endRecord}, func(key, rec []byte) error {
			if key[0] != prefixMailState && string(key) != "G"+filepath.Base(aside) { // how many writes, and how many copies
				all[string(key)] = string(rec)
			}
			return nil
		})
		check := verified(t, l, [32]byte{})
		if err = errors.Join(err, l.Verify(), l.Close()); err != nil || check.Broken != nil || len(check.Gaps) > 0 {
			t.Fatal(err, check)
		}
		return all
	}
	whole := filepath.Join(t.TempDir(), "ledger")
	if err := attempt(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	want := records(whole)
	const least = 6 + 4 + 9 + 9 + 2 + 1 + 6 + 1 // keys, queue, entries of the trail, commits, values, note, log, gap
	step := 4
	if testrig.IsThorough() {
		step = 1
	}
	for n := 0; ; n += step {
		dir := filepath.Join(t.TempDir(), "ledger")
		err := attempt(&endsAfter{t.Context(), n}, dir)
		if err == nil {
			if n < least {
				t.Errorf("a salvage of %d records", n)
			}
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := attempt(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		got := records(dir)
		for key := range want {
			if got[key] != want[key] {
				t.Errorf("interrupted after %d: %q is %q, want %q", n, key, got[key], want[key])
			}
		}
		if len(got) != len(want) {
			t.Errorf("interrupted after %d: %d records, want %d", n, len(got), len(want))
		}
	}
}
