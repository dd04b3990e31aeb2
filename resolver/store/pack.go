package store

import (
	"encoding/binary"
	"errors"

	"fingerpost/resolver/catalog"
)

// What a file declares is packed into one block of memory: the refs as in the file's row, with their length in front,
// then the encoded records of its objects, each with its length in front. Apply works on packed declarations only: it
// compares records with stored ones byte by byte.
//
// The objects come in the order of declare.

// appendPacked appends what a file declares.
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
			domain.ProjectID = p.Project.ID // the enclosing block decides
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

// record writes what add appends, with its length in front.
func (e *encoder) record(add func(b []byte) []byte) {
	at := len(e.b)
	e.b = add(append(e.b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(e.b[at:], uint32(len(e.b)-at-4))
}

// record reads what encoder.record wrote. The result aliases the decoder's input and must not be changed.
func (d *decoder) record() []byte {
	n := d.take(4)
	if len(n) != 4 {
		return nil
	}
	return bytesOf(d.take(uint64(binary.BigEndian.Uint32(bytesOf(n)))))
}

var errPacked = errors.New("a packed declaration cannot be read")

// unpack splits a packed declaration into the refs, as in a row, and the input of declare.
func unpack(packed []byte) (refs, objects []byte, err error) {
	d := borrow(packed)
	refs = d.record()
	if d.failed {
		return nil, nil, errPacked
	}
	return refs, packed[len(packed)-len(d.s):], nil
}

// pack packs what a file declares. The result is valid until the next call of pack or refs.
func (w *writer) pack(d *catalog.Declared) []byte {
	w.packed = appendPacked(w.packed[:0], d)
	return w.packed
}

// refs encodes the refs of what a file declares, as its row has them. The result is valid until the next call of pack
// or refs.
func (w *writer) refs(d *catalog.Declared) []byte {
	w.packed = appendRefs(w.packed[:0], d)
	return w.packed
}
