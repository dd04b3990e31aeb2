package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// PruneMail deletes the final entries of all projects created before a moment, the records of gaps from before it,
// their rows in the index of ended mails, and the idempotency keys that have expired by now. Older entries that are not final stay, with their messages. It uses
// range deletions, in steps that other writes can interleave with.
func (l *Ledger) PruneMail(before, now time.Time) error {
	err := l.pruneProjects(before)
	for more := true; more && err == nil; {
		more, err = l.steps(func(t *mailTurn) (bool, error) { return t.pruneKeys(now) })
	}
	if err == nil {
		err = errors.Join(l.pruneGaps(before), l.pruneEnded(before))
	}
	if err != nil {
		return fmt.Errorf("prune the mail log: %w", err)
	}
	return nil
}

// steps takes one turn for a step and reports whether another must follow.
func (l *Ledger) steps(step func(t *mailTurn) (more bool, err error)) (more bool, err error) {
	said := make(chan bool, 1) // not a variable: the turn may outlive the call
	err = l.writeMail(l.newBatch(), func(t *mailTurn) error {
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
	for project := int64(0); ; project++ {
		found, err := l.nextMailProject(&project)
		if err != nil || !found {
			return err
		}
		from, edge := appendMailKey(nil, project, mailPos{}), appendMailKey(nil, project, posOf(before, 0))
		for from != nil { // set in turns that have returned
			if _, err = l.steps(func(t *mailTurn) (more bool, err error) {
				from, err = t.prune(project, from, edge)
				return from != nil, err
			}); err != nil {
				return err
			}
		}
	}
}

// nextMailProject advances project to the next one that has mail.
func (l *Ledger) nextMailProject(project *int64) (found bool, err error) {
	later := span{lower: appendCountKey(nil, *project), upper: []byte{prefixMailCount + 1}}
	err = l.scan(later, func(key, _ []byte) error {
		if len(key) < 1+8 {
			return errRecord
		}
		found, *project = true, projectIn(key)
		return errStop
	})
	return found, err
}

// entriesPerTurn is how many entries are read before other writes get a turn.
const entriesPerTurn = 5000

// prune deletes the final entries between two keys, and returns the key to continue from, nil at the end. Adjacent
// entries go by range deletion.
func (t *mailTurn) prune(project int64, from, edge []byte) (next []byte, err error) {
	var gone, none mailCounts
	var start []byte // of the range to delete
	drop := func(end []byte) error {
		if start == nil {
			return nil
		}
		first := start
		start = nil
		return t.b.DeleteRange(first, end, nil)
	}
	n := 0
	err = t.l.walk(span{lower: from, upper: edge}, func(key, rec []byte) error {
		if n++; n > entriesPerTurn {
			next = bytes.Clone(key)
			return errStop
		}
		status, err := storedStatus(rec)
		if err != nil {
			return err
		}
		if !statusCodes[status].Ended() {
			return drop(key)
		}
		gone[status-1]++
		if start == nil {
			start = bytes.Clone(key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	end := edge
	if next != nil {
		end = next
	}
	if err = drop(end); err == nil && gone.entries(0) > 0 {
		err = t.recount(project, &gone, &none)
	}
	return next, err
}
