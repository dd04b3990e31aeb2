package ledger

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// The entries of a project's mail log lie in the order of createdAt and id. Beside them stand counts, so that a page far
// down is found, and how many there are is known, without walking through what is before it: a row counts up to maxTally
// entries that follow each other, from its start to that of the next one. Every batch that changes entries has their
// counts in it. Who needs them has a project's rows in memory, one for hundreds of entries: the rows of a busy project
// are written so often that to look for one among its older versions takes longer than all else.
const maxTally = 512

// maxIndexed is how many projects have their rows in memory.
const maxIndexed = 10_000

// A tally is one row of the counts.
type tally struct {
	start mailPos // of the first entry, or before it where that was deleted
	// Bounds of the entries' ids, wider than need be where some were deleted. Nearly always those of two rows do not
	// overlap, since ids rise with time as createdAt does, but for clocks that were set back.
	minID, maxID int64
	states       [len(statusCodes) - 1]uint32 // entries by status code, from 1 on
}

func appendTally(dst []byte, t *tally) []byte {
	e := encoder{dst}
	e.byte(mailVersion)
	e.uint(uint64(t.minID))
	e.uint(uint64(t.maxID))
	for _, n := range t.states {
		e.uint(uint64(n))
	}
	return e.b
}

func decodeTally(start mailPos, rec []byte) (t tally, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return t, err
	}
	t = tally{start: start, minID: int64(d.uint()), maxID: int64(d.uint())}
	for i := range t.states {
		n := d.uint()
		if n > maxTally {
			d.fail()
		}
		t.states[i] = uint32(n)
	}
	return t, d.err()
}

// entries is how many there are in a state, or for 0 in all.
func (t *tally) entries(status byte) (n int) {
	if status != 0 {
		return int(t.states[status-1])
	}
	for _, k := range t.states {
		n += int(k)
	}
	return n
}

// open is how many have not reached their end.
func (t *tally) open() (n int) {
	for i, k := range t.states {
		if !statusCodes[i+1].Ended() {
			n += int(k)
		}
	}
	return n
}

// add counts an entry.
func (t *tally) add(id int64, status byte) {
	if t.entries(0) == 0 {
		t.minID, t.maxID = id, id
	}
	t.minID, t.maxID = min(t.minID, id), max(t.maxID, id)
	t.states[status-1]++
}

// covering returns the index of the row in which a place lies, -1 where it lies before all of them.
func covering(rows []tally, p mailPos) int {
	return sort.Search(len(rows), func(i int) bool { return p.before(rows[i].start) }) - 1
}

