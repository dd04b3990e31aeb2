package store

import "fingerpost/resolver/catalog"

func (e *encoder) stamp(s *catalog.Stamp) {
	e.int(s.Size)
	e.instant(s.ModTime)
	e.uint(s.Inode)
	e.raw(s.Hash[:])
}

func (d *decoder) stamp() catalog.Stamp {
	return catalog.Stamp{Size: d.int(), ModTime: d.instant(), Inode: d.uint(), Hash: d.hash()}
}

func appendRow(dst []byte, row *catalog.FileRow) []byte {
	e := encoder{dst}
	e.byte(recordVersion)
	e.stamp(&row.Stamp)
	e.uint(uint64(len(row.Deps)))
	for i := range row.Deps {
		e.string(row.Deps[i].Path)
		e.stamp(&row.Deps[i].Stamp)
	}
	e.uint(uint64(len(row.Refs)))
	for i := range row.Refs {
		r := &row.Refs[i]
		e.string(string(r.Kind))
		e.string(r.Name)
		e.raw(r.UUID[:])
		e.uint(uint64(r.ID))
		e.uint(uint64(r.ProjectID))
	}
	return e.b
}

func decodeRow(rec []byte) (*catalog.FileRow, error) {
	d := newDecoder(rec, recordVersion)
	row := &catalog.FileRow{Stamp: d.stamp()}
	// The capacity follows what has been decoded, not what a damaged count claims.
	for range d.count() {
		row.Deps = append(row.Deps, catalog.Dep{Path: d.string(), Stamp: d.stamp()})
		if d.failed {
			break
		}
	}
	for range d.count() {
		row.Refs = append(row.Refs, catalog.Ref{
			Kind: catalog.Kind(d.string()), Name: d.string(), UUID: d.uuid(), ID: int64(d.uint()), ProjectID: int64(d.uint()),
		})
		if d.failed {
			break
		}
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return row, nil
}
