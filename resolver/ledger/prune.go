package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// PruneMail deletes the entries of all projects that have ended and were created before a moment, the notes of gaps from
// before it, and the idempotency keys that have expired by now. What is older and has not ended stays, and its message
// does. It goes by range deletion, in steps between which others write.
func (l *Ledger) PruneMail(before, now time.Time) error {
	err := l.pruneProjects(before)
	for more := true; more && err == nil; {
		more, err = l.steps(func(t *mailTurn) (bool, error) { return t.pruneKeys(now) })
	}
	if err == nil {
		err = l.pruneGaps(before)
	}
	if err != nil {
		return fmt.Errorf("prune the mail log: %w", err)
	}
	return nil
}

// steps takes one turn for a step and tells whether another one has to follow.
func (l *Ledger) steps(step func(t *mailTurn) (more bool, err error)) (more bool, err error) {
	said := make(chan bool, 1) // not a variable: the turn may outlive the call
	err = l.writeMail(l.newBatch(), mailSubject{}, func(t *mailTurn) error {
		more, err := step(t)
		said <- more
		return err
	})
	if err != nil {
		return false, err
	}
	return <-said, nil
}

func (l *Ledger) pruneProjects(before time.Time) error {
	edge := posOf(before, 0)
	for project := int64(0); ; project++ {
		found, err := l.nextMailProject(&project)
		if err != nil || !found {
			return err
		}
		var from mailPos // is written in turns that have come back
		for more := true; more; {
			if more, err = l.steps(func(t *mailTurn) (more bool, err error) {
				err = t.with(project, func(w *mailWriter) error {
					more, err = w.prune(&from, edge)
					return err
				})
				return more, err
			}); err != nil {
				return err
			}
		}
	}
}

// nextMailProject moves project on to the next one that has mail.
func (l *Ledger) nextMailProject(project *int64) (found bool, err error) {
	err = l.read(func() error {
		it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixMailCount}, UpperBound: []byte{prefixMailCount + 1}})
		if err != nil {
			return err
		}
		if found = it.SeekGE(appendID([]byte{prefixMailCount}, *project)); found {
			if len(it.Key()) < 1+8 {
				return errors.Join(errRecord, it.Close())
			}
			*project = int64(binary.BigEndian.Uint64(it.Key()[1:]))
		}
		return errors.Join(it.Error(), it.Close())
	})
	return found, err
}

// scansPerTurn is how many rows are looked through entry by entry before others may write.
const scansPerTurn = 16

// prune deletes what lies before the edge, from a place on, and moves that on; more says that it has not got to the edge.
// Rows that lie before it altogether and have no open mail go without a look at their entries.
func (w *mailWriter) prune(from *mailPos, edge mailPos) (more bool, err error) {
	kept := w.rows[:0:0]
	for i := range w.rows {
		row, end := w.rows[i], (*mailPos)(nil)
		if i+1 < len(w.rows) {
			end = &w.rows[i+1].start
		}
		switch whole := end != nil && !edge.before(*end) && row.open() == 0; {
		case row.start.before(*from) || !row.start.before(edge) || more:
		case whole:
			if err := w.drop(&row, end); err != nil {
				return false, err
			}
			continue
		case w.scans >= scansPerTurn:
			more, *from = true, row.start
		default:
			w.scans++
			if row, err = w.thin(&row, edge); err != nil {
				return false, err
			}
			if row.entries(0) == 0 {
				if err := w.b.Delete(w.countKey(row.start), nil); err != nil {
					return false, err
				}
				continue
			}
		}
		kept = append(kept, row)
	}
	w.rows = kept
	return more, nil
}

// drop deletes a row and all that is in it.
func (w *mailWriter) drop(row *tally, end *mailPos) error {
	return errors.Join(w.b.Delete(w.countKey(row.start), nil),
		w.b.DeleteRange(w.logKey(row.start), appendMailKey(nil, w.project, *end), nil))
}

// thin deletes the entries of a row that have ended and lie before the edge, and returns what is left of it.
func (w *mailWriter) thin(row *tally, edge mailPos) (tally, error) {
	if err := w.entries(); err != nil {
		return *row, err
	}
	left := tally{start: row.start}
	err := w.each(row, func(at mailPos, rec []byte) error {
		status, err := storedStatus(rec)
		if err != nil {
			return err
		}
		if at.before(edge) && statusCodes[status].Ended() {
			return w.b.Delete(w.logKey(at), nil)
		}
		left.add(at.id(), status)
		return nil
	})
	if err != nil || left.states == row.states {
		return *row, err
	}
	var rec [64]byte
	return left, w.b.Set(w.countKey(row.start), appendTally(rec[:0], &left), nil)
}
