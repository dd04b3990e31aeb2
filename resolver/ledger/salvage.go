package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger/salvage"
	"fingerpost/resolver/pebblefs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A damaged ledger that was moved aside may hold readable mail. Salvage copies it into the new ledger: the idempotency
// keys and the queue first, then the log. A file in the moved directory marks it as done. If the process ends before
// that, the next start continues; a mail that was recovered and sent is not recovered again. The mail in the store of
// an earlier release, which has no ledger, is copied the same way.

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

// Rows are the mail records of another database, under the same keys.
type Rows interface {
	// Each calls f with all keys that begin with prefix, in order, until f returns an error. Key and value are valid
	// within the call.
	Each(prefix byte, f func(key, value []byte) error) error
	// Get calls f with the value of a key, if there is one.
	Get(key []byte, f func(value []byte) error) (found bool, err error)
}

// A Salvage copies the mail of one other database. Call OpenSalvage, LeaveOut, Queue, Log, then Close.
type Salvage struct {
	to      *Ledger
	rows    Rows // nil: nothing can be read
	end     func() error
	files   *salvage.Rows  // rows, if the database does not open and its files are read one by one
	aside   string         // "" for a store that is in use
	refused map[int64]bool // see LeaveOut
	gap     MailGap
}

// LeaveOut names mails that must not be recovered, because their senders got a refusal: their AcceptMail failed, but
// the damaged store may hold them.
func (v *Salvage) LeaveOut(ids []int64) {
	v.refused = make(map[int64]bool, len(ids))
	for _, id := range ids {
		v.refused[id] = true
	}
}

// OpenSalvage opens a damaged store that was moved aside, as far as possible. If its folder is not writable, it is left
// alone: nothing would keep its mail from being sent again at every start. The only error is ErrLocked.
func (l *Ledger) OpenSalvage(aside string, log *slog.Logger) (*Salvage, error) {
	v := &Salvage{to: l, aside: aside, gap: MailGap{MovedTo: filepath.Base(aside), Complete: true}}
	if err := v.mark("begun\n"); err != nil {
		v.lacks(fmt.Errorf("its folder cannot be written: %w", pebblefs.WithoutPath(err)))
		return v, nil
	}
	from, err := Open(aside, Options{Logger: log, ReadOnly: true, damaged: true})
	switch {
	case errors.Is(err, ErrLocked):
		return nil, err
	case err != nil:
		v.readFiles(err)
	default:
		v.rows, v.end = damagedRows{from, v.lacks}, from.Close
		if n := from.MailMissing(); n > 0 {
			v.lacks(fmt.Errorf("its log has lost the last %d writes of mail", n))
		}
	}
	return v, nil
}

// TakeOver starts to copy the mail from the store of an earlier release that is in use.
func (l *Ledger) TakeOver(rows Rows) *Salvage {
	return &Salvage{to: l, rows: rows, gap: MailGap{Complete: true}}
}

// Former is a store with mail of an earlier release. Drop deletes that mail durably.
type Former interface {
	Rows
	Drop() error
}

