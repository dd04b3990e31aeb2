package store

import (
	"bytes"
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
	Sealing    bool
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
// the package comment.
//
// For each file with Declared, and for each removed file, Apply removes the objects in its stored row that no file of
// the Change declares any more. It writes declared objects that differ. An object with the same id and uuid is the same
// object: it keeps createdAt. Its updatedAt becomes now (at least a microsecond later than before) when its own content
// differs; for a project these are its own fields without the settings. A block that moved between two files of the
// Change is left alone.
//
// Apply calls committing when everything that can fail for reasons of its own is done, right before readers may see the
// change; it does not call it where nothing changes.
//
// After ErrUnavailable or ErrDamaged nothing more can be written and the change may or may not be visible; any other
// error means that nothing was done.
func (s *Store) Apply(c *catalog.Change, now time.Time, committing func()) (*Effect, error) {
	return s.apply(c, now, 1, committing)
}

// Fill is Apply without a new generation: for all but the last part of a first load, and for rows alone.
func (s *Store) Fill(c *catalog.Change, now time.Time, committing func()) (*Effect, error) {
	return s.apply(c, now, 0, committing)
}

func (s *Store) apply(c *catalog.Change, now time.Time, generations uint64, committing func()) (*Effect, error) {
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
	var effect *Effect
	err := s.read(func() error {
		b, err := s.output(c)
		if err != nil {
			return err
		}
		w := &writer{s: s, b: b, now: now.UTC().Truncate(time.Microsecond), counts: s.Counts(), effect: new(Effect)}
		if err := w.change(c); err != nil {
			return errors.Join(err, w.b.Close())
		}
		w.effect.Generation = s.generation.Load() + generations
		if generations > 0 {
			w.set(keyGeneration, binary.AppendUvarint(nil, w.effect.Generation))
		}
		w.set(keyCounts, encode(&w.counts))
		if w.err != nil {
			return errors.Join(w.err, w.b.Close())
		}
		// From here on only the disk can fail.
		if err := s.commitOutput(b, committing); err != nil {
			return err
		}
		s.generation.Store(w.effect.Generation)
		s.counts.Store(&w.counts)
		effect = w.effect
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("apply a change: %w", err)
	}
	return effect, nil
}

// output returns where a change is written: a batch or a bulk.
func (s *Store) output(c *catalog.Change) (output, error) {
	size := batchBytes(c)
	if size < bulkBytes || s.dir == "" { // in memory, tables would only be another copy
		return s.db.NewBatchWithSize(size), nil
	}
	return s.newBulk()
}

func (s *Store) commitOutput(o output, committing func()) error {
	var err error
	if b, ok := o.(*bulk); ok {
		err = s.commitBulk(b, committing)
	} else {
		b := o.(*pebble.Batch)
		committing()
		err = s.commit(b)
	}
	return err
}

// A writer turns a Change into what is written.
type writer struct {
	s      *Store
	b      output
	now    time.Time
	counts Counts
	effect *Effect
	err    error // from building the batch, sticky

	// before holds what the changed files declared so far; kept is set for an object that is declared again.
	before map[objectID]*formerRef
	// released holds index keys that an object has given up; a key that another object of the Change takes is not deleted.
	released map[string]struct{}

	key, index, old []byte // scratch
}

type formerRef struct {
	catalog.Ref
	kept bool
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

// load returns a stored value, or nil. The value is read-only and may alias w.old.
func (w *writer) load(key []byte) ([]byte, error) {
	w.old = w.old[:0]
	value, closer, err := w.s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w.old = append(w.old, value...)
	return w.old, closer.Close()
}

func (w *writer) change(c *catalog.Change) error {
	if err := w.gather(c); err != nil {
		return err
	}
	for i := range c.Files {
		if err := w.file(&c.Files[i]); err != nil {
			return fmt.Errorf("%s: %w", c.Files[i].Path, err)
		}
	}
	for _, former := range w.before {
		if !former.kept {
			if err := w.remove(&former.Ref); err != nil {
				return err
			}
		}
	}
	return w.dropReleased(c)
}

func (w *writer) file(f *catalog.FileChange) error {
	switch {
	case f.Row == nil:
		w.delete(w.fileKey(prefixFile, f))
		w.delete(w.fileKey(prefixBytes, f))
		return nil
	case f.Declared == nil:
		return w.touch(f)
	}
	w.set(w.fileKey(prefixFile, f), encodeRow(f.Row, f.Declared.Refs()))
	w.set(w.fileKey(prefixBytes, f), f.Bytes)
	return w.declare(f.Declared)
}

func (w *writer) fileKey(prefix byte, f *catalog.FileChange) []byte {
	w.key = appendTextKey(w.key[:0], prefix, f.Path)
	return w.key
}

// touch writes a new row for a file whose content is unchanged: it copies the refs of the old row.
func (w *writer) touch(f *catalog.FileChange) error {
	refs, err := w.refs(f.Path)
	if err == nil {
		w.set(w.fileKey(prefixFile, f), encodeRow(f.Row, refs))
	}
	return err
}

// later returns the updatedAt of an object whose previous one was old. It always advances, even when the clock has
// stood still or gone back.
func (w *writer) later(old time.Time) time.Time {
	if least := old.Add(time.Microsecond); w.now.Before(least) {
		return least
	}
	return w.now
}

// inherit sets the times of rec, a declared object's record, from those of old, the stored record or nil. It reports
// whether the content differs. updatedAt moves only if own, the front of the content, differs.
func (w *writer) inherit(rec, old, own []byte) (changed bool, err error) {
	if !sameObject(old, rec) {
		created, updated, err := w.formerTimes(rec)
		setRecordTimes(rec, created, updated)
		return true, err
	}
	created, updated := recordTimes(old)
	if !bytes.HasPrefix(old[headerLen:], own) {
		updated = w.later(updated)
	}
	setRecordTimes(rec, created, updated)
	return !bytes.Equal(old[headerLen:], rec[headerLen:]), nil
}

// formerTimes returns the times of a new object: now, or those that it had in a store of an older layout, see upgrade.
func (w *writer) formerTimes(rec []byte) (created, updated time.Time, err error) {
	w.index = appendTimesKey(w.index[:0], rec)
	former, err := w.load(w.index)
	if err != nil || former == nil {
		return w.now, w.now, err
	}
	if !sound(former) {
		return w.now, w.now, errRecord
	}
	w.delete(w.index)
	created, updated = recordTimes(former)
	return created, updated, nil
}
