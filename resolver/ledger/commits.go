package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// An entry of the audit trail cannot name the git commit of an API write: the commit is made later, and the entry's
// hash is in the chain by then. The commit has a record of its own, which Audit joins.

// appendCommitKey appends the key of a write's record. A client may give several writes the same request id, so that
// the generation is in it, too.
func appendCommitKey(dst []byte, generation uint64, request string) []byte {
	return append(appendID(append(dst, prefixCommit), int64(generation)), request...)
}

// A commit is the record of a write.
type commit struct {
	at   time.Time
	hash string
}

func appendCommit(c commit) []byte {
	e := encoder{}
	e.byte(mailVersion)
	e.micros(c.at)
	e.string(c.hash)
	return e.b
}

func decodeCommit(rec []byte) (c commit, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return c, err
	}
	c = commit{at: d.micros(), hash: d.string()}
	return c, d.err()
}

// Committed stores the commits of writes and deletes their records of ChangePending, in one batch that is durable when
// it returns.
func (l *Ledger) Committed(writes []catalog.WriteCommit, drop ...int64) error {
	now := time.Now()
	return l.changeCommits(func(b *pebble.Batch) (err error) {
		for _, w := range writes {
			if w.RequestID != "" {
				key := appendCommitKey(nil, w.Generation, w.RequestID)
				err = errors.Join(err, b.Set(key, appendCommit(commit{now, w.Commit}), nil))
			}
		}
		for _, id := range drop {
			err = errors.Join(err, b.Delete(appendPendingKey(nil, id), nil))
		}
		return err
	})
}

// MoveCommits replaces rewritten commits in all records: moved[old] is the new one. It reads each record.
func (l *Ledger) MoveCommits(moved map[string]string) error {
	put := map[string][]byte{}
	err := l.scan(under(prefixCommit), func(key, rec []byte) error {
		c, err := decodeCommit(rec)
		if to := moved[c.hash]; to != "" {
			put[string(key)] = appendCommit(commit{c.at, to})
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.changeCommits(func(b *pebble.Batch) (err error) {
		for key, rec := range put {
			err = errors.Join(err, b.Set([]byte(key), rec, nil))
		}
		return err
	})
}

func (l *Ledger) changeCommits(change func(b *pebble.Batch) error) error {
	if err := l.commit(change); err != nil {
		return fmt.Errorf("note the commits of writes: %w", err)
	}
	return nil
}

// joinCommit sets the commit of an entry of an API write, if it is known. A write that was cut off by a crash has its
// record under generation 0.
func (l *Ledger) joinCommit(e *catalog.AuditEntry) error {
	if e.Commit != "" || e.RequestID == "" {
		return nil
	}
	for _, generation := range []uint64{e.Generation, 0} {
		found, err := now{l.db}.get(appendCommitKey(nil, generation, e.RequestID), func(rec []byte) error {
			c, err := decodeCommit(rec)
			e.Commit = c.hash
			return err
		})
		if found || err != nil {
			return err
		}
	}
	return nil
}

// pruneCommits deletes the records that are older than the whole trail.
func (l *Ledger) pruneCommits(now time.Time) error {
	oldest := now
	err := l.scan(under(prefixAudit), func(key, rec []byte) error {
		var e catalog.AuditEntry
		if err := decodeAudit(&e, key, rec); err != nil {
			return err
		}
		oldest = e.Time
		return errStop
	})
	var drop [][]byte
	if err == nil {
		err = l.scan(under(prefixCommit), func(key, rec []byte) error {
			c, err := decodeCommit(rec)
			if c.at.Before(oldest) {
				drop = append(drop, bytes.Clone(key))
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	return l.changeCommits(func(b *pebble.Batch) (err error) {
		for _, key := range drop {
			err = errors.Join(err, b.Delete(key, nil))
		}
		return err
	})
}
