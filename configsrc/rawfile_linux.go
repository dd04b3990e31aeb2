package configsrc

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A rawFile is a file without what package os does beside: for each file that it opens, os asks five system calls in
// vain whether the poller can wait for it. It has no finalizer; whoever opens it closes it.
type rawFile struct {
	fd   int
	name string
}

// openRaw is os.OpenFile for a rawFile.
func openRaw(name string, flags int, perm fs.FileMode) (f rawFile, err error) {
	err = uninterrupted(func() (err error) {
		f.fd, err = unix.Open(name, flags|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	f.name = name
	return f, pathError("open", name, err)
}

// uninterrupted calls f again where a signal came in between.
func uninterrupted(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (f rawFile) Name() string { return f.name }

func (f rawFile) Close() error { return pathError("close", f.name, unix.Close(f.fd)) }

func (f rawFile) Chown(uid, gid int) error {
	return pathError("chown", f.name, uninterrupted(func() error { return unix.Fchown(f.fd, uid, gid) }))
}

func (f rawFile) Chmod(mode fs.FileMode) error {
	return pathError("chmod", f.name, uninterrupted(func() error { return unix.Fchmod(f.fd, uint32(mode.Perm())) }))
}

func (f rawFile) Sync() error {
	return pathError("sync", f.name, uninterrupted(func() error { return unix.Fsync(f.fd) }))
}

func (f rawFile) Write(b []byte) (written int, err error) {
	for written < len(b) && err == nil {
		n := 0
		err = uninterrupted(func() (err error) { n, err = unix.Write(f.fd, b[written:]); return err })
		if n == 0 && err == nil {
			err = io.ErrUnexpectedEOF
		}
		written += max(0, n)
	}
	return written, pathError("write", f.name, err)
}

// readAll reads what there is, which is taken to be size bytes, and no more than limit and one byte.
func (f rawFile) readAll(size, limit int64) (b []byte, err error) {
	b = make([]byte, 0, size+1)
	for int64(len(b)) <= limit {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n := 0
		err = uninterrupted(func() (err error) { n, err = unix.Read(f.fd, b[len(b):cap(b)]); return err })
		if err != nil {
			return nil, pathError("read", f.name, err)
		}
		if n == 0 {
			break
		}
		b = b[:len(b)+n]
	}
	return b, nil
}

func (f rawFile) Stat() (fs.FileInfo, error) {
	info := &rawInfo{name: filepath.Base(f.name)}
	err := uninterrupted(func() error { return syscall.Fstat(f.fd, &info.st) })
	return info, pathError("stat", f.name, err)
}

// A rawInfo is what os tells of a file of any kind.
type rawInfo struct {
	name string
	st   syscall.Stat_t
}

func (i *rawInfo) Name() string       { return i.name }
func (i *rawInfo) Size() int64        { return i.st.Size }
func (i *rawInfo) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }
func (i *rawInfo) IsDir() bool        { return i.Mode().IsDir() }
func (i *rawInfo) Sys() any           { return &i.st }

func (i *rawInfo) Mode() fs.FileMode {
	mode := fs.FileMode(i.st.Mode & 0o777)
	switch i.st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
	case syscall.S_IFDIR:
		mode |= fs.ModeDir
	case syscall.S_IFLNK:
		mode |= fs.ModeSymlink
	default:
		mode |= fs.ModeIrregular
	}
	return mode
}

// createTemp is os.CreateTemp with permissions, of which the process's umask takes some away.
func createTemp(dir, pattern string, perm fs.FileMode) (TempFile, error) {
	prefix, suffix, _ := strings.Cut(pattern, "*")
	for try := 0; ; try++ {
		name := filepath.Join(dir, prefix+strconv.FormatUint(uint64(rand.Uint32()), 10)+suffix)
		f, err := openRaw(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, perm)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrExist) || try > 10_000 {
			return nil, err
		}
	}
}

// readFile is os.ReadFile of what is no link, and of a FIFO it reads nothing: what an exchange has brought out may be either.
func readFile(name string) ([]byte, error) {
	f, err := openRaw(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return f.readAll(info.Size(), 1<<62)
}

// rename is os.Rename of files.
func rename(from, to string) error {
	err := uninterrupted(func() error { return unix.Rename(from, to) })
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// remove is os.Remove of a file.
func remove(name string) error {
	return pathError("remove", name, uninterrupted(func() error { return unix.Unlink(name) }))
}

func syncDir(name string) error {
	f, err := openRaw(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// readPlain reads a regular file whose path leads through no link, and which has no other name. ok is false where any of
// this cannot be said, or the file does not hold still; whoever asks then finds out why by other means.
func readPlain(name string, limit int64) (b []byte, info fs.FileInfo, ok bool) {
	f := rawFile{name: name}
	err := uninterrupted(func() (err error) {
		f.fd, err = unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{
			Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		return err
	})
	if err != nil {
		return nil, nil, false
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil || !before.Mode().IsRegular() || before.Size() > limit || before.Sys().(*syscall.Stat_t).Nlink != 1 {
		return nil, nil, false
	}
	if b, err = f.readAll(before.Size(), limit); err != nil {
		return nil, nil, false
	}
	after, err := f.Stat()
	same := err == nil && int64(len(b)) == before.Size() && statOf(before).SameStat(statOf(after))
	return b, after, same
}

// changed is when an inode was changed last.
func changed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Time{}
}

// A fileID tells one file or folder from all others. The zero value is none.
type fileID struct{ dev, inode uint64 }

// identify is os.Stat for whoever asks often which file or folder a name leads to.
func identify(name string) (id fileID, err error) {
	var st syscall.Stat_t
	if err := uninterrupted(func() error { return syscall.Stat(name, &st) }); err != nil {
		return id, pathError("stat", name, err)
	}
	return fileID{uint64(st.Dev), st.Ino}, nil // there are processors with fewer bits
}

// seen is what shows of a name.
type seen struct {
	dir   bool
	moved int64 // when it was changed last, in nanoseconds
}

// lookAt is os.Lstat for whoever asks often.
func lookAt(name string) (s seen, ok bool) {
	var st syscall.Stat_t
	err := uninterrupted(func() error { return syscall.Lstat(name, &st) })
	return seen{dir: st.Mode&syscall.S_IFMT == syscall.S_IFDIR, moved: st.Mtim.Nano()}, err == nil
}
