// Package salvage reads the tables and log files of a damaged Pebble one by one, without its MANIFEST and OPTIONS:
// damage to a file costs only the content of that file. Of several versions of a key the one with the highest sequence
// number counts; a deletion is a version.
//
// The result is a best effort, not one moment of the database. An unreadable file may have held the deletion of a row
// in another file, and without the MANIFEST an obsolete file that Pebble has not removed yet looks valid. So the caller
// must treat every row as possibly outdated.
//
// A table is read block by block, without the damaged ones. A log ends at its first damaged record.
//
// All requested keys are in memory until Close, 100 bytes each, with the values of those in logs. Values in tables are
// read on demand. Open takes no lock and changes nothing.
package salvage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/block/blockkind"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// errMissing: a value that was readable when its table was opened.
var errMissing = errors.New("a row of a table cannot be read any more")

// Rows are the readable rows. They are not safe for concurrent use.
type Rows struct {
	lower, upper []byte
	rows         map[string]row
	gone         []span // range deletions
	tables       []*sstable.Reader
	problems     []error
}

// A row is the newest version of a key.
type row struct {
	seq     pebble.SeqNum
	deleted bool
	table   *sstable.Reader // nil: value is set
	value   []byte
}

// A span is a deleted range of keys.
type span struct {
	start, end []byte
	seq        pebble.SeqNum
}

