package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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

// rows are the readable records of a damaged Pebble. Its tables and log files are read one by one, without MANIFEST and
// OPTIONS: damage costs only a block of a table, or the rest of a log. The newest version of a key counts, a deletion too.
//
// The result is a best effort, not one moment of the database: every row may be outdated. An unreadable file may have
// held the deletion of a row in another file, and an obsolete file that Pebble has not removed yet looks valid.
//
// All keys are in memory until close, 100 bytes each, with the values of those in logs. Values in tables are read on
// demand. Nothing is locked or changed. The zero value has no rows; rows are not safe for concurrent use.
type rows struct {
	newest   map[string]version
	keys     []string // of newest, sorted
	ranges   []deletion
	opened   []io.Closer
	problems []error // what could not be read, by file
}

// A version is the newest one of a key that was found.
type version struct {
	seq     pebble.SeqNum
	deleted bool
	table   sstable.Iterator // nil: value is set
	value   []byte
}

// A deletion is a range of keys that were deleted at once.
type deletion struct {
	start, end string
	seq        pebble.SeqNum
}

// firstRecord and endRecord bound the keys of records; the layout's own begin with a small letter.
var firstRecord, endRecord = []byte{'A'}, []byte{'a'}

// openRows reads the keys of the records in the files of dir.
func openRows(dir string) (*rows, error) {
	names, err := vfs.Default.List(dir)
	if err != nil {
		return nil, err
	}
	r := &rows{newest: map[string]version{}}
	slices.Sort(names) // for the same result every time
	for _, name := range names {
		var err error
		switch number, ext, _ := strings.Cut(name, "."); ext {
		case "sst":
			err = r.readTable(filepath.Join(dir, name))
		case "log":
			if n, parseErr := strconv.ParseUint(number, 10, 64); parseErr == nil {
				err = r.readLog(filepath.Join(dir, name), n)
			}
		}
		if err != nil {
			r.problems = append(r.problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	maps.DeleteFunc(r.newest, func(key string, v version) bool {
		return v.deleted || slices.ContainsFunc(r.ranges, func(d deletion) bool {
			return v.seq < d.seq && d.start <= key && key < d.end
		})
	})
	r.keys = slices.Sorted(maps.Keys(r.newest))
	return r, nil
}

// each calls f with all rows of a prefix, in the order of their keys, until f returns an error. An unreadable value is
// skipped, and is a problem. f may keep key and value.
func (r *rows) each(prefix byte, f func(key, value []byte) error) error {
	from, _ := slices.BinarySearch(r.keys, string(prefix))
	for _, key := range r.keys[from:] {
		if key[0] != prefix {
			break
		}
		value, err := r.value(key)
		if err != nil {
			r.problems = append(r.problems, err)
		} else if err := f([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

// errNoRow: a key has no readable record.
var errNoRow = fmt.Errorf("%w: a record is missing", ErrDamaged)

func (r *rows) value(key string) ([]byte, error) {
	v, found := r.newest[key]
	switch {
	case !found:
		return nil, errNoRow
	case v.table == nil:
		return v.value, nil
	}
	kv := v.table.SeekGE([]byte(key), 0) // a table has the newest version of a key first
	if kv == nil || string(kv.K.UserKey) != key || kv.SeqNum() != v.seq {
		return nil, errors.Join(errors.New("a row of a table cannot be read any more"), v.table.Error())
	}
	value, _, err := kv.Value(nil)
	return bytes.Clone(value), err
}

func (r *rows) close() (err error) {
	for _, c := range r.opened {
		err = errors.Join(err, c.Close())
	}
	return err
}

// add records a version of a key, unless a newer one is known.
func (r *rows) add(key []byte, kind pebble.InternalKeyKind, v version) {
	v.deleted = kind != pebble.InternalKeyKindSet && kind != pebble.InternalKeyKindSetWithDelete
	if bytes.Compare(key, firstRecord) < 0 || bytes.Compare(key, endRecord) >= 0 {
		return
	}
	if known, found := r.newest[string(key)]; !found || known.seq < v.seq {
		r.newest[string(key)] = v
	}
}

func (r *rows) readTable(name string) error {
	file, err := vfs.Default.Open(name)
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
	it, err := t.NewIter(sstable.NoTransforms, firstRecord, endRecord, sstable.AssertNoBlobHandles)
	if err != nil {
		return errors.Join(err, t.Close())
	}
	r.opened = append(r.opened, it, t)
	separators, err := separators(t)
	from := firstRecord
	for _, separator := range separators {
		for kv := it.SeekGE(from, 0); kv != nil && bytes.Compare(kv.K.UserKey, separator) <= 0; kv = it.Next() {
			r.add(kv.K.UserKey, kv.Kind(), version{seq: kv.SeqNum(), table: it})
		}
		err = joined(err, it.Error()) // the other blocks can still be read
		from = append(separator, 0)   // the first key behind it
	}
	return errors.Join(err, r.readRanges(t))
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

// readRanges reads a table's range deletions.
func (r *rows) readRanges(t *sstable.Reader) error {
	it, err := t.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil || it == nil {
		return err
	}
	defer it.Close()
	s, err := it.First()
	for ; err == nil && s != nil; s, err = it.Next() {
		if len(s.Keys) > 0 { // the newest one comes first
			r.ranges = append(r.ranges, deletion{string(s.Start), string(s.End), s.Keys[0].SeqNum()})
		}
	}
	return err
}

// readLog reads the batches of a log. A reused log may end with the remains of an older file behind its last record,
// which is no damage.
func (r *rows) readLog(name string, number uint64) error {
	file, err := vfs.Default.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() // it was only read
	for records := newReader(record.NewReader, file, number); ; {
		var batch []byte
		one, err := records.Next()
		if err == nil {
			batch, err = io.ReadAll(one)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), record.IsInvalidRecord(err):
			return nil
		case err == nil:
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

func (r *rows) readBatch(batch []byte) error {
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
			r.ranges = append(r.ranges, deletion{string(key), string(value), seq})
		default:
			r.add(key, kind, version{seq: seq, value: value})
		}
		seq++
	}
}
