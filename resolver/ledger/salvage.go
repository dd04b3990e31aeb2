package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/pebblefs"
)

// A damaged ledger that was moved aside may hold readable records. A Salvage puts them into the new ledger (restore.go):
// first what decides whether a mail is accepted and sent, then the log. A file in the moved directory marks it as done.
// If the process ends before that, the next start continues; a mail that was recovered and sent is not recovered again.

// salvageMark is the name of that file. It holds "begun" or "done".
const salvageMark = "mail-salvage"

// MovedAside lists the damaged ledgers that were moved aside, next to dir, and whose mail is not salvaged yet, the oldest
// first.
func MovedAside(dir string) (asides []string, err error) {
	if dir == "" {
		return nil, nil
	}
	found, err := filepath.Glob(filepath.Clean(dir) + pebblefs.DamagedInfix + "*")
	for _, aside := range found {
		mark, err := os.ReadFile(filepath.Join(aside, salvageMark))
		if string(mark) == "done\n" || err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if info, err := os.Stat(aside); err == nil && info.IsDir() {
			asides = append(asides, aside)
		}
	}
	slices.Sort(asides)
	return asides, err
}

// A Salvage copies the records of one damaged ledger. Call OpenSalvage, Copy, CopyLog, then Close.
type Salvage struct {
	to      *Ledger
	from    *rows   // has none if nothing can be read
	aside   string  // its folder
	refused []int64 // see OpenSalvage
	bound   int64   // of its mail ids
	gap     MailGap
	began   time.Time
}

// OpenSalvage opens a damaged ledger that was moved aside. The mails that were refused are not recovered: their AcceptMail
// failed, but the damaged ledger may hold them. If its folder is not writable, it is left alone: nothing would keep its
// mail from being sent again at every start. OpenSalvage waits for the lock of the folder, which an instance that failed
// releases a moment later; its only error is that of ctx.
func (l *Ledger) OpenSalvage(ctx context.Context, aside string, refused []int64, log *slog.Logger) (*Salvage, error) {
	v := &Salvage{to: l, from: &rows{}, aside: aside, refused: refused, began: time.Now(),
		gap: MailGap{MovedTo: filepath.Base(aside), Complete: true}}
	if err := v.mark("begun\n"); err != nil {
		v.lacks(fmt.Errorf("its folder cannot be written: %w", pebblefs.WithoutPath(err)))
		return v, nil
	}
	// Pebble finds out whether a file is missing. It is not asked for rows: its iterators end at the first bad block.
	from, err := Open(aside, Options{Logger: log, ReadOnly: true, damaged: true})
	for ; errors.Is(err, ErrLocked); from, err = Open(aside, Options{Logger: log, ReadOnly: true, damaged: true}) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err == nil {
		err = from.Close()
	}
	if err != nil && !errors.Is(err, ErrNoStore) { // moved aside while empty, or with logs alone
		v.lacks(withoutDir(err))
	}
	rows, err := openRows(aside)
	if err != nil {
		v.lacks(pebblefs.WithoutPath(err))
		return v, nil
	}
	v.from = rows
	var number uint64
	state, err := rows.value(string(keyMailState))
	if err == nil {
		v.bound, number, err = decodeMailState(state)
	}
	if seen := readHighWater(filepath.Clean(aside)); err != nil && !errors.Is(err, errNoRow) {
		v.lacks(err)
	} else if seen > number {
		v.lacks(fmt.Errorf("its log has lost the last %d writes of mail", seen-number))
	}
	return v, nil
}

// withoutDir removes the path from an error of Open.
func withoutDir(err error) error {
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "open ") {
		return inner
	}
	return err
}

func (v *Salvage) mark(text string) error {
	f, err := pebblefs.OpenPrivate(filepath.Join(v.aside, salvageMark), os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close(), pebblefs.SyncDir(v.aside))
}

// lacks records that something could not be recovered, and the first reason.
func (v *Salvage) lacks(err error) {
	if v.gap.Complete {
		first, _, _ := strings.Cut(err.Error(), "\n") // Pebble describes the damage in many lines
		v.gap.Complete, v.gap.Reason = false, strings.ReplaceAll(first, v.aside, filepath.Base(v.aside))
	}
}

// Close stores the result in the new ledger, and marks the moved folder as done.
func (v *Salvage) Close(now time.Time) (MailGap, error) {
	for _, problem := range v.from.problems {
		v.lacks(pebblefs.WithoutPath(problem))
	}
	v.gap.Found = now
	err := v.Abandon()
	if !v.gap.Complete || v.gap.Entries > 0 {
		err = errors.Join(err, v.to.NoteGap(&v.gap))
	}
	if err = errors.Join(err, v.to.sync()); err != nil {
		return v.gap, fmt.Errorf("salvage mail: %w", err)
	}
	_ = v.mark("done\n") // if that fails, the next start finds everything copied
	return v.gap, nil
}

// Abandon closes the damaged ledger; the next start repeats the work.
func (v *Salvage) Abandon() error { return v.from.close() }
