package store

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// A recent remembers the records that changes have read or written lately, as they stand in the store: whoever changes a
// thing mostly changes it again, and each change reads what it replaces. It holds two maps of up to recentBytes each, of which
// the older one goes when the younger is full. Store.write guards it; the zero value is empty.
type recent struct {
	young, old map[string]*remembered
	bytes      int // of young
}

type remembered struct{ value []byte }

const (
	recentBytes   = 8 << 20
	recentValue   = 64 << 10 // longer ones are not kept
	recentChange  = 4 << 20  // nor is any of a longer batch
	recentPerItem = 100      // what the maps need, about
)

// looksUp are the prefixes of the records that changes read.
var looksUp = []byte{prefixFile, prefixProject, prefixDomain, prefixTemplate}

// get returns the value of a key, which stays as it is until the next follow.
func (r *recent) get(key []byte) (value []byte, ok bool) {
	e := r.young[string(key)]
	if e == nil {
		e = r.old[string(key)]
	}
	if e == nil {
		return nil, false
	}
	return e.value, true
}

// follow takes over what a batch writes that is about to be committed. Should the commit fail, forget must follow.
func (r *recent) follow(b *pebble.Batch) {
	if b.Len() > recentChange {
		r.forget()
		return
	}
	ops := b.Reader()
	for {
		kind, key, value, ok, err := ops.Next()
		switch {
		case err != nil:
			r.forget()
			return
		case !ok:
			return
		case bytes.IndexByte(looksUp, key[0]) < 0:
		case kind == pebble.InternalKeyKindSet && len(value) <= recentValue:
			r.set(key, value)
		default:
			r.drop(key)
		}
	}
}

// loaded remembers a value that get did not have, as the store has it.
func (r *recent) loaded(key, value []byte) {
	if bytes.IndexByte(looksUp, key[0]) >= 0 && len(value) <= recentValue {
		r.set(key, value)
	}
}

func (r *recent) set(key, value []byte) {
	e := r.young[string(key)]
	if e == nil {
		if e = r.old[string(key)]; e != nil {
			delete(r.old, string(key))
		} else {
			e = new(remembered)
		}
		if r.young == nil {
			r.young = make(map[string]*remembered)
		}
		r.young[string(key)] = e
		r.bytes += recentPerItem + len(key) + cap(e.value)
	}
	r.bytes -= cap(e.value)
	e.value = append(e.value[:0], value...)
	if r.bytes += cap(e.value); r.bytes > recentBytes {
		r.young, r.old, r.bytes = nil, r.young, 0
	}
}

func (r *recent) drop(key []byte) {
	if e := r.young[string(key)]; e != nil {
		r.bytes -= recentPerItem + len(key) + cap(e.value)
		delete(r.young, string(key))
	}
	delete(r.old, string(key))
}

func (r *recent) forget() { *r = recent{} }
