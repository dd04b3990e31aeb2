package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// A mailCounts counts the entries of a project's mail log by status code, from 1 on. Each project with entries has one
// row of it. Every batch that changes entries includes their counts.
type mailCounts [len(statusCodes) - 1]uint64

// formerStatuses is how many counts a record of mailVersion has.
const formerStatuses = 6

func appendCounts(dst []byte, c *mailCounts) []byte {
	e := encoder{dst}
	e.byte(suppressedRecord)
	for _, n := range c {
		e.uint(n)
	}
	return e.b
}

func decodeCounts(rec []byte) (c mailCounts, err error) {
	if err := checkVersion(rec, suppressedRecord); err != nil {
		return c, err
	}
	d, known := decoder{s: string(rec[1:])}, len(c)
	if rec[0] == mailVersion {
		known = formerStatuses
	}
	for i := range c[:known] {
		c[i] = d.uint()
	}
	return c, d.err()
}

// entries returns the number of entries with a status; status 0 means all.
func (c *mailCounts) entries(status byte) (n int) {
	if status != 0 {
		return int(c[status-1])
	}
	for _, k := range c {
		n += int(k)
	}
	return n
}

func readCounts(get func(key []byte, use func([]byte) error) (bool, error), project int64) (c mailCounts, err error) {
	_, err = get(appendCountKey(nil, project), func(rec []byte) (err error) {
		c, err = decodeCounts(rec)
		return err
	})
	return c, err
}

// count adds the change of an entry's status to the batch; status 0 means no entry.
func (t *mailTurn) count(project int64, from, to byte) error {
	var fewer, more mailCounts
	if from != 0 {
		fewer[from-1] = 1
	}
	if to != 0 {
		more[to-1] = 1
	}
	return t.recount(project, &fewer, &more)
}

// recount changes the counts of a project in the batch, at most once a batch.
func (t *mailTurn) recount(project int64, fewer, more *mailCounts) error {
	c, err := readCounts(now{t.l.db}.get, project)
	if err != nil {
		return err
	}
	for i := range c {
		if c[i] += more[i]; c[i] < fewer[i] {
			return errRecord
		}
		c[i] -= fewer[i]
	}
	if c.entries(0) == 0 {
		return t.b.Delete(appendCountKey(nil, project), nil)
	}
	return t.b.Set(appendCountKey(nil, project), appendCounts(nil, &c), nil)
}

// checkStatus rejects an entry with an unknown status.
func checkStatus(l *catalog.MailLog) error {
	if statusCode(l.Status) == 0 {
		return errors.New("the entry has no status")
	}
	return nil
}

// checkMailCounts compares all counts with the entries: ErrDamaged if they differ.
func (l *Ledger) checkMailCounts() error {
	it, err := l.db.NewIter(nil)
	if err != nil {
		return err
	}
	have := make(map[int64]mailCounts)
	err = eachOf(it, prefixMailLog, func(key, rec []byte) error {
		status, err := storedStatus(rec)
		if err == nil {
			project := projectIn(key)
			c := have[project]
			c[status-1]++
			have[project] = c
		}
		return err
	})
	if err == nil {
		err = eachOf(it, prefixMailCount, func(key, rec []byte) error {
			project := projectIn(key)
			if c, err := decodeCounts(rec); err != nil || c != have[project] {
				return joined(err, wrongCounts(project))
			}
			delete(have, project)
			return nil
		})
	}
	if err = errors.Join(err, it.Close()); err != nil {
		return err
	}
	for project := range have {
		return wrongCounts(project)
	}
	return nil
}

func wrongCounts(project int64) error {
	return fmt.Errorf("%w: the counts of the mail log of project %d are not those of its entries", ErrDamaged, project)
}

// eachOf calls f with all keys of a prefix that contain a project.
func eachOf(it *pebble.Iterator, prefix byte, f func(key, rec []byte) error) error {
	return walk(it, under(prefix), func(key, rec []byte) error {
		if len(key) < 1+8 {
			return errRecord
		}
		return f(key, rec)
	})
}

// projectIn returns the project in a key of the mail log or of its counts.
func projectIn(key []byte) int64 { return int64(binary.BigEndian.Uint64(key[1:])) }

// joined returns err, or otherwise if err is nil.
func joined(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
