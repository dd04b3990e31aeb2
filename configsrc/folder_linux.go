package configsrc

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"fingerpost/resolver/catalog"
)

// A folder has the names that were in a folder when it was read. Each is stated when it is looked at, relative to the
// folder, into memory that all share: a folder may have a hundred thousand.
type folder struct {
	f     *os.File
	names [][]byte // as they were read; of each the type, the length and the name
	stat  unix.Stat_t
}

// Of a Linux directory entry: where its length, type and name stand, see getdents64(2).
const (
	direntLength = 16
	direntType   = 18
	direntName   = 19
)

// openFolder reads the names at once, or they would not be those of one moment. The folder takes f over.
func (t *tree) openFolder(f *os.File) (*folder, error) {
	if t.dirents == nil {
		t.dirents = make([]byte, 32<<10)
	}
	d, buf := &folder{f: f}, t.dirents
	for {
		n, err := unix.ReadDirent(int(f.Fd()), buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			f.Close()
			return nil, &fs.PathError{Op: "readdirent", Path: f.Name(), Err: err}
		}
		if n <= 0 {
			return d, nil
		}
		if names := namesIn(buf[:n]); len(names) > 0 {
			d.names = append(d.names, bytes.Clone(names))
		}
	}
}

// namesIn writes the names over the entries that one read has brought: they are shorter.
func namesIn(entries []byte) (names []byte) {
	names = entries[:0]
	for len(entries) >= direntName {
		length := int(binary.NativeEndian.Uint16(entries[direntLength:]))
		if length < direntName || length > len(entries) {
			break
		}
		name := entries[direntName:length]
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
		if s := string(name); s != "." && s != ".." && s != "" {
			n := len(name) // some file systems count 255 characters, not bytes
			names = append(append(names, entries[direntType], byte(n), byte(n>>8)), name...)
		}
		entries = entries[length:]
	}
	return names
}

// next returns the next name, which is valid as long as the folder, with its type: no bits at all for a regular file,
// fs.ModeIrregular for one that only stat can tell.
func (d *folder) next() (name string, kind fs.FileMode, ok bool) {
	if len(d.names) == 0 {
		return "", 0, false
	}
	names := d.names[0]
	switch names[0] {
	case unix.DT_REG:
	case unix.DT_DIR:
		kind = fs.ModeDir
	case unix.DT_LNK:
		kind = fs.ModeSymlink
	default:
		kind = fs.ModeIrregular
	}
	const head = 3
	n := head + int(names[1]) + int(names[2])<<8
	name = unsafe.String(unsafe.SliceData(names[head:n]), n-head) // nobody writes there any more
	if d.names[0] = names[n:]; len(names) == n {
		d.names = d.names[1:]
	}
	return name, kind, true
}

// regular fills in the entry of a regular file; false for anything else, and for what cannot be stated.
func (d *folder) regular(name string, e *entry) bool {
	if unix.Fstatat(int(d.f.Fd()), name, &d.stat, unix.AT_SYMLINK_NOFOLLOW) != nil || d.stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	e.stat = catalog.Stamp{Size: d.stat.Size, ModTime: time.Unix(d.stat.Mtim.Unix()), Changed: time.Unix(d.stat.Ctim.Unix()), Inode: d.stat.Ino}
	return true
}

func (d *folder) close() { d.f.Close() }