// loadTallies reads a project's rows. it is any iterator without bounds.
func loadTallies(it *pebble.Iterator, project int64) (rows []tally, err error) {
	prefix := appendID([]byte{prefixMailCount}, project)
	it.SetBounds(prefix, after(prefix))
	for ok := it.First(); ok; ok = it.Next() {
		start, err := posIn(it.Key())
		if err != nil {
			return nil, err
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		row, err := decodeTally(start, value)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, it.Error()
}

// A mailReader reads the counts and entries of one project as they are at one moment.
type mailReader struct {
	project int64
	rows    []tally
	it      *pebble.Iterator // over the project's entries
	key     []byte
}

// readMail calls f with a reader of the moment.
func (l *Ledger) readMail(project int64, f func(r *mailReader) error) error {
	return l.read(func() error {
		r := mailReader{project: project}
		var err error
		select {
		case l.mail.turn <- struct{}{}:
			if r.rows, err = l.tallies(project); err == nil {
				r.rows = slices.Clone(r.rows)
				r.it, err = l.db.NewIter(nil)
			}
			l.shedTallies()
			<-l.mail.turn
		case <-l.fs.Failed(): // who has the turn may keep it for ever
			if r.it, err = l.db.NewIter(nil); err == nil {
				r.rows, err = loadTallies(r.it, project)
			}
		}
		if r.it == nil {
			return err
		}
		prefix := appendID([]byte{prefixMailLog}, project)
		r.it.SetBounds(prefix, after(prefix))
		if err == nil {
			err = f(&r)
		}
		return errors.Join(err, r.it.Close())
	})
}

// tallies returns a project's rows as they are after the last turn; the caller has the turn.
func (l *Ledger) tallies(project int64) ([]tally, error) {
	if rows, there := l.mail.rows[project]; there {
		return rows, nil
	}
	it, err := l.db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	rows, err := loadTallies(it, project)
	if err = errors.Join(err, it.Close()); err != nil {
		return nil, err
	}
	l.mail.rows[project] = rows
	return rows, nil
}

// shedTallies keeps the rows in memory within their bound. The caller has the turn, and no batch in the making, which the rows
// may be ahead of.
func (l *Ledger) shedTallies() {
	for project := range l.mail.rows {
		if len(l.mail.rows) <= l.mail.indexed {
			return
		}
		delete(l.mail.rows, project)
	}
}

func (r *mailReader) logKey(p mailPos) []byte {
	r.key = appendMailKey(r.key[:0], r.project, p)
	return r.key
}

// each calls f with the entries of a row, in order.
func (r *mailReader) each(row *tally, f func(p mailPos, rec []byte) error) error {
	valid := r.it.SeekGE(r.logKey(row.start))
	for n := row.entries(0); n > 0; n-- {
		if !valid {
			return joined(r.it.Error(), errRecord)
		}
		p, err := posIn(r.it.Key())
		if err != nil {
			return err
		}
		rec, err := r.it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := f(p, rec); err != nil {
			return err
		}
		valid = r.it.Next()
	}
	return nil
}

// joined is err, or where that is nil, otherwise.
func joined(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// A mailWriter changes the counts of a project in a turn's batch and, together with it, in memory.
type mailWriter struct {
	mailReader
	l     *Ledger
	b     *pebble.Batch
	scans int // rows that were looked through

	unapplied bool // see mailTurn
}

// with runs f with a writer for a project.
func (t *mailTurn) with(project int64, f func(w *mailWriter) error) error {
	rows, err := t.l.tallies(project)
	if err != nil {
		return err
	}
	w := mailWriter{mailReader: mailReader{project: project, rows: rows}, l: t.l, b: t.b, unapplied: t.unapplied}
	t.touched = project
	err = f(&w)
	t.l.mail.rows[project] = w.rows
	if w.it != nil {
		err = errors.Join(err, w.it.Close())
	}
	return err
}

// entries makes each usable: most writes do without it.
func (w *mailWriter) entries() (err error) {
	if w.it != nil {
		return nil
	}
	prefix := appendID([]byte{prefixMailLog}, w.project)
	w.it, err = w.l.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	return err
}

func (w *mailWriter) countKey(p mailPos) []byte {
	w.key = appendCountKey(w.key[:0], w.project, p)
	return w.key
}

func (w *mailWriter) put(i int) error {
	var rec [64]byte
	return w.b.Set(w.countKey(w.rows[i].start), appendTally(rec[:0], &w.rows[i]), nil)
}

// mayHold is false where the counts say that there is no entry at a place: each has every entry's id within its bounds.
func (r *mailReader) mayHold(p mailPos) bool {
	i := covering(r.rows, p)
	return i >= 0 && r.rows[i].minID <= p.id() && p.id() <= r.rows[i].maxID
}

// insert counts an entry that is new, once in a batch.
func (w *mailWriter) insert(p mailPos, status byte) (err error) {
	i := covering(w.rows, p)
	full := len(w.rows) > 0 && w.rows[max(i, 0)].entries(0) >= w.l.mail.perRow
	switch {
	case full && w.unapplied:
		return errLater // split counts what is in the store
	case len(w.rows) == 0:
		i, w.rows = 0, append(w.rows, tally{start: p})
	case i < 0: // the first row reaches further back now
		i = 0
		err = w.b.Delete(w.countKey(w.rows[0].start), nil)
		w.rows[0].start = p
	}
	if err == nil && full {
		i, err = w.split(i, p)
	}
	if err != nil {
		return err
	}
	w.rows[i].add(p.id(), status)
	return w.put(i)
}

// split makes room for an entry at p in a row that is full, and returns the index of the row that is to count it.
func (w *mailWriter) split(i int, p mailPos) (int, error) {
	if err := w.entries(); err != nil {
		return 0, err
	}
	left, right := tally{start: w.rows[i].start}, tally{}
	var last mailPos
	err := w.each(&w.rows[i], func(at mailPos, rec []byte) error {
		status, err := storedStatus(rec)
		if err != nil {
			return err
		}
		half := &left
		if left.entries(0) >= w.l.mail.perRow/2 {
			if half = &right; right.entries(0) == 0 {
				right.start = at
			}
		}
		half.add(at.id(), status)
		last = at
		return nil
	})
	if err != nil {
		return 0, err
	}
	if last.before(p) { // as nearly always: what comes next begins a row of its own
		left, right = w.rows[i], tally{start: p}
	}
	w.rows[i] = left
	w.rows = slices.Insert(w.rows, i+1, right)
	if p.before(right.start) {
		return i, w.put(i + 1)
	}
	return i + 1, w.put(i)
}

// move counts an entry whose status has changed; to is 0 for one that goes.
func (w *mailWriter) move(p mailPos, from, to byte) error {
	i := covering(w.rows, p)
	if i < 0 || w.rows[i].states[from-1] == 0 {
		return errRecord
	}
	w.rows[i].states[from-1]--
	if to != 0 {
		w.rows[i].states[to-1]++
	}
	return w.put(i)
}

// checkStatus reports an entry whose status is none.
func checkStatus(l *catalog.MailLog) error {
	if statusCode(l.Status) == 0 {
		return errors.New("the entry has no status")
	}
	return nil
}

// checkMailCounts compares all counts with the entries: ErrDamaged where they differ. Nobody may write meanwhile.
func (l *Ledger) checkMailCounts() error {
	for project := int64(0); ; project++ {
		found, err := l.nextMailProject(&project)
		if err != nil || !found {
			return err
		}
		it, err := l.db.NewIter(nil)
		if err != nil {
			return err
		}
		r := mailReader{project: project, it: it}
		if r.rows, err = loadTallies(it, project); err == nil {
			prefix := appendID([]byte{prefixMailLog}, project)
			it.SetBounds(prefix, after(prefix))
			err = r.check()
		}
		if err = errors.Join(err, it.Close()); err != nil {
			return err
		}
	}
}

func (r *mailReader) check() error {
	wrong := fmt.Errorf("%w: the counts of the mail log of project %d are not those of its entries", ErrDamaged, r.project)
	total := 0
	for ok := r.it.First(); ok; ok = r.it.Next() {
		total++
	}
	if err := r.it.Error(); err != nil {
		return err
	}
	for i := range r.rows {
		row, have := &r.rows[i], tally{}
		err := r.each(row, func(at mailPos, rec []byte) error {
			status, err := storedStatus(rec)
			if err != nil || covering(r.rows, at) != i || at.id() < row.minID || at.id() > row.maxID {
				return joined(err, wrong)
			}
			have.add(at.id(), status)
			return nil
		})
		if err != nil {
			return err
		}
		if have.states != row.states {
			return wrong
		}
		total -= have.entries(0)
	}
	if total != 0 {
		return wrong
	}
	return nil
}
