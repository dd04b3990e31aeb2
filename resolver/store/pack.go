package store

import (
	"fmt"

	"fingerpost/resolver/catalog"
)

// Pack encodes what a file declares, for a Change that is gathered over a long time: Apply takes it for the Declared that
// it was made of. It is several times smaller, and one piece of memory without pointers, so that the garbage collector
// need not look at a hundred thousand declarations again and again. It is not kept anywhere: its form may change.
func Pack(d *catalog.Declared) []byte {
	e := encoder{}
	record := func(rec []byte) { e.uint(uint64(len(rec))); e.raw(rec) }
	var buf []byte
	e.uint(uint64(len(d.Projects)))
	for i := range d.Projects {
		p := &d.Projects[i]
		e.fixed(p.Project.ID)
		buf = appendProject(buf[:0], p)
		record(buf)
		e.uint(uint64(len(p.Domains)))
		for j := range p.Domains {
			buf = appendDomain(buf[:0], &p.Domains[j])
			record(buf)
		}
		e.uint(uint64(len(p.Templates)))
		for j := range p.Templates {
			buf = appendTemplate(buf[:0], &p.Templates[j])
			record(buf)
		}
	}
	e.uint(uint64(len(d.Templates)))
	for i := range d.Templates {
		buf = appendTemplate(buf[:0], &d.Templates[i])
		record(buf)
	}
	e.uint(uint64(len(d.Keys)))
	for i := range d.Keys {
		buf = appendKey(buf[:0], &d.Keys[i])
		record(buf)
	}
	e.bool(d.Defaults != nil)
	if d.Defaults != nil {
		record(appendDefaults(buf[:0], d.Defaults))
	}
	e.bool(d.Sealing != nil)
	if d.Sealing != nil {
		record(appendSealing(buf[:0], d.Sealing))
	}
	return append(make([]byte, 0, len(e.b)), e.b...)
}

// unpack is the way back. Its strings lie in packed.
func unpack(packed []byte) (*catalog.Declared, error) {
	d := decoder{s: string(packed)}
	out := new(catalog.Declared)
	record := func(decode func(rec []byte) error) {
		if rec := d.string(); !d.failed && decode([]byte(rec)) != nil {
			d.fail()
		}
	}
	templates := func() []catalog.Template {
		list := make([]catalog.Template, d.count())
		for i := range list {
			record(func(rec []byte) error { return decodeTemplate(&list[i], rec) })
		}
		return list
	}
	out.Projects = make([]catalog.ProjectConfig, d.count())
	for i := range out.Projects {
		p := &out.Projects[i]
		id := d.fixed()
		record(func(rec []byte) error { return decodeProject(p, id, rec) })
		p.Domains = make([]catalog.Domain, d.count())
		for j := range p.Domains {
			record(func(rec []byte) error { return decodeDomain(&p.Domains[j], rec) })
		}
		p.Templates = templates()
	}
	out.Templates = templates()
	out.Keys = make([]catalog.Key, d.count())
	for i := range out.Keys {
		record(func(rec []byte) error { return decodeKey(&out.Keys[i], rec) })
	}
	if d.bool() {
		record(func(rec []byte) (err error) { out.Defaults, err = decodeDefaults(rec); return err })
	}
	if d.bool() {
		record(func(rec []byte) (err error) { out.Sealing, err = decodeSealing(rec); return err })
	}
	if err := d.err(); err != nil {
		return nil, fmt.Errorf("unpack a declaration: %w", err)
	}
	return out, nil
}

// isPacked reports whether a file of a change has its declaration packed.
func isPacked(f *catalog.FileChange) bool { return f.Packed != nil || f.Spool.Waits() }

// content is what a file of a change declares, nil for one that declares nothing anew, and its bytes.
func content(f *catalog.FileChange) (d *catalog.Declared, bytes []byte, err error) {
	packed, bytes := f.Packed, f.Bytes
	switch {
	case f.Declared != nil:
		return f.Declared, bytes, nil
	case f.Spool.Waits():
		if packed, bytes, err = f.Spool.Load(); err != nil {
			return nil, nil, fmt.Errorf("read what waited: %w", err)
		}
	case packed == nil:
		return nil, nil, nil
	}
	d, err = unpack(packed)
	return d, bytes, err
}
