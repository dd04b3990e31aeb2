package store

import "encoding/binary"

func appendCounts(dst []byte, c Counts) []byte {
	dst = binary.AppendUvarint(dst, uint64(c.Projects))
	dst = binary.AppendUvarint(dst, uint64(c.Domains))
	return binary.AppendUvarint(dst, uint64(c.Wildcards))
}

func readCounts(g getter) (c Counts, err error) {
	_, err = g.get(keyCounts, func(v []byte) error {
		d := decoder{s: string(v)}
		c = Counts{Projects: int(d.uint()), Domains: int(d.uint()), Wildcards: int(d.uint())}
		return d.err()
	})
	return c, err
}
