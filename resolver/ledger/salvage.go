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

// A damaged ledger that was moved aside may have mail in it that can still be read. Salvage copies that into the ledger that
// has taken its place: the idempotency keys and the queue first, then the log. A file in the moved directory marks it as
// done. A process that ends before goes on with the next start, and a mail that was recovered and sent is not recovered
// again. The mail of a store of an earlier release, which has no ledger, is copied in the same way.

// salvageMark is that file. It holds "begun" or "done".
const salvageMark = "mail-salvage"

// MovedAside lists what was moved aside next to dir and has mail that has yet to be salvaged, the oldest first: damaged
// ledgers, or the damaged stores of an earlier release.
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

// WithoutMail marks a directory as one that has no mail to be salvaged.
func WithoutMail(aside string) error { return (&Salvage{aside: aside}).mark("done\n") }

// Rows are the records of mail in another database, which has them under the same keys.
type Rows interface {
	// Each calls f with all keys that begin with prefix, in order, until f returns an error. Key and value are valid within
	// the call.
	Each(prefix byte, f func(key, value []byte) error) error
	// Get calls f with the value of a key, if there is one.
	Get(key []byte, f func(value []byte) error) (found bool, err error)
}

// A Salvage copies the mail of one other database. Open it, call LeaveOut, Queue, then Log, then Close.
type Salvage struct {
	to      *Ledger
	rows    Rows // nil: nothing can be read
	end     func() error
	files   *salvage.Rows  // rows, where the database does not open and its files are read one by one
	aside   string         // "" for a store that is in use
	refused map[int64]bool // see LeaveOut
	gap     MailGap
}

// LeaveOut names mails that are not to be recovered, since their senders have been told that they were refused: their
// AcceptMail has failed at a moment at which the damaged store may have taken them.
func (v *Salvage) LeaveOut(ids []int64) {
	v.refused = make(map[int64]bool, len(ids))
	for _, id := range ids {
		v.refused[id] = true
	}
}

// OpenSalvage opens a damaged store that was moved aside, as far as that can be done. Where not even its folder can be
// written, it is left alone: nothing would keep its mail from being sent with every start. The only error is ErrLocked.
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

// TakeOver begins to copy the mail of a store that an earlier release has filled and that is in use in dir.
func (l *Ledger) TakeOver(rows Rows) *Salvage {
	return &Salvage{to: l, rows: rows, gap: MailGap{Complete: true}}
}

// Former is a store that an earlier release has filled with mail. Drop deletes that from it, on the disk.
type Former interface {
	Rows
	Drop() error
}

// TakeOverAll copies the mail of a store that nobody uses, deletes it there, and notes that.
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

// MissingIn tells how many of the last writes of mail that were acknowledged are not in rows, which lie in dir.
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

// mailFirst and mailEnd bound the keys of mail. Those of an old store's other rows have small letters.
var mailFirst, mailEnd = []byte{'A'}, []byte{'a'}

// readFiles reads the files of a database that does not open, which cause says why.
func (v *Salvage) readFiles(cause error) {
	if !errors.Is(cause, ErrNoStore) { // moved while it was empty, or with logs alone
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

// withoutDir drops what Open says of the path.
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

// lacks notes that something could not be recovered, and the first reason.
func (v *Salvage) lacks(err error) {
	if v.gap.Complete {
		first, _, _ := strings.Cut(err.Error(), "\n") // Pebble goes on about the damage for lines
		v.gap.Complete, v.gap.Reason = false, strings.ReplaceAll(first, v.aside, filepath.Base(v.aside))
	}
}

// Queue copies the bound of ids, the idempotency keys and the mails that were queued; until it has returned, a mail may be
// accepted twice. An error is the new store's.
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

// queued copies one mail. An entry that cannot be read is made anew, as far as message and envelope tell: the mail matters
// more. Whether it was just being sent is not known then.
func (v *Salvage) queued(id int64, q *queued) error {
	message, err := v.value(appendQueueKey(nil, prefixMessage, id))
	if err != nil {
		v.lacks(err)
		return nil // Log ends it
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
		return nil // Log copies it: the deletion of the queued mail was in a file that cannot be read
	}
	log.Uncertain = log.Uncertain || v.files != nil // as that of its attempts may have been
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

// gaps copies the notes of what was missing before.
func (v *Salvage) gaps(ctx context.Context) error {
	return v.each(ctx, prefixGap, func(_, rec []byte) error {
		gap, err := decodeGap(rec)
		if err != nil {
			return err
		}
		return v.to.NoteGap(&gap)
	})
}

// Log copies the notes of gaps and the log. A mail that had not ended and is not in the queue has lost its message: it ends as FAILED.
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

// Close notes in the new store what came out, and in the moved folder that it is done with.
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
		_ = v.mark("done\n") // where that fails, the next start finds that all is there
	}
	return v.gap, nil
}

// Abandon closes the damaged store, and leaves the work to be done again.
func (v *Salvage) Abandon() error {
	if v.end == nil {
		return nil
	}
	return v.end()
}

// copyKey stores what was kept under an idempotency key, where nothing is.
func (l *Ledger) copyKey(i *catalog.Idempotency) error {
	return l.writeMail(l.newBatch(), mailSubject{}, func(t *mailTurn) error {
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

// copyMail stores an entry, and its message where m is not nil, unless there is one with its id and time. A later write
// has to sync it.
func (l *Ledger) copyMail(log *catalog.MailLog, m *catalog.QueuedMail) (copied bool, err error) {
	done := make(chan bool, 1)
	pos, status := posOf(log.CreatedAt, log.ID), statusCode(log.Status)
	err = l.writeMail(l.newBatch(), mailSubject{}, func(t *mailTurn) error {
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

// each calls f with all keys of a prefix that can be read. What f cannot decode is left out; errors of the new ledger, and
// the context's, end it.
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

// damagedRows are those of a ledger that can be read in part. lacks is told of what cannot be read.
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
	defer it.Close() // its errors were dealt with
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

// seekWidth is how many bytes of a key behind its prefix seekBehind counts with.
const seekWidth = 24

// seekUnit is the lowest bit of those by which keys of a prefix differ: of an id, of a microsecond, of what a text begins
// with.
func seekUnit(prefix byte) uint {
	switch prefix {
	case prefixQueue:
		return 128
	case prefixMailLog:
		return 64
	}
	return 32
}

// seekBehind puts the iterator on the first key that can be read behind what cannot, which begins behind at. How far that
// reaches nobody knows: growing steps find a place that can be read, and halving them one near the first. There are few
// steps of each, because Pebble takes its time over a block that is damaged.
func seekBehind(it *pebble.Iterator, at []byte) bool {
	key := append(make([]byte, 0, 1+seekWidth), at[0])
	key = append(key, make([]byte, seekWidth)...)
	copy(key[1:], at[1:])
	start := new(big.Int).SetBytes(key[1:])
	readable := func(n *big.Int) bool {
		n.FillBytes(key[1:])
		if !it.SeekGE(key) {
			return it.Error() == nil // there is nothing more
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
