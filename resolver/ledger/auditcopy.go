package ledger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"fingerpost/resolver/catalog"
)

// errOrder: the new ledger's trail is past an entry that it does not have.
var errOrder = errors.New("entries of the audit trail cannot be put back between others")

// copiedPerTurn bounds a batch of copied entries.
const copiedPerTurn = 1000

// Audit copies the audit trail as it is, with its hashes, so that a chain whose entries are all readable still holds,
// and the commits of its writes. Where entries are missing, it notes an AuditGap. It must have returned before the new ledger gets entries of its own. What retention
// has cut off stays cut off.
func (v *Salvage) Audit(ctx context.Context) error {
	if v.files == nil {
		return v.anyLost()
	}
	var part [][]byte
	err := v.each(ctx, prefixAudit, func(key, rec []byte) error {
		var e catalog.AuditEntry
		if err := decodeAudit(&e, key, bytes.Clone(rec)); err != nil {
			return err
		}
		if e.ID <= v.to.LastAudit() {
			return v.there(key, rec)
		}
		if part = append(part, bytes.Clone(rec)); len(part) < copiedPerTurn {
			return nil
		}
		full := part
		part = nil
		return v.copyAudit(full)
	})
	if err == nil && len(part) > 0 {
		err = v.copyAudit(part)
	}
	if err == nil {
		err = v.cutTails(ctx)
	}
	if err == nil && (!v.gap.Complete || len(v.files.Problems()) > 0) {
		err = v.anyLost()
	}
	if err == nil {
		err = v.commits(ctx)
	}
	return err
}

// commits copies the commits of writes, but for those that the new ledger has from an earlier attempt: they may have
// been made anew since.
func (v *Salvage) commits(ctx context.Context) error {
	missing := map[string][]byte{}
	err := v.each(ctx, prefixCommit, func(key, rec []byte) error {
		if _, _, err := decodeCommit(rec); err != nil {
			return err
		}
		return v.to.read(func() error {
			found, err := now{v.to.db}.get(key, func([]byte) error { return nil })
			if err == nil && !found {
				missing[string(key)] = bytes.Clone(rec)
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	return v.to.setCommits(missing)
}

// there checks that the new ledger has an entry, after an earlier attempt to copy it.
func (v *Salvage) there(key, rec []byte) error {
	same := false
	err := v.to.read(func() error {
		_, err := now{v.to.db}.get(key, func(has []byte) error { same = bytes.Equal(has, rec); return nil })
		return err
	})
	if err == nil && !same {
		v.lacks(errOrder)
	}
	return err
}

// copyAudit adds entries at the ends of their chains. A later write must sync it.
func (v *Salvage) copyAudit(recs [][]byte) error {
	days := map[int64]int{}
	cuts := map[int64][32]byte{}
	for _, rec := range recs {
		project := projectOf(rec)
		if _, known := days[project]; known {
			continue
		}
		days[project] = 0
		_, err := v.files.Get(appendChainKey(nil, project), func(value []byte) error {
			c, err := decodeChain(project, value)
			if err == nil {
				days[project], cuts[project] = c.Days, c.Cut
			}
			return err
		})
		if err != nil {
			v.lacks(err)
		}
	}
	return v.to.writeMail(v.to.newBatch(), func(t *mailTurn) error {
		t.unsynced = true
		chains := map[int64]*AuditChain{}
		last := int64(0)
		for _, rec := range recs {
			project := projectOf(rec)
			c := chains[project]
			if c == nil {
				var err error
				if c, err = t.l.chain(project); err != nil {
					return err
				}
				if chains[project] = c; c.Last == 0 {
					c.Cut, c.Days = cuts[project], days[project]
				}
			}
			if [32]byte(rec[offsetPrev:offsetEntry]) != cmp.Or(c.Head, c.Cut) {
				if err := t.noteAuditGap(v.auditGap(project, c.Last)); err != nil {
					return err
				}
			}
			last = int64(binary.BigEndian.Uint64(rec[offsetEntry:]))
			at := time.UnixMicro(int64(binary.BigEndian.Uint64(rec[offsetEntry+8:])))
			if err := t.place(c, last, at, auditHash(rec), rec); err != nil {
				return err
			}
		}
		return t.putChains(chains, last)
	})
}
