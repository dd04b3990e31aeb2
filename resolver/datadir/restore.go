package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"fingerpost/resolver/ledger"
	"fingerpost/resolver/pebblefs"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrInTheWay: the data directory is not empty. Nothing was changed.
var ErrInTheWay = errors.New("the data directory is not empty")

// RestoreOptions limit what a Restore may do.
type RestoreOptions struct {
	// Replace lets the restored store replace an existing one, which is moved aside and never deleted.
	Replace bool
	// Check restores next to dir, as a trial, and discards the result.
	Check bool
	Now   time.Time
}

// A Restored is the result of a Restore.
type Restored struct {
	Manifest *Manifest
	Aside    string // where the previous data directory is now; "" if there was none
}

// Restore creates the store in dir from a backup. It builds the store and the ledger next to dir, compares every byte
// with the backup's hashes, opens and reads them, syncs them, and then puts them in place by one rename, or by an
// exchange with the previous store. Until that step dir is unchanged, whatever happens. It keeps owner and mode of the
// directory that it replaces. No process may have dir open: ErrLocked. Other errors are ErrArchive and ErrInTheWay, and
// those of the disk.
func Restore(dir string, in io.Reader, o RestoreOptions) (*Restored, error) {
	r, err := newRestore(dir, o)
	if err == nil {
		defer r.close()
		var m *Manifest
		if m, err = readArchive(in, r); err == nil {
			err = r.finish(m)
		}
		if err == nil {
			return &Restored{Manifest: m, Aside: r.aside}, nil
		}
	}
	return nil, fmt.Errorf("restore %s: %w", dir, err)
}

// A restore is a running Restore.
type restore struct {
	o       RestoreOptions
	dir     string      // links resolved
	former  os.FileInfo // info of dir; nil: it does not exist
	replace bool        // dir holds a store
	lock    io.Closer   // of dir, or nil
	staging string      // next to dir, locked; everything in it may be deleted at any time
	staged  io.Closer   // the lock
	aside   string
	audited int64 // newest entry of the audit trail that the store knows of
}

func newRestore(dir string, o RestoreOptions) (*restore, error) {
	r := &restore{o: o, dir: filepath.Clean(dir)}
	if real, err := filepath.EvalSymlinks(r.dir); err == nil {
		r.dir = real // the link stays, its target is replaced
	}
	if err := r.checkTarget(); err != nil {
		r.close()
		return nil, err
	}
	if err := r.stage(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// checkTarget checks whether dir may be replaced.
func (r *restore) checkTarget() error {
	info, err := os.Lstat(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return pebblefs.RootCause(err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: it is no folder", ErrInTheWay)
	}
	r.former = info
	names, err := vfs.Default.List(r.dir)
	if err != nil {
		return pebblefs.RootCause(err)
	}
	if r.replace = len(names) > 0; !r.replace || r.o.Check {
		return nil
	}
	if !holdsStore(names) {
		return fmt.Errorf("%w, and what is in it is no store of fingerpost (%s, …)", ErrInTheWay, names[0])
	}
	if r.lock, err = pebblefs.LockFile(filepath.Join(r.dir, "LOCK")); err != nil {
		return err
	}
	if !r.o.Replace {
		return ErrInTheWay
	}
	return nil
}

// stage makes the folder in which the store is built, and removes those of crashed restores.
func (r *restore) stage() error {
	parent := filepath.Dir(r.dir)
	if err := os.MkdirAll(parent, 0o755); err != nil { // parents are not private
		return pebblefs.WithoutPath(err)
	}
	pattern := r.dir + ".restore-*.tmp"
	left, _ := filepath.Glob(pattern) // an invalid pattern matches nothing
	for _, name := range left {
		if lock, err := pebblefs.LockFile(filepath.Join(name, "LOCK")); err == nil {
			_ = os.RemoveAll(name)
			lock.Close()
		}
	}
	var err error
	r.staging, err = os.MkdirTemp(parent, filepath.Base(pattern))
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the store is built beside the former one, and this user may not write to %s: run it as root, "+
			"the store gets the owner of the former one: %w", parent, fs.ErrPermission)
	}
	if err != nil {
		return pebblefs.WithoutPath(err)
	}
	if err := os.Chmod(r.staging, pebblefs.PrivateDir); err != nil { // the umask may have taken the owner's rights
		return pebblefs.WithoutPath(err)
	}
	if r.staged, err = pebblefs.LockFile(filepath.Join(r.staging, "LOCK")); err != nil {
		return pebblefs.WithoutPath(err)
	}
	err = pebblefs.MkdirPrivate(r.built())
	if err == nil {
		err = pebblefs.MkdirPrivate(r.ledger())
	}
	return pebblefs.WithoutPath(err)
}

// built returns the folder of the store being built.
func (r *restore) built() string { return filepath.Join(r.staging, "store") }

// ledger returns the folder of the ledger in it.
func (r *restore) ledger() string { return filepath.Join(r.built(), ledger.Folder) }

// begin checks that there is enough room.
func (r *restore) begin(m *Manifest) error {
	usage, err := vfs.Default.GetDiskUsage(r.staging)
	if err == nil && uint64(m.Bytes()) > usage.AvailBytes {
		return fmt.Errorf("%w: it needs %d bytes, and %d are free", syscall.ENOSPC, m.Bytes(), usage.AvailBytes)
	}
	return nil
}

func (r *restore) file(f StoredFile, content io.Reader) error {
	out, err := pebblefs.OpenPrivate(filepath.Join(r.built(), f.Name), os.O_WRONLY|os.O_EXCL)
	if err != nil {
		return pebblefs.WithoutPath(err)
	}
	_, err = io.Copy(out, content)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return pebblefs.WithoutPath(err)
	}
	return nil
}

