package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"fingerpost/resolver/catalog"
)

// An AuditChain is the chain of one project's entries, or with project 0 of the entries that belong to no project. Each
// entry has the hash of the previous one. Retention cuts the beginning of a chain, and Cut keeps the hash to which the
// first remaining entry refers.
type AuditChain struct {
	Project int64
	Head    [32]byte // hash of the last entry
	Last    int64    // id of the last entry
	Cut     [32]byte // hash of the last entry that was cut off; zero if there was none
	Entries int64    // that remain
	Days    int      // how long entries were kept when the project was last seen; 0: unknown
}

func appendChainKey(dst []byte, project int64) []byte {
	return appendID(append(dst, prefixAuditChain), project)
}

func appendChain(dst []byte, c *AuditChain) []byte {
	e := encoder{dst}
	e.byte(mailVersion)
	e.raw(c.Head[:])
	e.fixed(c.Last)
	e.raw(c.Cut[:])
	e.uint(uint64(c.Entries))
	e.uint(uint64(c.Days))
	return e.b
}

func decodeChain(project int64, rec []byte) (*AuditChain, error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return nil, err
	}
	c := &AuditChain{Project: project, Head: d.hash(), Last: d.fixed(), Cut: d.hash(), Entries: int64(d.uint()),
		Days: int(d.uint())}
	return c, d.err()
}

// chain returns a project's chain, an empty one if there is none.
func (l *Ledger) chain(project int64) (c *AuditChain, err error) {
	c = &AuditChain{Project: project}
	_, err = now{l.db}.get(appendChainKey(nil, project), func(rec []byte) (err error) {
		c, err = decodeChain(project, rec)
		return err
	})
	return c, err
}

// LastAudit returns the highest id of an entry that this ledger has given out.
func (l *Ledger) LastAudit() int64 { return l.lastAudit.Load() }

// loadAudit reads the highest id given out.
func (l *Ledger) loadAudit() error {
	_, err := now{l.db}.get(keyAuditState, func(value []byte) error {
		d, err := mailDecoder(value)
		if err != nil {
			return err
		}
		l.lastAudit.Store(d.fixed())
		return d.err()
	})
	return err
}

// AppendAudit adds entries to the trail, in one batch that is durable when it returns, and returns the id of the last
// one. The ids count up from the last one, and are higher than above. It gives each entry its id and its place in the
// chain of its project. days says how long the entries of a project are kept, for when it is gone. The caller must not
// change entries and days any more.
func (l *Ledger) AppendAudit(entries []catalog.AuditEntry, above int64, days map[int64]int) (last int64, err error) {
	return l.AppendAuditWith(entries, above, days, AuditWith{})
}

// AuditWith is what is stored in the batch of entries of the trail, all or nothing.
type AuditWith struct {
	Named map[string][]byte          // as SetNamed does
	List  *catalog.SuppressionChange // nil: none
	// Ended is the entry of a mail that has ended, as UpdateMail stores it; nil: none. If that is refused, so is all.
	Ended *catalog.MailLog
}

// AppendAuditWith is AppendAudit with more in its batch. The caller must not change with any more.
func (l *Ledger) AppendAuditWith(entries []catalog.AuditEntry, above int64, days map[int64]int,
	with AuditWith) (last int64, err error) {
	said := make(chan int64, 1) // not a variable: the turn may outlive the call
	err = l.writeMail(l.newBatch(), func(t *mailTurn) error {
		if err := t.addWith(&with); err != nil || t.refused != nil {
			return err
		}
		chains := map[int64]*AuditChain{}
		id := max(above, l.lastAudit.Load())
		for i := range entries {
			e := &entries[i]
			id++
			e.ID = id
			if err := t.link(chains, e, days); err != nil {
				return err
			}
		}
		said <- id
		t.entry = id
		return t.putChains(chains, id)
	})
	if err != nil {
		return 0, fmt.Errorf("append to the audit trail: %w", err)
	}
	if log := with.Ended; log != nil {
		l.mail.newest.raise(log.ProjectID, posOf(log.CreatedAt, log.ID))
	}
	return <-said, nil
}