// Open reads the keys from lower (inclusive) to upper (exclusive) in the files of dir.
func Open(fs vfs.FS, dir string, lower, upper []byte) (*Rows, error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	r := &Rows{lower: lower, upper: upper, rows: make(map[string]row)}
	slices.Sort(names) // for the same result every time
	for _, name := range names {
		var err error
		switch number, ext, _ := strings.Cut(name, "."); ext {
		case "sst":
			err = r.readTable(fs, filepath.Join(dir, name))
		case "log":
			if n, parseErr := strconv.ParseUint(number, 10, 64); parseErr == nil {
				err = r.readLog(fs, filepath.Join(dir, name), n)
			}
		}
		if err != nil {
			r.problems = append(r.problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	r.deleteSpans()
	return r, nil
}

// Problems lists what could not be read, by file.
func (r *Rows) Problems() []error { return r.problems }

// Each calls f with all keys that begin with prefix, in order, until f returns an error. Key and value are valid within
// the call. An unreadable value is skipped and recorded as a problem.
func (r *Rows) Each(prefix byte, f func(key, value []byte) error) error {
	var keys []string
	for key, row := range r.rows {
		if key[0] == prefix && !row.deleted {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		value, err := r.value(key)
		if err != nil {
			r.problems = append(r.problems, err)
			continue
		}
		if err := f([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

// Get calls f with the value of a key, if there is one.
func (r *Rows) Get(key []byte, f func(value []byte) error) (found bool, err error) {
	if row, there := r.rows[string(key)]; !there || row.deleted {
		return false, nil
	}
	value, err := r.value(string(key))
	if err != nil {
		return false, err
	}
	return true, f(value)
}

// Close closes the tables.
func (r *Rows) Close() (err error) {
	for _, t := range r.tables {
		err = errors.Join(err, t.Close())
	}
	r.tables, r.rows = nil, nil
	return err
}

func (r *Rows) value(key string) ([]byte, error) {
	row := r.rows[key]
	if row.table == nil {
		return row.value, nil
	}
	it, err := r.iterate(row.table)
	if err != nil {
		return nil, err
	}
	defer it.Close() // its error is the value's
	for kv := it.SeekGE([]byte(key), 0); kv != nil && string(kv.K.UserKey) == key; kv = it.Next() {
		if kv.SeqNum() == row.seq {
			value, _, err := kv.Value(nil)
			return bytes.Clone(value), err
		}
	}
	return nil, errors.Join(errMissing, it.Error())
}

// take records a version of a key, unless a newer one is known.
func (r *Rows) take(key []byte, found row) {
	if bytes.Compare(key, r.lower) < 0 || bytes.Compare(key, r.upper) >= 0 {
		return
	}
	if have, there := r.rows[string(key)]; !there || have.seq < found.seq {
		r.rows[string(key)] = found
	}
}

// deleteSpans applies the range deletions to older rows.
func (r *Rows) deleteSpans() {
	for key, row := range r.rows {
		for _, s := range r.gone {
			if row.seq < s.seq && string(s.start) <= key && key < string(s.end) {
				row.deleted = true
				r.rows[key] = row
				break
			}
		}
	}
}

func (r *Rows) iterate(t *sstable.Reader) (sstable.Iterator, error) {
	return t.NewIter(sstable.NoTransforms, r.lower, r.upper, sstable.AssertNoBlobHandles)
}

func (r *Rows) readTable(fs vfs.FS, name string) error {
	file, err := fs.Open(name)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	t, err := sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{})
	if err != nil {
		return err // NewReader has closed the file
	}
	r.tables = append(r.tables, t)
	separators, err := separators(t)
	if err != nil {
		return err
	}
	it, err := r.iterate(t)
	if err != nil {
		return err
	}
	var bad error
	from := r.lower
	for _, separator := range separators {
		for kv := it.SeekGE(from, 0); kv != nil && bytes.Compare(kv.K.UserKey, separator) <= 0; kv = it.Next() {
			r.take(kv.K.UserKey, row{seq: kv.SeqNum(), deleted: !isSet(kv.Kind()), table: t})
		}
		if err := it.Error(); err != nil && bad == nil {
			bad = err // the other blocks can still be read
		}
		from = append(separator, 0) // the first key behind it
	}
	_ = it.Close() // bad has its error
	return errors.Join(bad, r.readSpans(t))
}

// separators returns a key for each data block of a table: all keys of the block are up to it, those of the next blocks
// are behind it, except for older versions of the same key.
func separators(t *sstable.Reader) (keys [][]byte, err error) {
	layout, err := t.Layout()
	if err != nil {
		return nil, err
	}
	for _, handle := range layout.Index {
		index, err := t.BlockReader().Read(context.Background(), block.NoReadEnv, nil, handle, blockkind.Index,
			colblk.InitIndexBlockMetadata)
		if err != nil {
			return nil, err
		}
		var it colblk.IndexIter
		err = it.Init(t.Comparer, index.BlockData(), sstable.NoTransforms)
		for ok := err == nil && it.First(); ok; ok = it.Next() {
			keys = append(keys, bytes.Clone(it.Separator()))
		}
		index.Release()
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}

func isSet(kind pebble.InternalKeyKind) bool {
	return kind == pebble.InternalKeyKindSet || kind == pebble.InternalKeyKindSetWithDelete
}

// readSpans reads a table's range deletions.
func (r *Rows) readSpans(t *sstable.Reader) error {
	it, err := t.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil || it == nil {
		return err
	}
	defer it.Close()
	s, err := it.First()
	for ; err == nil && s != nil; s, err = it.Next() {
		if len(s.Keys) > 0 { // the newest one comes first
			r.gone = append(r.gone, span{bytes.Clone(s.Start), bytes.Clone(s.End), s.Keys[0].SeqNum()})
		}
	}
	return err
}

// readLog reads the batches of a log. A reused log may end with the remains of an older file behind its last record,
// which is no damage.
func (r *Rows) readLog(fs vfs.FS, name string, number uint64) error {
	file, err := fs.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() // it was only read
	for records := newReader(record.NewReader, file, number); ; {
		one, err := records.Next()
		if errors.Is(err, io.EOF) || record.IsInvalidRecord(err) {
			return nil
		}
		if err != nil {
			return err
		}
		batch, err := io.ReadAll(one)
		if record.IsInvalidRecord(err) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err == nil {
			err = r.readBatch(batch)
		}
		if err != nil {
			return err
		}
	}
}

// newReader names the type of a log's number, which Pebble does not export.
func newReader[N ~uint64](create func(io.Reader, N) *record.Reader, file io.Reader, number uint64) *record.Reader {
	return create(file, N(number))
}

func (r *Rows) readBatch(batch []byte) error {
	header, ok := batchrepr.ReadHeader(batch)
	if !ok {
		return errors.New("a record of the log is no batch")
	}
	seq := header.SeqNum
	for entries := batchrepr.Read(batch); ; {
		kind, key, value, ok, err := entries.Next()
		if !ok || err != nil {
			return err
		}
		switch {
		case kind == pebble.InternalKeyKindLogData:
			continue // has no sequence number
		case kind == pebble.InternalKeyKindRangeDelete:
			r.gone = append(r.gone, span{key, value, seq})
		default:
			r.take(key, row{seq: seq, deleted: !isSet(kind), value: value})
		}
		seq++
	}
}
