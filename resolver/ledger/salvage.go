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

// A Salvage copies the mail of one damaged ledger. Call OpenSalvage, LeaveOut, Queue, Log, then Close.
type Salvage struct {
	to      *Ledger
	files   *salvage.Rows  // nil: nothing can be read
	aside   string         // its folder
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
	if n, err := v.missing(); err == nil && n > 0 {
		v.lacks(fmt.Errorf("its log has lost the last %d writes of mail", n))
	}
	return v, nil
}

// missing returns how many of the last acknowledged mail writes the damaged ledger lacks.
func (v *Salvage) missing() (missing uint64, err error) {
	var number uint64
	_, err = v.files.Get(keyMailState, func(value []byte) (err error) {
		_, number, err = decodeMailState(value)
		return err
	})
	if seen := readHighWater(filepath.Clean(v.aside)); err == nil && seen > number {
		missing = seen - number
	}
	return missing, err
}

// mailFirst and mailEnd bound the keys of records; the layout's own begin with a small letter.
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
	if !v.gap.Complete || v.gap.Entries > 0 {
		err = errors.Join(err, v.to.NoteGap(&v.gap))
	}
	err = errors.Join(err, v.to.sync())
	if err != nil {
		return v.gap, fmt.Errorf("salvage mail: %w", err)
	}
	_ = v.mark("done\n") // if that fails, the next start finds everything copied
	return v.gap, nil
}

// Abandon closes the damaged database; the next start repeats the work.
func (v *Salvage) Abandon() error {
	if v.files == nil {
		return nil
	}
	return v.files.Close()
}
