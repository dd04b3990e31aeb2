package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/ledger/salvage"
	"fingerpost/resolver/pebblefs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A damaged ledger that was moved aside may hold readable mail. Salvage copies it into the new ledger: the idempotency
// keys and the queue first, then the log. A file in the moved directory marks it as done. If the process ends before
// that, the next start continues; a mail that was recovered and sent is not recovered again.

// salvageMark is the name of that file. It holds "begun" or "done".
const salvageMark = "mail-salvage"

// MovedAside lists the directories next to dir, oldest first, that were moved aside and whose mail is not salvaged yet:
// damaged ledgers, or damaged stores of an earlier release.
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

// WithoutMail marks a directory as having no mail to salvage.
func WithoutMail(aside string) error { return (&Salvage{aside: aside}).mark("done\n") }

// A Salvage copies the mail of one other database. Call OpenSalvage, LeaveOut, Queue, Log, then Close.
type Salvage struct {
	to      *Ledger
	rows    Rows           // nil: nothing can be read
	files   *salvage.Rows  // rows, for a database that was moved aside
	aside   string         // its folder; "" for a store that is in use
	refused map[int64]bool // see LeaveOut
	gap     MailGap
	began   time.Time
}

// LeaveOut names mails that must not be recovered, because their senders got a refusal: their AcceptMail failed, but
// the damaged store may hold them.
func (v *Salvage) LeaveOut(ids []int64) {
	v.refused = make(map[int64]bool, len(ids))
	for _, id := range ids {
		v.refused[id] = true
	}
}

// OpenSalvage opens a damaged database that was moved aside. Its files are read one by one, so that damage to one costs
// no other. If its folder is not writable, it is left alone: nothing would keep its mail from being sent again at every
// start. The only error is ErrLocked.
func (l *Ledger) OpenSalvage(aside string, log *slog.Logger) (*Salvage, error) {
	v := &Salvage{to: l, aside: aside, began: time.Now(), gap: MailGap{MovedTo: filepath.Base(aside), Complete: true}}
	if err := v.mark("begun\n"); err != nil {
		v.lacks(fmt.Errorf("its folder cannot be written: %w", pebblefs.WithoutPath(err)))
		return v, nil
	}
	// Pebble finds out whether a file is missing. It is not asked for rows: its iterators end at the first bad block.
	from, err := Open(aside, Options{Logger: log, ReadOnly: true, damaged: true})
	if err == nil {
		err = from.Close()
	}
	if errors.Is(err, ErrLocked) {
		return nil, err
	}
	if err != nil && !errors.Is(err, ErrNoStore) { // moved aside while empty, or with logs alone
		v.lacks(withoutDir(err))
	}
	if v.files, err = salvage.Open(vfs.Default, aside, mailFirst, mailEnd); err != nil {
		v.lacks(pebblefs.WithoutPath(err))
		return v, nil
	}
	v.rows = v.files
	if n, err := MissingIn(aside, v.rows); err == nil && n > 0 {
		v.lacks(fmt.Errorf("its log has lost the last %d writes of mail", n))
	}
	return v, nil
}

// MissingIn returns how many of the last acknowledged mail writes are missing in rows, which are in dir.
func MissingIn(dir string, rows Rows) (missing uint64, err error) {
	var number uint64
	_, err = rows.Get(keyMailState, func(value []byte) (err error) {
		_, number, err = decodeMailState(value)
		return err
	})
	if seen := readHighWater(filepath.Clean(dir)); err == nil && seen > number {
		missing = seen - number
	}
	return missing, err
}

// ForgetMissing makes MissingIn return 0 from now on, for a store whose mail is in the ledger.
func ForgetMissing(dir string) { _ = os.Remove(filepath.Join(filepath.Clean(dir), highWaterFile)) }

// mailFirst and mailEnd bound the keys of mail. The other keys of an old store begin with small letters.
var mailFirst, mailEnd = []byte{'A'}, []byte{'a'}

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
	if v.files != nil {
		for _, problem := range v.files.Problems() {
			v.lacks(pebblefs.WithoutPath(problem))
		}
	}
	v.gap.Found = now
	err := v.Abandon()
	if !v.gap.Complete || v.gap.Entries > 0 && v.aside != "" {
		err = errors.Join(err, v.to.NoteGap(&v.gap))
	}
	err = errors.Join(err, v.to.sync())
	if err != nil {
		return v.gap, fmt.Errorf("salvage mail: %w", err)
	}
	if v.aside != "" {
		_ = v.mark("done\n") // if that fails, the next start finds everything copied
	}
	return v.gap, nil
}

// Abandon closes the damaged database; the next start repeats the work.
func (v *Salvage) Abandon() error {
	if v.files == nil {
		return nil
	}
	return v.files.Close()
}
