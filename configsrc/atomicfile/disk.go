package atomicfile

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
)

// A Disk is the file system as a write uses it, one step a method, so that tests can stop, break or record each
// (Options.Disk). Names are paths with all links resolved, or the base name of a folder's file behind such a path.
// Errors wrap the system's. Its methods may be called from any goroutine.
type Disk interface {
	// CreateTemp creates a new, empty file as os.CreateTemp does, with at most these permissions and that of its owner to
	// write.
	CreateTemp(dir, pattern string, perm fs.FileMode) (TempFile, error)
	Stat(name string) (fs.FileInfo, error)
	// Lstat is Stat that does not follow a link.
	Lstat(name string) (fs.FileInfo, error)
	ReadFile(name string) ([]byte, error)
	// Rename renames a file within its folder, atomically, and replaces the file that has the name.
	Rename(from, to string) error
	// Exchange swaps two files atomically; errors.ErrUnsupported where the file system cannot.
	Exchange(a, b string) error
	// Link gives a file a second name. It never replaces: fs.ErrExist if the name is taken.
	Link(from, to string) error
	Remove(name string) error
	// SyncFolder makes changes of names in a folder durable.
	SyncFolder(dir string) error
}

// A TempFile is a temporary file being written.
type TempFile interface {
	Name() string
	Stat() (fs.FileInfo, error)
	Chown(uid, gid int) error
	Chmod(fs.FileMode) error
	Write([]byte) (int, error)
	Sync() error
	Close() error
}

// OSDisk is the real disk. Other Disks wrap it.
type OSDisk struct{}

func (OSDisk) CreateTemp(dir, pattern string, perm fs.FileMode) (TempFile, error) {
	var f *os.File
	_, err := freshName(dir, pattern, func(name string) (err error) {
		f, err = os.OpenFile(name, os.O_RDONLY|os.O_CREATE|os.O_EXCL, perm|0o200)
		return err
	})
	if err != nil {
		return nil, err
	}
	return tempFile{f}, nil
}

// freshName calls create with names in a folder until it finds one that is not taken.
func freshName(dir, pattern string, create func(name string) error) (name string, err error) {
	prefix, suffix, _ := strings.Cut(pattern, "*")
	for range 10_000 {
		name = filepath.Join(dir, prefix+strconv.FormatUint(uint64(rand.Uint32()), 10)+suffix)
		if err = create(name); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return name, err
}

// A tempFile has no descriptor for writing but within Write. Every program that the process starts (git, a NATS server)
// has a copy of its descriptors until its exec: with one for writing among them, a file that was just written would
// look as if an editor were writing it, and the next write to it would be refused (hold).
type tempFile struct{ *os.File }

// Write appends. No program is started meanwhile.
func (t tempFile) Write(b []byte) (n int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	w, err := os.OpenFile(t.Name(), os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return 0, err
	}
	n, err = w.Write(b)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return n, err
}

func (OSDisk) Stat(name string) (fs.FileInfo, error)  { return os.Stat(name) }
func (OSDisk) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// unfollowed opens a file for reading unless it is a link. A FIFO opens at once, whether or not it has a writer.
const unfollowed = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// ReadFile is os.ReadFile that follows no link and reads nothing from a FIFO: an exchange may bring out either.
func (OSDisk) ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, unfollowed, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return nil, err
	}
	return io.ReadAll(f)
}

func (OSDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (OSDisk) Link(from, to string) error   { return os.Link(from, to) }
func (OSDisk) Remove(name string) error     { return os.Remove(name) }

func (OSDisk) SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
