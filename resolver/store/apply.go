package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// An Effect lists what a Change touched, as far as it can alter answers.
type Effect struct {
	Generation uint64 // the generation after the Change
	Projects   []ProjectEffect
	Domains    []DomainEffect
	Many       bool // more were touched than an Effect names: Projects and Domains are empty
	Defaults   bool
	Keys       bool
	Edges      bool
	Webhooks   bool
	Logins     bool
	Inbounds   bool
	Sealing    bool

	// Objects is what happened to each object, for the audit trail. It is empty for the parts of a first load.
	Objects []NewEntry
	// Loaded: this change ends the load of a store that was empty.
	Loaded bool
	Counts Counts // after the change
	// AuditID is set by committing: the newest entry of the audit trail, once the trail has everything that the store has.
	AuditID int64
}

// The most projects and domains that an Effect names. A consumer of a larger change handles everything as changed; the
// names of a change of everything would also take most of the memory that an Effect costs.
const (
	maxProjectEffects = 4096
	maxDomainEffects  = 20_000
)

// touch reports whether there is room for one more name; most is the limit for names of this kind.
func (e *Effect) touch(names, most int) bool {
	if !e.Many && names >= most {
		e.Many, e.Projects, e.Domains = true, nil, nil
	}
	return !e.Many
}

// A ProjectEffect is a project whose record (own fields, settings, SMTP config) is new, changed or removed.
type ProjectEffect struct {
	ID      int64
	Slug    string   // the present slug, or the last one of a removed project
	Was     string   // the previous slug; "" for a new project
	Gone    bool     // no file declares it any more
	Owner   string   // the present owner, or the last one of a removed project; "": none
	Owned   string   // the previous owner; "": none, or a new project
	Domains []string // the names that the project declares now, changed or not
}

// A DomainEffect is a name, exact or wildcard, whose record in a project is new, changed or removed. A name that moves
// to another project is removed in the first and changed in the second. The same effect may occur twice, and a name
// that passes from one object to another is reported both as removed and as changed.
type DomainEffect struct {
	Name    string
	Project int64 // id
	New     bool  // the object did not exist, or had another name or project
	Gone    bool
}

// Apply commits a Change as one batch: readers and a restart see all of it or nothing. It is not durable by itself, see
// the package comment. It raises the generation by generations: by 1, or by 0 for all but the last part of a first load
// and for rows alone.
//
// For each file with Declared, and for each removed file, Apply removes the objects in its stored row that no file of
// the Change declares any more. It writes declared objects that differ. An object with the same id and uuid is the same
// object: it keeps createdAt. Its updatedAt becomes now (at least a microsecond later than before) when its own content
// differs; for a project these are its own fields without the settings. A block that moved between two files of the
// Change is left alone.
//
// A Change with a Position gets that position, also where generations is 0, and its objects get the times that it
// gives.
//
// Apply calls committing when everything that can fail for reasons of its own is done, right before readers may see the
// change. If it fails before that, it does not call committing. If committing fails, nothing is done.
//
// After ErrUnavailable or ErrDamaged nothing more can be written and the change may or may not be visible; any other
// error means that nothing was done.
func (s *Store) Apply(c *catalog.Change, generations uint64, now time.Time,
	committing func(*Effect) error) (effect *Effect, err error) {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.fs.Err(); err != nil {
		return nil, fmt.Errorf("apply a change: %w", err)
	}
	for i := range c.Files {
		if f := &c.Files[i]; f.Declared != nil && f.Row == nil {
			return nil, fmt.Errorf("apply a change: %s declares objects but has no row", f.Path)
		}
	}
	var refused error
	err = s.read(func() (err error) {
		effect, err = s.apply(c, generations, now, func(e *Effect) error {
			refused = committing(e)
			return refused
		})
		if refused != nil {
			return nil //nolint:nilerr // it is no error of the store
		}
		return err
	})
	if err = cmp.Or(refused, err); err != nil {
		return nil, fmt.Errorf("apply a change: %w", err)
	}
	return effect, nil
}

// apply writes the batch and commits it.
func (s *Store) apply(c *catalog.Change, generations uint64, now time.Time, committing func(*Effect) error) (*Effect,
	error) {
	effect := &Effect{Generation: s.generation.Load() + generations, Loaded: s.filling && generations > 0}
	w := &writer{s: &s.State, now: now.UTC().Truncate(time.Microsecond), counts: s.Counts(), effect: effect,
		unaudited: s.filling || c.Position != nil, fresh: s.filling && c.Position == nil}
	if c.Position == nil {
		if err := s.reserveFor(effect.Generation); err != nil {
			return nil, err
		}
	}
	if size := batchBytes(c); size < bulkBytes || s.dir == "" { // in memory, tables would only be another copy
		w.b = s.db.NewBatchWithSize(size)
	} else {
		b, err := s.newBulk()
		if err != nil {
			return nil, err
		}
		w.b = b
	}
	err := w.change(c)
	if c.Position != nil {
		w.putPosition(c.Position)
	}
	if generations > 0 {
		w.set(keyGeneration, binary.AppendUvarint(nil, effect.Generation))
	}
	w.set(keyCounts, encode(&w.counts))
	if err = cmp.Or(err, w.err); err != nil {
		return nil, errors.Join(err, w.b.Close())
	}
	effect.Counts = w.counts
	// From here on only the disk can fail.
	switch b := w.b.(type) {
	case *bulk:
		err = s.commitBulk(b, func() error { return committing(effect) })
		if err == nil && effect.AuditID > 0 { // one that is too low does no harm
			audit := s.db.NewBatch()
			err = errors.Join(audit.Set(keyAudit, auditValue(effect.AuditID), nil), s.commit(audit))
		}
	case *pebble.Batch:
		if err = committing(effect); err != nil {
			return nil, errors.Join(err, b.Close())
		}
		if effect.AuditID > 0 {
			err = b.Set(keyAudit, auditValue(effect.AuditID), nil)
		}
		if c.Position != nil {
			// An edge must not answer from an older generation after a crash than before it, and its authority may be gone then.
			// Readers get it only then.
			err = errors.Join(err, s.commitSynced(b), s.fs.Run(s.readers.outdate))
		} else {
			err = errors.Join(err, s.commit(b))
		}
	}
	if err != nil {
		return nil, err
	}
	counts := w.counts // not &w.counts, which would keep the writer in memory
	if c.Position != nil {
		s.epoch.Store(&c.Position.Epoch)
		s.reserved = effect.Generation
	}
	s.generation.Store(effect.Generation)
	s.counts.Store(&counts)
	s.filling = s.filling && !effect.Loaded
	return effect, nil
}

