package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// An AuditCheck is the result of VerifyAudit.
type AuditCheck struct {
	Entries, Chains int64
	Broken          *BrokenLink // the first broken link; nil if all chains hold, but for Gaps
	Gaps            []AuditGap  // where damage has cut the trail: a link there is not broken by somebody
	HeadFound       bool        // an entry, or the end of what retention cut off, has the hash that was asked for
}

// A BrokenLink is a place at which a chain does not hold.
type BrokenLink struct {
	Project int64
	Entry   int64 // 0: no single one
	Reason  string
}

// VerifyAudit checks the chains of all projects, and looks for a hash that was the head of one of them at some time:
// a cut tail is no broken link, but the head is not found then. Damage is an error.
func (l *Ledger) VerifyAudit(head [32]byte) (check AuditCheck, err error) {
	gaps, err := l.AuditGaps()
	if err != nil {
		return check, err
	}
	err = l.read(func() error {
		v := verification{head: head, AuditCheck: AuditCheck{Gaps: gaps}}
		var err error
		if v.chains, err = l.db.NewIter(nil); err != nil {
			return err
		}
		v.index, err = v.chains.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{}})
		if err == nil {
			v.entries, err = v.chains.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{}})
		}
		if err == nil {
			err = errors.Join(v.run(), v.index.Close(), v.entries.Close())
		}
		check = v.AuditCheck
		return errors.Join(err, v.chains.Close())
	})
	return check, err
}

// A verification is one call of VerifyAudit. Its iterators show the same moment.
type verification struct {
	AuditCheck
	chains, index, entries *pebble.Iterator
	head                   [32]byte
}

func (v *verification) run() error {
	if err := eachChain(v.chains, v.chain); err != nil || v.Broken != nil {
		return err
	}
	n := int64(0)
	err := walk(v.entries, under(prefixAudit), func(_, _ []byte) error {
		n++
		return nil
	})
	if n != v.Entries {
		v.broken(0, 0, "there are %d entries, and the chains have %d", n, v.Entries)
	}
	return err
}

func (v *verification) broken(project, entry int64, format string, args ...any) {
	if v.Broken == nil {
		v.Broken = &BrokenLink{Project: project, Entry: entry, Reason: fmt.Sprintf(format, args...)}
	}
}

// chain checks one chain from its first entry to its end.
func (v *verification) chain(c *AuditChain) error {
	v.Chains++
	prev, entries, at := c.Cut, int64(0), int64(0)
	v.found(prev)
	err := walk(v.index, under(appendID([]byte{prefixAuditOf}, c.Project)...), func(key, _ []byte) error {
		id := auditID(key)
		entries++
		found, err := moment{v.entries}.get(appendAuditKey(nil, id), func(rec []byte) error {
			if len(rec) < auditHeadLen {
				return errRecord
			}
			if [32]byte(rec[offsetPrev:offsetEntry]) != prev && !v.damaged(c.Project, at, id) {
				v.broken(c.Project, id, "the entry before it was changed or removed")
			}
			prev, at = auditHash(rec), id
			v.found(prev)
			return nil
		})
		if err == nil && !found {
			v.broken(c.Project, id, "the entry is missing")
		}
		return err
	})
	if err != nil {
		return err
	}
	v.Entries += entries
	switch {
	case prev != c.Head:
		v.broken(c.Project, c.Last, "the last entry of the project was changed or removed")
	case entries != c.Entries:
		v.broken(c.Project, 0, "there are %d entries of the project, and there should be %d", entries, c.Entries)
	}
	return nil
}

// damaged reports whether a gap is between two entries of a chain that follow each other.
func (v *verification) damaged(project, before, after int64) bool {
	return slices.ContainsFunc(v.Gaps, func(g AuditGap) bool {
		return !g.Any && g.Project == project && before <= g.After && g.After < after
	})
}

func (v *verification) found(hash [32]byte) {
	v.HeadFound = v.HeadFound || hash == v.head && hash != [32]byte{}
}
