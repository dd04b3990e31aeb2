package folder

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"fingerpost/resolver/catalog"
)

// MaxTextBytes bounds a file that file() names; the template's own limit, in catalog, is tighter.
const MaxTextBytes = 1 << 20

// ErrKeepsChanging is the error of a read during which the file changed again and again.
var ErrKeepsChanging = errors.New("keeps changing while it is read")

// ReadNamed is Read for a file that file() or ca_file names. No listing has checked its type, so it does before
// opening: opening a device may have an effect, and opening a FIFO unblocks its writer.
func (t *Tree) ReadNamed(at string, limit int64) ([]byte, catalog.Stamp, error) {
	info, err := t.StatFile(at)
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, catalog.Stamp{}, err
	}
	return t.Read(at, limit)
}

// Read returns a file's bytes and their stamp. If size, time or inode change during the read, it reads again. A file
// that changes during all five tries is an error, and the next look tries again.
func (t *Tree) Read(at string, limit int64) (b []byte, stamp catalog.Stamp, err error) {
	for range 5 {
		if b, stamp, err = t.readOnce(at, limit); !errors.Is(err, ErrKeepsChanging) {
			break
		}
	}
	return b, stamp, err
}

func (t *Tree) readOnce(at string, limit int64) (b []byte, stamp catalog.Stamp, err error) {
	// Without O_NONBLOCK a FIFO in the file's place would block the open for ever.
	var f *os.File
	err = t.followLinks(at, func(name string) (err error) {
		f, err = t.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, stamp, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, stamp, err
	}
	if err := regular(before); err != nil {
		return nil, stamp, err
	}
	if before.Size() > limit {
		return nil, stamp, fmt.Errorf("is %d bytes long; at most 1 MiB (%d bytes) is allowed", before.Size(), limit)
	}
	b = make([]byte, before.Size()+1) // one byte more, to see whether the file grows
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, stamp, err
	}
	b = b[:n]
	after, err := t.StatFile(at)
	if err != nil {
		return nil, stamp, err
	}
	stamp = StatOf(after)
	stamp.Hash = sha256.Sum256(b)
	if !StatOf(before).SameStat(stamp) || int64(len(b)) != stamp.Size {
		return nil, catalog.Stamp{}, ErrKeepsChanging
	}
	return b, stamp, nil
}

// StatOf returns a stamp without the hash.
func StatOf(info fs.FileInfo) catalog.Stamp {
	s := catalog.Stamp{Size: info.Size(), ModTime: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Inode, s.Changed = st.Ino, changed(st)
	}
	return s
}

// Renamed returns the stamp of a file that was renamed to at after it was read: renaming changes the inode's ctime. If
// the file differs in anything else, the stamp is returned unchanged, and a look finds the difference.
func Renamed(s catalog.Stamp, at string) catalog.Stamp {
	info, err := os.Lstat(at)
	if err != nil {
		return s
	}
	is := StatOf(info)
	now := s
	if now.Changed = is.Changed; !now.SameStat(is) {
		return s
	}
	return now
}

func regular(info fs.FileInfo) error {
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return errors.New("is a folder; only regular files are read")
	case m&fs.ModeNamedPipe != 0:
		return errors.New("is a FIFO; only regular files are read")
	case m&fs.ModeSocket != 0:
		return errors.New("is a socket; only regular files are read")
	}
	return errors.New("is a device or special file; only regular files are read")
}