// finish opens the new store and puts it in place.
func (r *restore) finish(m *Manifest) error {
	if err := r.verify(m); err != nil {
		return err
	}
	if r.o.Check {
		return nil
	}
	if err := r.markQueue(m); err != nil {
		return err
	}
	if err := r.likeFormer(); err != nil {
		return err
	}
	for _, dir := range []string{r.ledger(), r.built(), r.staging, filepath.Dir(r.dir)} {
		if err := pebblefs.SyncDir(dir); err != nil {
			return err
		}
	}
	// Everything that can fail for its own reasons is done; from here on only names change.
	if err := r.place(); err != nil {
		return err
	}
	return pebblefs.SyncDir(filepath.Dir(r.dir))
}

func (r *restore) verify(m *Manifest) error {
	// The generations after the backup will be others than those that edges and clients have seen, so they are of another
	// epoch.
	s, err := store.Open(r.built(), store.Options{CacheBytes: store.InspectCacheBytes, NewEpoch: true})
	if errors.Is(err, store.ErrUnavailable) {
		return err // an error of the disk
	}
	if err != nil {
		return fmt.Errorf("%w: the store in it does not open: %w", ErrArchive, err)
	}
	err = s.Verify()
	if err == nil {
		err = r.verifyLedger()
	}
	if err == nil {
		r.audited, err = s.AuditID()
	}
	if counts := s.Counts(); err == nil && (s.Generation() != m.Generation ||
		counts.Projects != m.Projects || counts.Domains != m.Domains) {
		err = fmt.Errorf("its manifest tells of generation %d with %d projects and %d domains, the store in it of %d with "+
			"%d and %d",
			m.Generation, m.Projects, m.Domains, s.Generation(), counts.Projects, counts.Domains)
	}
	if err := errors.Join(err, s.Close()); errors.Is(err, store.ErrUnavailable) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", ErrArchive, err)
	}
	return os.Remove(filepath.Join(r.built(), "LOCK")) // left by the verification
}

// verifyLedger reads the ledger through.
func (r *restore) verifyLedger() error {
	l, err := ledger.Open(r.ledger(), ledger.Options{})
	if err != nil {
		return err
	}
	return errors.Join(l.Verify(), l.Close(), os.Remove(filepath.Join(r.ledger(), "LOCK")))
}

// markQueue marks the queued mails of the backup as uncertain, because they may have been sent since it was made, adds the
// restore to the audit trail, and begins an epoch of events.
func (r *restore) markQueue(m *Manifest) error {
	l, err := ledger.Open(r.ledger(), ledger.Options{})
	if err != nil {
		return err
	}
	any, err := l.AnyQueued()
	if err == nil && any {
		err = l.DoubtQueue()
	}
	if err == nil {
		err = l.NoteRestore(r.o.Now, m.Generation, m.CreatedAt, r.audited)
	}
	if err == nil {
		err = l.NewEpoch()
	}
	return errors.Join(err, l.Close(), os.Remove(filepath.Join(r.ledger(), "LOCK")))
}

// likeFormer gives the new store the owner of the previous one: the operator may restore as root, and the service must
// be able to open the result.
func (r *restore) likeFormer() error {
	if r.former == nil {
		return nil
	}
	owner, ok := r.former.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return pebblefs.WithoutPath(filepath.WalkDir(r.built(), func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, int(owner.Uid), int(owner.Gid))) //nolint:gosec // a private folder
	}))
}

// place is the commit. The previous store must get its name aside in the same step in which the new one gets dir: so
// the new one takes the name aside first, then both are exchanged.
func (r *restore) place() error {
	if !r.replace {
		err := syscall.Rename(r.built(), r.dir) // no dir, or an empty folder, which os.Rename refuses
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
			return ErrInTheWay // another process was faster
		}
		return r.mountPoint(err)
	}
	aside := pebblefs.FreeName(r.dir+pebblefs.ReplacedInfix, r.o.Now)
	if err := os.Rename(r.built(), aside); err != nil {
		return pebblefs.WithoutPath(err)
	}
	err := pebblefs.Exchange(aside, r.dir)
	if err != nil {
		_ = os.Rename(aside, r.built()) // to be removed with the staging folder
		return r.mountPoint(err)
	}
	r.aside = aside
	// it was private before, or the next start reports an error
	_, _, _ = pebblefs.MakePrivate(aside, []string{ledger.Folder})
	return nil
}

// mountPoint explains the error for the mount point of a container's volume.
func (r *restore) mountPoint(err error) error {
	if errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV) {
		return fmt.Errorf("it is a mount point, which cannot be replaced (%w): restore into a folder in it, and start the "+
			"service with that as --data", pebblefs.RootCause(err))
	}
	if err != nil {
		return pebblefs.WithoutPath(err)
	}
	return nil
}

func (r *restore) close() {
	if r.staging != "" {
		_ = os.RemoveAll(r.staging)
	}
	for _, lock := range []io.Closer{r.staged, r.lock} {
		if lock != nil {
			lock.Close()
		}
	}
}
