package store

import "fingerpost/resolver/catalog"

// A fileRecord is a row of the file table.
type fileRecord struct {
	_     struct{} `cbor:",toarray"`
	Stamp stampRecord
	Deps  []depRecord
	Refs  []catalog.Ref
}

type depRecord struct {
	_     struct{} `cbor:",toarray"`
	Path  string
	Stamp stampRecord
}

type stampRecord struct {
	_                struct{} `cbor:",toarray"`
	Size             int64
	ModTime, Changed instant
	Inode            uint64
	Hash             [32]byte
}

func stampRecordOf(s *catalog.Stamp) stampRecord {
	return stampRecord{Size: s.Size, ModTime: instantOf(s.ModTime), Changed: instantOf(s.Changed), Inode: s.Inode,
		Hash: s.Hash}
}

func (s *stampRecord) stamp() catalog.Stamp {
	return catalog.Stamp{Size: s.Size, ModTime: s.ModTime.time(), Changed: s.Changed.time(), Inode: s.Inode, Hash: s.Hash}
}

// encodeRow encodes a row with refs. The row of a file with warnings gets no hash, so that the next start reads the
// file again.
func encodeRow(row *catalog.FileRow, refs []catalog.Ref) []byte {
	r := fileRecord{Stamp: stampRecordOf(&row.Stamp), Refs: refs}
	if row.Warned {
		r.Stamp.Hash = [32]byte{}
	}
	for i := range row.Deps {
		r.Deps = append(r.Deps, depRecord{Path: row.Deps[i].Path, Stamp: stampRecordOf(&row.Deps[i].Stamp)})
	}
	return encode(&r)
}

func decodeRow(rec []byte) (*catalog.FileRow, error) {
	var r fileRecord
	if err := decode(rec, &r); err != nil {
		return nil, err
	}
	row := &catalog.FileRow{Stamp: r.Stamp.stamp(), Refs: r.Refs, Warned: r.Stamp.Hash == [32]byte{}}
	for i := range r.Deps {
		row.Deps = append(row.Deps, catalog.Dep{Path: r.Deps[i].Path, Stamp: r.Deps[i].Stamp.stamp()})
	}
	for i := range row.Refs {
		row.Refs[i].Kind = catalog.KnownKind(row.Refs[i].Kind)
	}
	return row, nil
}