// A writer turns a Change into what is written.
type writer struct {
	s      *State
	b      output
	now    time.Time
	counts Counts
	effect *Effect
	err    error // from building the batch, sticky

	// before holds what the changed files declared so far; kept is set for an object that is declared again.
	before map[objectID]*formerRef
	by     *catalog.Author           // of the file at hand; nil: somebody saved it
	others map[int64]*catalog.Author // of single projects in it
	// the audit trail tells of no single object: the store is being filled, or an edge's
	unaudited bool
	fresh     bool                               // see load
	times     map[timedObject]catalog.ObjectTime // of the file at hand, from the authority
	inForce   *catalog.Defaults                  // see defaults
	slug      struct {                           // see slugOf
		project int64
		was     string
	}

	// released holds index keys that an object has given up; a key that another object of the Change takes is not deleted.
	released map[string]struct{}
}

type formerRef struct {
	catalog.Ref
	kept bool
	by   *catalog.Author
}

func (w *writer) set(key, value []byte) {
	switch {
	case w.err != nil:
	case w.b.Len()+len(key)+len(value) > maxBatchBytes:
		w.err = errTooLarge
	default:
		w.err = w.b.Set(key, value, nil)
	}
}

func (w *writer) delete(key []byte) {
	if w.err == nil {
		w.err = w.b.Delete(key, nil)
	}
}

// release marks an index key for deletion at the end of the change, unless another object takes it.
func (w *writer) release(key []byte) {
	if w.released == nil {
		w.released = make(map[string]struct{})
	}
	w.released[string(key)] = struct{}{}
}

// load returns the stored record of an object that a file declares; nil if there is none. A first load does not look: no
// two files declare the same object, and none of its files had any before. Absent keys took a tenth of the processor time
// of a start with 100,000 projects.
func (w *writer) load(key []byte) ([]byte, error) {
	if w.fresh {
		return nil, nil
	}
	return w.s.load(key)
}

func (w *writer) change(c *catalog.Change) error {
	if err := w.gather(c); err != nil {
		return err
	}
	for i := range c.Files {
		if d := c.Files[i].Declared; d != nil && d.Defaults != nil {
			w.inForce = d.Defaults
		}
	}
	w.textChanges(prefixText, c.Texts)
	w.textChanges(prefixRefused, c.Refused)
	for i := range c.Files {
		w.by, w.others = c.Files[i].By, c.Files[i].Others
		w.times = timesByObject(c.Files[i].Times)
		if err := w.file(&c.Files[i]); err != nil {
			return fmt.Errorf("%s: %w", c.Files[i].Path, err)
		}
	}
	for _, former := range w.gone() {
		w.by, w.others = former.by, nil
		if err := w.remove(&former.Ref); err != nil {
			return err
		}
	}
	if len(w.released) > 0 {
		return w.dropReleased(c)
	}
	return nil
}

// file writes a file's row and bytes, and what it declares.
func (w *writer) file(f *catalog.FileChange) error {
	row, content := textKey(prefixFile, f.Path), textKey(prefixBytes, f.Path)
	switch {
	case f.Row == nil: // the file is gone
		w.delete(row)
		w.delete(content)
		return nil
	case f.Declared == nil: // it was touched: the objects stay
		refs, err := w.refs(f.Path)
		if err == nil {
			w.set(row, encodeRow(f.Row, refs))
		}
		return err
	}
	w.set(row, encodeRow(f.Row, f.Declared.Refs()))
	w.set(content, f.Bytes)
	return w.declare(f.Declared)
}

// inherit sets the times of rec, a declared object's record, from those of old, the stored record or nil. It reports
// whether the content differs. updatedAt moves only if own, the front of the content, differs. Times that the change
// gives are taken as they are.
func (w *writer) inherit(kind catalog.Kind, rec, old, own []byte) (changed bool) {
	given, ok := w.times[timedObject{kind, catalog.UUID(rec[offsetUUID:headerLen])}]
	same := sameObject(old, rec)
	if ok && given.CreatedAt.IsZero() {
		if given.CreatedAt = given.UpdatedAt; same {
			given.CreatedAt, _ = recordTimes(old)
		}
	}
	if ok {
		setRecordTimes(rec, given.CreatedAt, given.UpdatedAt)
		return !bytes.Equal(old, rec)
	}
	if !same {
		setRecordTimes(rec, w.now, w.now)
		return true
	}
	created, updated := recordTimes(old)
	if !bytes.HasPrefix(old[headerLen:], own) {
		updated = updated.Add(time.Microsecond) // it advances even when the clock has stood still or gone back
		if w.now.After(updated) {
			updated = w.now
		}
	}
	setRecordTimes(rec, created, updated)
	return !bytes.Equal(old[headerLen:], rec[headerLen:])
}
