package store

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// An output takes what a change writes: a batch, or for a large change a bulk.
type output interface {
	Set(key, value []byte, _ *pebble.WriteOptions) error
	Delete(key []byte, _ *pebble.WriteOptions) error
	Len() int
	Close() error
}

// bulkBytes is the size from which a change is a bulk: some thousand files.
const bulkBytes = 32 << 20

// A bulk builds tables of a change, which Pebble then ingests at once. As a batch, a change of that size would be in
// memory three times, in the log, and block reads for seconds just when all caches have to be refilled. Values are
// appended to a spool file, keys stay in memory; keys are sorted in small pieces, and a merge of the pieces writes the
// tables.
type bulk struct {
	s   *Store
	dir string

	spool   vfs.File // the values, concatenated
	pending []byte   // tail of the spool, not written yet
	at      int64    // length of the spool, pending included

	keys   [][]byte // chunks of bulkChunk
	piece  []bulkRow
	pieces [][]bulkRow // sorted, each key once; of two pieces with the same key the later one counts

	values vfs.File  // the spool, opened for reading
	sorted []bulkRow // all rows, once the tables are written
	paths  []string  // of the tables
}

const (
	bulkChunk = 1 << 20
	bulkPiece = 4096 // rows: sorted in about a millisecond
)

// A bulkRow is one key: 24 bytes without a pointer, because there are millions.
type bulkRow struct {
	at     int64  // offset of its value in the spool
	chunk  uint32 // index of the key's chunk in keys
	size   uint32 // of the value
	key    uint32 // offset of the key in its chunk
	length uint16 // of the key
	gone   bool
}

var errLongKey = errors.New("a key of more than 64 KiB")

// bulkDir is the folder of bulks in progress. Open removes what a killed process left there.
func (s *Store) bulkDir() string { return filepath.Join(s.dirName(), "bulk") }