// TakeOverAll copies the mail from a store that is not in use, deletes it there, and records that.
func (l *Ledger) TakeOverAll(former Former, now time.Time) error {
	v := l.TakeOver(former)
	err := v.Queue(context.Background())
	if err == nil {
		err = v.Log(context.Background())
	}
	if err == nil {
		_, err = v.Close(now)
	}
	if err == nil {
		err = former.Drop()
	}
	if err == nil {
		err = l.Settle()
	}
	return err
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

// readFiles reads the files of a database that does not open; cause is the reason.
func (v *Salvage) readFiles(cause error) {
	if !errors.Is(cause, ErrNoStore) { // moved aside while empty, or with logs alone
		v.lacks(withoutDir(cause))
	}
	files, err := salvage.Open(vfs.Default, v.aside, mailFirst, mailEnd)
	if err != nil {
		v.lacks(pebblefs.WithoutPath(err))
		return
	}
	for _, problem := range files.Problems() {
		v.lacks(pebblefs.WithoutPath(problem))
	}
	v.rows, v.end, v.files = files, files.Close, files
	if n, err := MissingIn(v.aside, files); err == nil && n > 0 {
		v.lacks(fmt.Errorf("its log has lost the last %d writes of mail", n))
	}
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

// Queue copies the bound of ids, the idempotency keys and the queued mails; until it returns, a mail may be accepted
// twice. Errors are those of the new ledger.
func (v *Salvage) Queue(ctx context.Context) error {
	if v.rows == nil {
		return nil
	}
	var bound int64
	_, err := v.rows.Get(keyMailState, func(value []byte) (err error) {
		bound, _, err = decodeMailState(value)
		return err
	})
	if err != nil {
		v.lacks(err)
	} else if bound > v.to.MailIDBound() {
		if err := v.to.ReserveMailIDs(bound, false); err != nil {
			return err
		}
	}
	err = v.each(ctx, prefixIdempotency, func(key, rec []byte) error {
		if len(key) < 9 {
			return errRecord
		}
		project, err := lastID(key[:9])
		if err != nil {
			return err
		}
		i, err := decodeIdempotency(project, string(key[9:]), rec)
		if err != nil || v.refused[i.LogID] {
			return err
		}
		return v.to.copyKey(i)
	})
	if err != nil {
		return err
	}
	return v.each(ctx, prefixQueue, func(key, rec []byte) error {
		id, err := lastID(key)
		if err != nil || v.refused[id] {
			return err
		}
		q, err := decodeQueued(rec)
		if err != nil {
			return err
		}
		return v.queued(id, &q)
	})
}

// queued copies one mail. It recreates an unreadable entry from message and envelope, because the mail matters more. It
// is unknown then whether the mail was being sent.
func (v *Salvage) queued(id int64, q *queued) error {
	message, err := v.value(appendQueueKey(nil, prefixMessage, id))
	if err != nil {
		v.lacks(err)
		return nil // Log will finish it
	}
	pos := posOf(q.created, id)
	log := catalog.MailLog{
		ID: id, ProjectID: q.project, ProviderType: catalog.ProviderSMTP, ToEmail: q.to, CreatedAt: pos.created(),
		Status: catalog.MailRetrying, Uncertain: true,
	}
	rec, err := v.value(appendMailKey(nil, q.project, pos))
	if err == nil {
		err = decodeMailLog(&log, q.project, pos, rec)
	}
	if v.files != nil && log.Status.Ended() {
		return nil // Log will copy it: the deletion of the queued mail was in an unreadable file
	}
	log.Uncertain = log.Uncertain || v.files != nil // a record of its attempts may be unreadable, too
	if err != nil {
		v.lacks(err)
		if m, err := mail.ReadMessage(bytes.NewReader(message)); err == nil {
			log.MessageID, log.Subject = m.Header.Get("Message-Id"), m.Header.Get("Subject")
		}
	}
	m := q.mail(id)
	m.Message = message
	copied, err := v.to.copyMail(&log, &m)
	if copied {
		v.gap.Entries++
		v.gap.Queued++
	}
	return err
}

// gaps copies the records of earlier gaps.
func (v *Salvage) gaps(ctx context.Context) error {
	return v.each(ctx, prefixGap, func(_, rec []byte) error {
		gap, err := decodeGap(rec)
		if err != nil {
			return err
		}
		return v.to.NoteGap(&gap)
	})
}

// Log copies the records of gaps and the log. A mail that was not final and is not in the queue has lost its message:
// it becomes FAILED.
func (v *Salvage) Log(ctx context.Context) error {
	if v.rows == nil {
		return nil
	}
	if err := v.gaps(ctx); err != nil {
		return err
	}
	return v.each(ctx, prefixMailLog, func(key, rec []byte) error {
		var log catalog.MailLog
		pos, err := posIn(key)
		if err != nil || len(key) != len(appendMailKey(nil, 0, pos)) {
			return errRecord
		}
		project, err := lastID(key[:9])
		if err != nil {
			return err
		}
		if err := decodeMailLog(&log, project, pos, bytes.Clone(rec)); err != nil || v.refused[log.ID] {
			return err
		}
		lost := !log.Status.Ended()
		if lost {
			log.Status, log.NextAttemptAt = catalog.MailFailed, log.SentAt
			log.ErrorCode, log.ErrorMessage = catalog.CodeInternal, "the message was lost with a damaged store"
		}
		copied, err := v.to.copyMail(&log, nil)
		if copied {
			v.gap.Entries++
			if lost {
				v.gap.Lost++
				v.lacks(errors.New("messages of queued mails cannot be read"))
			}
		}
		return err
	})
}

// Close stores the result in the new ledger, and marks the moved folder as done.
func (v *Salvage) Close(now time.Time) (MailGap, error) {
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

// Abandon closes the damaged store; the next start repeats the work.
func (v *Salvage) Abandon() error {
	if v.end == nil {
		return nil
	}
	return v.end()
}

// copyKey stores the record of an idempotency key, unless one exists.
func (l *Ledger) copyKey(i *catalog.Idempotency) error {
	return l.writeMail(l.newBatch(), func(t *mailTurn) error {
		t.unsynced = true
		there, err := l.idempotency(expiringKey{i.ProjectID, i.Key})
		if err != nil || there != nil {
			t.idle = true
			return err
		}
		return errors.Join(t.b.Set(appendIdempotencyKey(nil, i.ProjectID, i.Key), appendIdempotency(nil, i), nil),
			t.b.Set(appendExpiryKey(nil, i.ExpiresAt, i.ProjectID, i.Key), nil, nil))
	})
}

// copyMail stores an entry, and its message if m is not nil, unless one with its id and time exists. A later write must
// sync it.
func (l *Ledger) copyMail(log *catalog.MailLog, m *catalog.QueuedMail) (copied bool, err error) {
	done := make(chan bool, 1)
	pos, status := posOf(log.CreatedAt, log.ID), statusCode(log.Status)
	err = l.writeMail(l.newBatch(), func(t *mailTurn) error {
		t.unsynced = true
		there, err := t.stored(log.ProjectID, pos)
		if err != nil || there != 0 {
			t.idle = true
			return err
		}
		done <- true
		t.bound = log.ID
		err = t.b.Set(appendMailKey(nil, log.ProjectID, pos), appendMailLog(nil, log), nil)
		if m != nil {
			q := queued{log.ProjectID, log.CreatedAt, m.From, m.To, m.ExpiresAt}
			err = errors.Join(err, t.b.Set(appendQueueKey(nil, prefixQueue, log.ID), appendQueued(nil, &q), nil),
				t.b.Set(appendQueueKey(nil, prefixMessage, log.ID), m.Message, nil))
		}
		return errors.Join(err, t.count(log.ProjectID, 0, status))
	})
	select {
	case copied = <-done:
	default:
	}
	return copied && err == nil, err
}

// value reads a key of the other database.
func (v *Salvage) value(key []byte) (value []byte, err error) {
	found, err := v.rows.Get(key, func(b []byte) error { value = bytes.Clone(b); return nil })
	if err == nil && !found {
		err = fmt.Errorf("%w: a record is missing", ErrDamaged)
	}
	return value, err
}

// each calls f with all readable keys of a prefix. Records that f cannot decode are skipped; errors of the new ledger,
// and of the context, end it.
func (v *Salvage) each(ctx context.Context, prefix byte, f func(key, rec []byte) error) error {
	return v.rows.Each(prefix, func(key, rec []byte) error {
		if err := f(key, rec); errors.Is(err, errRecord) || errors.Is(err, ErrNewer) {
			v.lacks(err)
		} else if err != nil {
			return err
		}
		return ctx.Err()
	})
}

// damagedRows are the rows of a partly readable ledger. It reports unreadable parts to lacks.
type damagedRows struct {
	from  *Ledger
	lacks func(error)
}

func (d damagedRows) Get(key []byte, f func(value []byte) error) (bool, error) {
	return now{d.from.db}.get(key, f)
}

func (d damagedRows) Each(prefix byte, f func(key, rec []byte) error) error {
	it, err := d.from.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefix}, UpperBound: []byte{prefix + 1}})
	if err != nil {
		d.lacks(err)
		return nil
	}
	defer it.Close() // its errors were handled
	at := []byte{prefix}
	for ok := it.First(); ; {
		for ; ok; ok = it.Next() {
			rec, err := it.ValueAndErr()
			if err != nil {
				break
			}
			at = append(at[:0], it.Key()...)
			if err := f(at, rec); err != nil {
				return err
			}
		}
		if ok = false; it.Error() == nil && !it.Valid() {
			return nil
		}
		d.lacks(fmt.Errorf("part of it cannot be read: %w", joined(it.Error(), errRecord)))
		if ok = seekBehind(it, at); !ok {
			return nil
		}
	}
}

