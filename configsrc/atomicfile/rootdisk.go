package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A RootDisk is the real disk for names below one folder. Each step opens the folder, and links below it that lead out
// of it are not followed, also if they come between two steps.
type RootDisk struct {
	Dir  string                   // with all links resolved; names begin with it
	Open func() (*os.Root, error) // opens Dir; each call once more, because Dir may be another folder by then
}

// in runs f with the folder and a name in it.
func (d RootDisk) in(op, name string, f func(root *os.Root, rel string) error) error {
	rel, err := filepath.Rel(d.Dir, name)
	if err != nil || !filepath.IsLocal(rel) {
		return &fs.PathError{Op: op, Path: name, Err: errors.New("leads out of the config folder")}
	}
	root, err := d.Open()
	if err != nil {
		return err
	}
	defer root.Close()
	return f(root, rel)
}

// CreateTemp implements Disk.
func (d RootDisk) CreateTemp(dir, pattern string, perm fs.FileMode) (TempFile, error) {
	var f *os.File
	name, err := freshName(dir, pattern, func(name string) error {
		return d.in("create", name, func(root *os.Root, rel string) (err error) {
			f, err = root.OpenFile(rel, os.O_RDONLY|os.O_CREATE|os.O_EXCL, perm|0o200)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return rootTemp{f, d, name}, nil
}

// A rootTemp is a tempFile of a RootDisk.
type rootTemp struct {
	*os.File
	disk RootDisk
	name string
}

// Name returns the whole path.
func (t rootTemp) Name() string { return t.name }

// Write appends. No program is started meanwhile, see tempFile.
func (t rootTemp) Write(b []byte) (n int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	err = t.disk.in("write", t.name, func(root *os.Root, rel string) error {
		w, err := root.OpenFile(rel, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		n, err = w.Write(b)
		return errors.Join(err, w.Close())
	})
	return n, err
}

// Stat implements Disk.
func (d RootDisk) Stat(name string) (info fs.FileInfo, err error) {
	err = d.in("stat", name, func(root *os.Root, rel string) error { info, err = root.Stat(rel); return err })
	return info, err
}

// Lstat implements Disk.
func (d RootDisk) Lstat(name string) (info fs.FileInfo, err error) {
	err = d.in("lstat", name, func(root *os.Root, rel string) error { info, err = root.Lstat(rel); return err })
	return info, err
}

// ReadFile implements Disk, see OSDisk.ReadFile.
func (d RootDisk) ReadFile(name string) (content []byte, err error) {
	err = d.in("open", name, func(root *os.Root, rel string) error {
		named, err := root.Lstat(rel)
		if err != nil {
			return err
		}
		f, err := root.OpenFile(rel, unfollowed, 0) // it follows a link that stays in the folder
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err == nil && !os.SameFile(named, info) {
			return &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
		}
		if err != nil || !info.Mode().IsRegular() && !info.IsDir() {
			return err
		}
		content, err = io.ReadAll(f)
		return err
	})
	return content, err
}

// both runs f with two names.
func (d RootDisk) both(op, a, b string, f func(root *os.Root, a, b string) error) error {
	return d.in(op, a, func(_ *os.Root, relA string) error {
		return d.in(op, b, func(root *os.Root, relB string) error { return f(root, relA, relB) })
	})
}

// Rename implements Disk.
func (d RootDisk) Rename(from, to string) error {
	return d.both("rename", from, to, (*os.Root).Rename)
}

// Link implements Disk.
func (d RootDisk) Link(from, to string) error { return d.both("link", from, to, (*os.Root).Link) }

// Exchange implements Disk.
func (d RootDisk) Exchange(a, b string) error {
	return d.both("exchange", a, b, func(root *os.Root, a, b string) error {
		in, err := root.Open(filepath.Dir(a))
		if err != nil {
			return err
		}
		defer in.Close()
		to, err := root.Open(filepath.Dir(b))
		if err != nil {
			return err
		}
		defer to.Close()
		return exchangeAt(in, filepath.Base(a), to, filepath.Base(b))
	})
}

// Remove implements Disk.
func (d RootDisk) Remove(name string) error {
	return d.in("remove", name, (*os.Root).Remove)
}

// RemoveFolder removes an empty folder in another one. A Root would remove a link in its place, too, which is a
// person's.
func RemoveFolder(in *os.Root, name string) error {
	f, err := in.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Unlinkat(int(f.Fd()), name, unix.AT_REMOVEDIR)
}

// SyncFolder implements Disk.
func (d RootDisk) SyncFolder(dir string) error {
	return d.in("sync", dir, func(root *os.Root, rel string) error {
		f, err := root.Open(rel)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}
