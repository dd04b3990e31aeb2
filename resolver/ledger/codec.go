package ledger

import (
	"encoding/binary"
	"errors"
	"time"
)

// errRecord is returned for every value that cannot be decoded: the store is damaged, or not ours.
var errRecord = errors.New("a record cannot be decoded")

// An encoder appends values to b.
type encoder struct{ b []byte }

func (e *encoder) byte(v byte)        { e.b = append(e.b, v) }
func (e *encoder) uint(v uint64)      { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)        { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) raw(v []byte)       { e.b = append(e.b, v...) }
func (e *encoder) fixed(v int64)      { e.b = appendID(e.b, v) }
func (e *encoder) string(v string)    { e.uint(uint64(len(v))); e.b = append(e.b, v...) }
func (e *encoder) micros(t time.Time) { e.fixed(t.UnixMicro()) }

func (e *encoder) bool(v bool) {
	if v {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

// A decoder takes values from the front of s, which is one copy of the record: its strings share it. The first error is
// sticky: all later calls return zero values.
type decoder struct {
	s      string
	failed bool
}

func (d *decoder) fail() { d.s, d.failed = "", true }

// err reports a decoding error, or bytes left over.
func (d *decoder) err() error {
	if d.failed || d.s != "" {
		return errRecord
	}
	return nil
}

func (d *decoder) take(n uint64) string {
	if n > uint64(len(d.s)) {
		d.fail()
		return ""
	}
	v := d.s[:n]
	d.s = d.s[n:]
	return v
}

func (d *decoder) byte() byte {
	if v := d.take(1); v != "" {
		return v[0]
	}
	return 0
}

func (d *decoder) bool() bool {
	v := d.byte()
	if v > 1 {
		d.fail()
	}
	return v == 1
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint([]byte(d.s[:min(len(d.s), binary.MaxVarintLen64)]))
	if n <= 0 {
		d.fail()
		return 0
	}
	d.s = d.s[n:]
	return v
}

func (d *decoder) int() int64 {
	u := d.uint()
	return int64(u>>1) ^ -int64(u&1)
}

func (d *decoder) fixed() int64 {
	v := d.take(8)
	if len(v) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64([]byte(v)))
}

func (d *decoder) string() string    { return d.take(d.uint()) }
func (d *decoder) micros() time.Time { return time.UnixMicro(d.fixed()).UTC() }

func (d *decoder) hash() (h [32]byte) {
	copy(h[:], d.take(32))
	return h
}