// seekWidth is the number of key bytes behind the prefix that seekBehind computes with.
const seekWidth = 24

// seekUnit is the lowest bit in which keys of a prefix differ: of an id, of a microsecond, of the beginning of a text.
func seekUnit(prefix byte) uint {
	switch prefix {
	case prefixQueue:
		return 128
	case prefixMailLog:
		return 64
	}
	return 32
}

// seekBehind moves the iterator to the first readable key behind an unreadable range that begins behind at. The length
// of the range is unknown: growing steps find a readable place, then halving steps one near the first. There are few
// steps of each kind, because Pebble is slow on a damaged block.
func seekBehind(it *pebble.Iterator, at []byte) bool {
	key := append(make([]byte, 0, 1+seekWidth), at[0])
	key = append(key, make([]byte, seekWidth)...)
	copy(key[1:], at[1:])
	start := new(big.Int).SetBytes(key[1:])
	readable := func(n *big.Int) bool {
		n.FillBytes(key[1:])
		if !it.SeekGE(key) {
			return it.Error() == nil // no keys are left
		}
		_, err := it.ValueAndErr()
		return err == nil
	}
	limit := new(big.Int).Lsh(big.NewInt(1), 8*seekWidth)
	low, high := start, new(big.Int)
	for shift := seekUnit(at[0]); ; shift += 3 {
		if high = new(big.Int).Add(start, new(big.Int).Lsh(big.NewInt(1), shift)); high.Cmp(limit) >= 0 {
			return false
		}
		if readable(high) {
			break
		}
		low = high
	}
	for range 12 {
		middle := new(big.Int).Add(low, high)
		if middle.Rsh(middle, 1); readable(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return readable(high) && it.Valid()
}
