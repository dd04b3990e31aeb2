package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"fingerpost/resolver/catalog"
)

// What a file declares is packed into one piece of memory: its refs as its row has them, with their length before them, and
// the records of its objects as they are stored, each with its length before it. Apply works on packed declarations
// alone, so that nothing of a large change has to be decoded to be stored.
//
// The objects come in the order of declare.

// Pack encodes what a file declares, for a Change that is gathered over a long time: Apply takes it for the Declared that
// it was made of. It is several times smaller, and one piece of memory without pointers, so that the garbage collector
// need not look at a hundred thousand declarations again and again. It is not kept anywhere: its form may change.
func Pack(d *catalog.Declared) []byte {
	packed := appendPacked(nil, d)
	return append(make([]byte, 0, len(packed)), packed...)
}

func appendPacked(dst []byte, d *catalog.Declared) []byte {
	e := encoder{dst}
	e.record(func(b []byte) []byte { return appendRefs(b, d) })
	e.uint(uint64(len(d.Projects)))
	for i := range d.Projects {
		p := &d.Projects[i]
		e.fixed(p.Project.ID)
		e.record(func(b []byte) []byte { return appendProject(b, p) })
		e.uint(uint64(len(p.Domains)))
		for j := range p.Domains {
			domain := p.Domains[j]
			domain.ProjectID = p.Project.ID // the block that it stands in decides
			e.record(func(b []byte) []byte { return appendDomain(b, &domain) })
		}
		e.templates(p.Templates, p.Project.ID)
	}
	e.templates(d.Templates, 0)
	e.uint(uint64(len(d.Keys)))
	for i := range d.Keys {
		e.record(func(b []byte) []byte { return appendKey(b, &d.Keys[i]) })
	}
	e.bool(d.Defaults != nil)
	if d.Defaults != nil {
		e.record(func(b []byte) []byte { return appendDefaults(b, d.Defaults) })
	}
	e.bool(d.Sealing != nil)
	if d.Sealing != nil {
		e.record(func(b []byte) []byte { return appendSealing(b, d.Sealing) })
	}
	return e.b
}

func (e *encoder) templates(list []catalog.Template, project int64) {
	e.uint(uint64(len(list)))
	for i := range list {
		template := list[i]
		template.ProjectID = project
		e.record(func(b []byte) []byte { return appendTemplate(b, &template) })
	}
}

// record writes what add appends, with its length before it.
func (e *encoder) record(add func(b []byte) []byte) {
	at := len(e.b)
	e.b = add(append(e.b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(e.b[at:], uint32(len(e.b)-at-4))
}

// record takes what encoder.record wrote. It lies in what the decoder reads, and must not be changed.
func (d *decoder) record() []byte {
	n := d.take(4)
	if len(n) != 4 {
		return nil
	}
	return bytesOf(d.take(uint64(binary.BigEndian.Uint32(bytesOf(n)))))
}

var errPacked = errors.New("a packed declaration cannot be read")

// unpack takes a packed declaration apart into the refs, as a row has them, and what declare reads.
func unpack(packed []byte) (refs, objects []byte, err error) {
	d := borrow(packed)
	refs = d.record()
	if d.failed {
		return nil, nil, errPacked
	}
	return refs, packed[len(packed)-len(d.s):], nil
}

// isPacked reports whether a file of a change has its declaration packed.
func isPacked(f *catalog.FileChange) bool { return f.Packed != nil || f.Spool.Waits() }

// declares reports whether a file of a change declares anything anew.
func declares(f *catalog.FileChange) bool { return f.Declared != nil || isPacked(f) }

// content is what a file of a change declares, packed, and its bytes. Both are valid until the next call of content or
// refs.
func (w *writer) content(f *catalog.FileChange) (packed, bytes []byte, err error) {
	switch {
	case f.Declared != nil:
		w.packed = appendPacked(w.packed[:0], f.Declared)
		return w.packed, f.Bytes, nil
	case f.Packed != nil:
		return f.Packed, f.Bytes, nil
	}
	w.packed, err = f.Spool.Load(w.packed)
	if err != nil {
		return nil, nil, fmt.Errorf("read what waited: %w", err)
	}
	return w.packed[:f.Spool.Packed], w.packed[f.Spool.Packed:], nil
}

// refs are those of what a file of a change declares, as its row has them: valid as long as those of content.
func (w *writer) refs(f *catalog.FileChange) (refs []byte, err error) {
	switch {
	case f.Declared != nil:
		w.packed = appendRefs(w.packed[:0], f.Declared)
		return w.packed, nil
	case f.Packed != nil:
		refs, _, err = unpack(f.Packed)
		return refs, err
	}
	waiting := f.Spool
	waiting.Bytes = 0
	if w.packed, err = waiting.Load(w.packed); err != nil {
		return nil, fmt.Errorf("read what waited: %w", err)
	}
	refs, _, err = unpack(w.packed)
	return refs, err
}
