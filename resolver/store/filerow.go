package store

import (
	"bytes"

	"fingerpost/resolver/catalog"
)

// rowVersion is the first byte of an encoded row. Rows of the previous version, recordVersion, have no Stamp.Changed.
const rowVersion = 2

func (e *encoder) stamp(s *catalog.Stamp) {
	e.int(s.Size)
	e.instant(s.ModTime)
	e.instant(s.Changed)
	e.uint(s.Inode)
	e.raw(s.Hash[:])
}

func (d *decoder) stamp(version byte) catalog.Stamp {
	s := catalog.Stamp{Size: d.int(), ModTime: d.instant()}
	if version == rowVersion {
		s.Changed = d.instant()
	}
	s.Inode, s.Hash = d.uint(), d.hash()
	return s
}

// versionOf returns the version of an encoded row.
func versionOf(rec []byte) byte {
	if len(rec) > 0 && rec[0] == recordVersion {
		return recordVersion
	}
	return rowVersion
}

// appendRow encodes a row with refs from appendRefs. The row of a file with warnings gets no hash, so that the next
// start reads the file again.
func appendRow(dst []byte, row *catalog.FileRow, refs []byte) []byte {
	stamp := row.Stamp
	if row.Warned {
		stamp.Hash = noHash
	}
	e := encoder{dst}
	e.byte(rowVersion)
	e.stamp(&stamp)
	e.uint(uint64(len(row.Deps)))
	for i := range row.Deps {
		e.string(row.Deps[i].Path)
		e.stamp(&row.Deps[i].Stamp)
	}
	e.raw(refs)
	return e.b
}

// noHash is the hash value of a row without one.
var noHash [32]byte

// appendRefs encodes the refs of what a file declares. A key has no UUID; its public id, which is not longer than a
// UUID, takes the place.
func appendRefs(dst []byte, d *catalog.Declared) []byte {
	e := encoder{dst}
	n := 0
	d.EachRef(func(catalog.Ref) { n++ })
	e.uint(uint64(n))
	d.EachRef(func(r catalog.Ref) {
		e.string(string(r.Kind))
		e.string(r.Name)
		if r.Kind == catalog.KindKey && len(r.KeyID) <= len(r.UUID) {
			copy(r.UUID[:], r.KeyID)
		}
		e.raw(r.UUID[:])
		e.uint(uint64(r.ID))
		e.uint(uint64(r.ProjectID))
	})
	return e.b
}

func decodeRow(rec []byte) (*catalog.FileRow, error) {
	version := versionOf(rec)
	d := newDecoder(rec, version)
	row := &catalog.FileRow{Stamp: d.stamp(version)}
	row.Warned = row.Stamp.Hash == noHash
	// The capacity follows what has been decoded, not what a damaged count claims.
	for range d.count() {
		row.Deps = append(row.Deps, catalog.Dep{Path: d.string(), Stamp: d.stamp(version)})
		if d.failed {
			break
		}
	}
	row.Refs = d.refs(nil)
	if err := d.err(); err != nil {
		return nil, err
	}
	for _, r := range row.Refs {
		if r.Kind == catalog.KindKey && r.KeyID == "" {
			row.Stamp = catalog.Stamp{} // rows of that release lack Changed: only reading the file shows a change
		}
	}
	return row, nil
}

// refs appends the refs of a row to dst. They are complete only if the decoder has not failed.
func (d *decoder) refs(dst []catalog.Ref) []catalog.Ref {
	for range d.count() {
		r := catalog.Ref{
			Kind: catalog.KnownKind(catalog.Kind(d.string())), Name: d.string(), UUID: d.uuid(), ID: int64(d.uint()), ProjectID: int64(d.uint()),
		}
		if r.Kind == catalog.KindKey {
			r.KeyID, r.UUID = string(bytes.TrimRight(r.UUID[:], "\x00")), catalog.UUID{}
		}
		dst = append(dst, r)
		if d.failed {
			break
		}
	}
	return dst
}

// rowRefs finds the refs in an encoded row without decoding it.
func rowRefs(rec []byte) ([]byte, error) {
	version := versionOf(rec)
	d := borrowingDecoder(rec, version)
	d.stamp(version)
	for range d.count() {
		d.string()
		if d.stamp(version); d.failed {
			break
		}
	}
	if d.failed {
		return nil, errRecord
	}
	return rec[len(rec)-len(d.s):], nil
}