// newBulk starts a bulk.
func (s *Store) newBulk() (*bulk, error) {
	s.bulks.Wait()
	b := &bulk{s: s, dir: s.bulkDir()}
	spool := make(chan vfs.File, 1)
	err := s.fs.Run(func() error {
		if err := s.fs.RemoveAll(b.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := s.fs.MkdirAll(b.dir, 0o755); err != nil {
			return err
		}
		file, err := s.fs.Create(filepath.Join(b.dir, "values"), vfs.WriteCategoryUnspecified)
		spool <- file
		return err
	})
	if err != nil {
		return nil, err
	}
	b.spool = <-spool
	return b, nil
}

func (b *bulk) Set(key, value []byte, _ *pebble.WriteOptions) error {
	b.pending = append(b.pending, value...)
	if err := b.add(key, bulkRow{at: b.at, size: uint32(len(value))}); err != nil {
		return err
	}
	b.at += int64(len(value))
	if len(b.pending) < bulkChunk {
		return nil
	}
	return b.flush()
}

func (b *bulk) Delete(key []byte, _ *pebble.WriteOptions) error {
	return b.add(key, bulkRow{gone: true})
}

func (b *bulk) add(key []byte, row bulkRow) error {
	if len(key) > 1<<16-1 {
		return errLongKey
	}
	last := len(b.keys) - 1
	if last < 0 || len(b.keys[last])+len(key) > bulkChunk {
		b.keys = append(b.keys, make([]byte, 0, bulkChunk))
		last++
	}
	row.chunk, row.key, row.length = uint32(last), uint32(len(b.keys[last])), uint16(len(key))
	b.keys[last] = append(b.keys[last], key...)
	if b.piece = append(b.piece, row); len(b.piece) == bulkPiece {
		b.sort()
	}
	return nil
}

func (b *bulk) key(r *bulkRow) []byte {
	return b.keys[r.chunk][r.key:][:r.length]
}

// sort sorts the present piece and starts the next.
func (b *bulk) sort() {
	slices.SortStableFunc(b.piece, func(x, y bulkRow) int { return bytes.Compare(b.key(&x), b.key(&y)) })
	sorted := make([]bulkRow, 0, len(b.piece))
	for i := range b.piece {
		if i+1 == len(b.piece) || !bytes.Equal(b.key(&b.piece[i]), b.key(&b.piece[i+1])) {
			sorted = append(sorted, b.piece[i])
		}
	}
	b.pieces, b.piece = append(b.pieces, sorted), b.piece[:0]
}

func (b *bulk) flush() error {
	err := b.s.fs.Run(func() error {
		_, err := b.spool.Write(b.pending)
		return err
	})
	if err == nil { // otherwise a writer may still be using it
		b.pending = b.pending[:0]
	}
	return err
}

// Len is 0: the only limit is the disk's.
func (b *bulk) Len() int { return 0 }

// Close removes the files that have not become part of the store.
func (b *bulk) Close() error {
	return b.s.fs.Run(func() error {
		var err error
		if b.values != nil {
			err = b.values.Close()
		}
		return errors.Join(err, b.spool.Close(), b.s.fs.RemoveAll(b.dir))
	})
}

// tables writes the tables. Nothing can be added after that.
func (b *bulk) tables() (err error) {
	if len(b.piece) > 0 {
		b.sort()
	}
	if err := b.flush(); err != nil {
		return err
	}
	if b.values, err = b.s.fs.Open(filepath.Join(b.dir, "values"), vfs.RandomReadsOption); err != nil {
		return err
	}
	var w *sstable.Writer
	defer func() {
		if w != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	options := b.s.tableOptions()
	var value []byte
	n := 0
	for _, p := range b.pieces {
		n += len(p)
	}
	b.sorted = make([]bulkRow, 0, n)
	err = b.merge(func(r *bulkRow) error {
		b.sorted = append(b.sorted, *r)
		if w != nil && w.Raw().EstimatedSize() >= tableBytes {
			full := w
			w = nil
			if err := full.Close(); err != nil {
				return err
			}
		}
		if w == nil {
			path := filepath.Join(b.dir, fmt.Sprintf("%06d.sst", len(b.paths)))
			file, err := b.s.fs.Create(path, vfs.WriteCategoryUnspecified)
			if err != nil {
				return err
			}
			b.paths, w = append(b.paths, path), sstable.NewWriter(objstorageprovider.NewFileWritable(file), options)
		}
		if r.gone {
			return w.Delete(b.key(r))
		}
		if value, err = b.value(value, r); err != nil {
			return err
		}
		return w.Set(b.key(r), value)
	})
	b.pieces = nil
	return err
}

// value reads a row's value into buf.
func (b *bulk) value(buf []byte, r *bulkRow) ([]byte, error) {
	buf = slices.Grow(buf[:0], int(r.size))[:r.size]
	_, err := b.values.ReadAt(buf, r.at)
	return buf, err
}

// tableOptions are the options of the tables that Pebble itself writes.
func (s *Store) tableOptions() sstable.WriterOptions {
	return s.options.MakeWriterOptions(0, s.db.FormatMajorVersion().MaxTableFormat())
}

// merge calls f with the last row of each key, in key order.
func (b *bulk) merge(f func(r *bulkRow) error) error {
	m := bulkMerge{b: b}
	for i, p := range b.pieces {
		m.heads = append(m.heads, bulkHead{rows: p, piece: i})
	}
	heap.Init(&m)
	var last *bulkRow
	for len(m.heads) > 0 {
		head := &m.heads[0]
		r := &head.rows[0]
		if last == nil || !bytes.Equal(b.key(last), b.key(r)) {
			if err := f(r); err != nil {
				return err
			}
			last = r
		}
		if head.rows = head.rows[1:]; len(head.rows) == 0 {
			heap.Pop(&m)
		} else {
			heap.Fix(&m, 0)
		}
	}
	return nil
}

// A bulkMerge is a heap of pieces by their first key; of equal ones the latest piece comes first.
type bulkMerge struct {
	b     *bulk
	heads []bulkHead
}

type bulkHead struct {
	rows  []bulkRow // the remaining rows
	piece int
}

func (m *bulkMerge) Len() int { return len(m.heads) }

func (m *bulkMerge) Less(i, j int) bool {
	x, y := &m.heads[i], &m.heads[j]
	return cmp.Or(bytes.Compare(m.b.key(&x.rows[0]), m.b.key(&y.rows[0])), y.piece-x.piece) < 0
}

func (m *bulkMerge) Swap(i, j int) { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }
func (m *bulkMerge) Push(x any)    { m.heads = append(m.heads, x.(bulkHead)) }

func (m *bulkMerge) Pop() any {
	last := m.heads[len(m.heads)-1]
	m.heads = m.heads[:len(m.heads)-1]
	return last
}

// commitBulk is commit for a bulk, which is durable when it returns. Earlier commits must be in the synced log first,
// because the ingested tables survive a power cut that the end of the log does not.
func (s *Store) commitBulk(b *bulk, committing func() error) error {
	err := s.fs.Run(func() error { return errors.Join(b.tables(), s.db.LogData(nil, pebble.Sync)) })
	if err == nil {
		err = committing()
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	err = s.fs.Run(func() error {
		return errors.Join(s.db.Ingest(context.Background(), b.paths), s.readers.outdate())
	})
	s.bulks.Go(func() { _ = b.Close() }) // takes a while; the next Close clears what it leaves
	return err
}
