package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// importChunkBytes bounds one batch of Import: memory stays flat, and other reads are not delayed.
const importChunkBytes = 4 << 20

// catalogPrefixes are the parts of the layout that Apply writes.
var catalogPrefixes = []byte{
	prefixProject, prefixSlug, prefixDomain, prefixProjectHost, prefixTemplate, prefixTemplateCode,
	prefixKey, prefixEdge, prefixWebhook, prefixLogin, prefixInbound, prefixDefaults,
	prefixSealing, prefixBytes, prefixFile, prefixText,
	prefixRefused, prefixKeySet,
}

// Import makes s declare exactly what from does, and writes only differences. The store in memory uses it when it takes
// over from a failed disk, and the new disk store on the way back. An object in both keeps the older createdAt, and for
// equal content the older updatedAt. The epoch becomes from's, the generation the higher of the two. from may have
// failed, as long as it can be read. A change that is being applied to it at the same time is imported whole or not at
// all: a failed Apply returns while Pebble may still be working on it. Open wipes a store whose Import was interrupted.
func (s *Store) Import(from *Store) error {
	s.write.Lock()
	defer s.write.Unlock()
	revision, err := from.DecoderRevision()
	if err != nil {
		return fmt.Errorf("import from another store: %w", err)
	}
	audit, err := from.AuditID()
	if err != nil {
		return fmt.Errorf("import from another store: %w", err)
	}
	var own error // errors of one store must not fail the other
	source := from.View(func(v *View) (source error) {
		own = s.read(func() (own error) {
			source, own = s.importView(v, from.Epoch(), max(s.generation.Load(), from.generation.Load()), revision, audit)
			return own
		})
		return source
	})
	if err := errors.Join(source, own); err != nil {
		return fmt.Errorf("import from another store: %w", err)
	}
	return nil
}

func (s *Store) importView(v *View, epoch string, generation, revision uint64, audit int64) (source, own error) {
	b := s.db.NewBatch()
	if err := errors.Join(b.Set(keyImporting, nil, nil), s.commit(b)); err != nil {
		return nil, err
	}
	for _, prefix := range catalogPrefixes {
		m := merge{to: s, prefix: prefix, b: s.db.NewBatch()}
		source = v.scan([]byte{prefix}, m.next)
		if err := m.finish(source == nil); err != nil || source != nil {
			return source, err
		}
	}
	counts, source := readCounts(v)
	if source != nil {
		return source, nil
	}
	return nil, s.finishImport(epoch, generation, revision, audit, counts)
}

func (s *Store) finishImport(epoch string, generation, revision uint64, audit int64, counts Counts) error {
	b := s.db.NewBatch()
	err := errors.Join(
		b.Set(keyEpoch, []byte(epoch), nil),
		b.Set(keyGeneration, binary.AppendUvarint(nil, generation), nil),
		b.Set(keyDecoder, binary.AppendUvarint(nil, revision), nil),
		b.Set(keyAudit, auditValue(audit), nil),
		b.Set(keyCounts, encode(&counts), nil),
		b.Delete(keyImporting, nil),
	)
	if err = errors.Join(err, s.commit(b)); err != nil {
		return err
	}
	// Removals made while the other store was in use must not look like a mass removal after a crash.
	if err = s.NoteRemovals(nil); err != nil {
		return err
	}
	s.epoch.Store(&epoch)
	s.generation.Store(generation)
	s.counts.Store(&counts)
	return s.loadFilling()
}

// wipe deletes the catalog and the mark of an interrupted import; the files fill it again.
func (s *Store) wipe() error {
	b := s.db.NewBatch()
	for _, prefix := range catalogPrefixes {
		if err := b.DeleteRange([]byte{prefix}, []byte{prefix + 1}, nil); err != nil {
			return err
		}
	}
	return errors.Join(b.Delete(keyCounts, nil), b.Delete(keyAudit, nil), b.Delete(keyImporting, nil), s.commit(b))
}

// A merge walks one prefix of two stores in parallel.
type merge struct {
	to     *Store
	prefix byte
	b      *pebble.Batch
	it     *pebble.Iterator // over to's keys; nil before the first step
	valid  bool
	err    error // error of to, as opposed to one of the source
}

// next handles one key of the source.
func (m *merge) next(key, value []byte) error {
	var d catalog.Domain
	var projectCopy []byte
	if m.prefix == prefixDomain {
		var err error
		if projectCopy, err = decodeDomain(&d, value); err != nil {
			return err // the source's
		}
		value = value[:len(value)-len(projectCopy)]
	}
	if m.err = m.step(key, value, len(projectCopy) > 0, d.ProjectID); m.err != nil {
		return errStop
	}
	return nil
}

// step writes one key where it differs. A domain is given without the copy of its project's record, and whether it has
// one: the copy has to be that of the merged project.
func (m *merge) step(key, value []byte, copied bool, project int64) error {
	if err := m.dropUntil(key); err != nil {
		return err
	}
	var have []byte
	if m.valid && bytes.Equal(m.it.Key(), key) {
		var err error
		if have, err = m.it.ValueAndErr(); err != nil {
			return err
		}
		have = bytes.Clone(have)
		m.valid = m.it.Next()
	}
	value = m.reconcile(value, have)
	if copied {
		// All projects have been merged before.
		p, err := m.to.load(idKey(prefixProject, project))
		if err != nil {
			return err
		}
		value = slices.Concat(value, p)
	}
	if have != nil && bytes.Equal(value, have) {
		return nil
	}
	if err := m.b.Set(key, value, nil); err != nil {
		return err
	}
	return m.flush(importChunkBytes)
}

// dropUntil deletes to's keys before key; a nil key deletes the rest.
func (m *merge) dropUntil(key []byte) error {
	if m.it == nil {
		it, err := m.to.db.NewIter(&pebble.IterOptions{LowerBound: []byte{m.prefix}, UpperBound: []byte{m.prefix + 1}})
		if err != nil {
			return err
		}
		m.it, m.valid = it, it.First()
	}
	for m.valid && (key == nil || bytes.Compare(m.it.Key(), key) < 0) {
		if err := errors.Join(m.b.Delete(m.it.Key(), nil), m.flush(importChunkBytes)); err != nil {
			return err
		}
		m.valid = m.it.Next()
	}
	return m.it.Error()
}

// reconcile returns the value to write over have, the present one or nil.
func (m *merge) reconcile(value, have []byte) []byte {
	switch m.prefix {
	case prefixProject, prefixDomain, prefixTemplate:
	default:
		return value
	}
	if !sameObject(value, have) {
		return value
	}
	created, updated := recordTimes(value)
	oldCreated, oldUpdated := recordTimes(have)
	if oldCreated.Before(created) {
		created = oldCreated
	}
	// A domain's copy of the project's record follows its content, which ends by itself.
	if bytes.HasPrefix(have[headerLen:], value[headerLen:]) && oldUpdated.Before(updated) {
		updated = oldUpdated
	}
	value = bytes.Clone(value)
	setRecordTimes(value, created, updated)
	return value
}

func (m *merge) flush(atLeast int) error {
	if m.b.Len() < atLeast {
		return nil
	}
	b := m.b
	m.b = m.to.db.NewBatch()
	return m.to.commit(b)
}

// finish writes what is left. If the source was read to its end, it also deletes what the source does not have.
func (m *merge) finish(complete bool) error {
	if m.err == nil && complete {
		m.err = m.dropUntil(nil)
	}
	if m.it != nil {
		m.err = errors.Join(m.err, m.it.Close())
	}
	if m.err != nil {
		return m.err
	}
	return m.flush(0)
}