func (t *mailTurn) addWith(with *AuditWith) error {
	err := setNamed(t.b, with.Named)
	if log := with.Ended; err == nil && log != nil {
		var u mailUpdate
		if u, err = newMailUpdate(t.b, log); err == nil {
			err = u.finish(t)
		}
	}
	if err == nil && t.refused == nil && with.List != nil {
		err = t.changeList(with.List)
	}
	return err
}

// NoteRestore adds to the trail that the backup of a time was restored. Its id is higher than above.
func (l *Ledger) NoteRestore(now time.Time, generation uint64, made time.Time, above int64) error {
	_, err := l.AppendAudit([]catalog.AuditEntry{{
		Time: now.UTC().Truncate(time.Microsecond), Generation: generation, Action: catalog.AuditRestore,
		Door:    catalog.DoorCLI,
		Changes: []catalog.FieldChange{{Field: "backup", After: made.UTC().Format(time.RFC3339)}},
	}}, above, nil)
	return err
}

// link adds one entry at the end of its chain to the batch.
func (t *mailTurn) link(chains map[int64]*AuditChain, e *catalog.AuditEntry, days map[int64]int) (err error) {
	c := chains[e.ProjectID]
	if c == nil {
		if c, err = t.l.chain(e.ProjectID); err != nil {
			return err
		}
		chains[e.ProjectID] = c
	}
	if n := days[e.ProjectID]; n > 0 {
		c.Days = n
	}
	e.Prev = c.Head
	rec := appendAudit(nil, e)
	e.Hash = auditHash(rec)
	return t.place(c, e.ID, e.Time, e.Hash, rec)
}

// place writes the record of an entry that follows the last one of a chain.
func (t *mailTurn) place(c *AuditChain, id int64, at time.Time, hash [32]byte, rec []byte) error {
	c.Head, c.Last = hash, id
	c.Entries++
	return errors.Join(
		t.b.Set(appendAuditKey(nil, id), rec, nil),
		t.b.Set(appendAuditOfKey(nil, c.Project, id), appendMicros(nil, at), nil))
}

// putChains writes the ends of chains, and the highest id.
func (t *mailTurn) putChains(chains map[int64]*AuditChain, last int64) error {
	var err error
	for project, c := range chains {
		err = errors.Join(err, t.b.Set(appendChainKey(nil, project), appendChain(nil, c), nil))
	}
	e := encoder{}
	e.byte(mailVersion)
	e.fixed(last)
	t.l.lastAudit.Store(last) // a failed batch is the last one of this Ledger
	return errors.Join(err, t.b.Set(keyAuditState, e.b, nil))
}

// AuditChains calls f with all chains, by project. f must not call the Ledger.
func (l *Ledger) AuditChains(f func(c *AuditChain) error) error {
	return l.scan(under(prefixAuditChain), chainRecord(f))
}

// AuditSince calls f with all entries whose id is higher than id, the oldest first. f must not call the Ledger.
func (l *Ledger) AuditSince(id int64, f func(e *catalog.AuditEntry) error) error {
	return l.scan(span{lower: appendAuditKey(nil, id+1), upper: []byte{prefixAudit + 1}}, func(key, rec []byte) error {
		var e catalog.AuditEntry
		if err := decodeAudit(&e, key, bytes.Clone(rec)); err != nil {
			return err
		}
		return f(&e)
	})
}

func appendAuditKey(dst []byte, id int64) []byte { return appendID(append(dst, prefixAudit), id) }

func appendAuditOfKey(dst []byte, project, id int64) []byte {
	return appendID(appendID(append(dst, prefixAuditOf), project), id)
}

// timeOf returns the time in a value of the projects' index.
func timeOf(value []byte) (time.Time, error) {
	if len(value) != 8 {
		return time.Time{}, errRecord
	}
	return microsOf(value), nil
}

func auditID(key []byte) int64 { return int64(binary.BigEndian.Uint64(key[len(key)-8:])) }
