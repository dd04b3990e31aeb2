package configsrc

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrChanged is returned by EditFile when somebody else kept writing the file.
var ErrChanged = errors.New("the file was changed by somebody else at the same time")

// errStranded: a save that came in between could not be put back. It is in the temporary file, which must stay until
// clearStrays gives it back.
var errStranded = errors.New("the save will be put back as soon as the disk allows it")

// errFolderLocked: somebody holds a lock on the folder that keeps writers out.
var errFolderLocked = errors.New("another process keeps the folder locked")

// lockWait is how long a write waits for such a lock: longer than clearing strays takes.
const lockWait = time.Second

// EditFile applies edit to what is in a file of the config folder at this moment and swaps the result in: a temporary
// file in the same folder, fsynced, exchanged atomically with the old one, and then what came out is compared with what
// edit had been given. If somebody else has saved in between, their version is put back and edit runs once more on it;
// a second time gives ErrChanged (contract files.md 5). Mode and owner stay; of a symbolic link the target is replaced.
// When edit returns its argument's bytes, nothing is written.
//
// dir is the config folder, path slash-separated below it. On return without error the file and its folder are synced.
func EditFile(dir, path string, edit func(src []byte) ([]byte, error)) error {
	return editFile(OSDisk{}, dir, path, edit)
}

func editFile(d Disk, dir, path string, edit func(src []byte) ([]byte, error)) error {
	target, err := editTarget(dir, path)
	if err != nil {
		return err
	}
	for range 2 {
		err := editOnce(d, target, edit)
		if !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return fmt.Errorf("edit %s: %w", path, ErrChanged)
}

// CreateFile writes a new file of the config folder; one that exists is an error wrapping fs.ErrExist.
func CreateFile(dir, path string, content []byte) error {
	name := filepath.Join(dir, filepath.FromSlash(path))
	lock, err := lockFolder(filepath.Dir(name))
	if err != nil {
		return fmt.Errorf("write into the config folder: %w", cause(err))
	}
	defer lock.Close()
	var d OSDisk
	temp, _, err := writeTemp(d, filepath.Dir(name), content, nil)
	if err != nil {
		return err
	}
	defer d.Remove(temp)
	if err := d.Link(temp, name); err != nil { // unlike rename, never replaces
		return fmt.Errorf("create %s: %w", path, cause(linkCause(err)))
	}
	return syncFolder(d, filepath.Dir(name))
}

// An unfitError says why a file is not written to, whatever its content is.
type unfitError struct{ path, why string }

func (e *unfitError) Error() string { return "edit " + e.path + ": " + e.why }

func linkCause(err error) error {
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}

// editTarget follows links inside the folder and refuses what must not be replaced.
func editTarget(dir, path string) (string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("open config folder: %w", cause(err))
	}
	target, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, cause(err))
	}
	if rel, err := filepath.Rel(root, target); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", &unfitError{path, "it is a link that leads out of the config folder; put the file itself into the folder"}
	}
	info, err := os.Lstat(target)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, cause(err))
	}
	if !info.Mode().IsRegular() {
		return "", &unfitError{path, "it is no regular file"}
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return "", &unfitError{path, fmt.Sprintf("it has %d hard links, and replacing it would part them; leave it one name", st.Nlink)}
	}
	return target, nil
}

func editOnce(d Disk, target string, edit func([]byte) ([]byte, error)) error {
	info, err := d.Stat(target)
	if err != nil {
		return fmt.Errorf("open %s: %w", filepath.Base(target), cause(err))
	}
	src, err := d.ReadFile(target)
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(target), cause(err))
	}
	out, err := edit(bytes.Clone(src))
	if err != nil || bytes.Equal(out, src) {
		return err
	}
	lock, err := lockFolder(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("write into the config folder: %w", cause(err))
	}
	defer lock.Close()
	temp, _, err := writeSwap(d, target, out, info, sha256.Sum256(src))
	if err != nil {
		return err
	}
	// Nothing live has been touched up to here.
	_, err = exchange(d, temp, target, sha256.Sum256(src), sha256.Sum256(out))
	if !errors.Is(err, errStranded) {
		defer d.Remove(temp)
	}
	if err != nil {
		return err
	}
	return syncFolder(d, filepath.Dir(target))
}

// writeTemp writes and syncs a temporary file with the mode and owner of like. info is what the disk says of it.
func writeTemp(d Disk, dir string, content []byte, like fs.FileInfo) (name string, info fs.FileInfo, err error) {
	mode := fs.FileMode(0o644)
	if like != nil {
		mode = like.Mode().Perm()
	}
	f, err := d.CreateTemp(dir, tempPattern, mode)
	if err != nil {
		return "", nil, fmt.Errorf("write into the config folder: %w", cause(err))
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("write into the config folder: %w", cause(cerr))
		}
		if err != nil {
			_ = d.Remove(f.Name())
		}
	}()
	if _, err := f.Write(content); err != nil {
		return "", nil, fmt.Errorf("write into the config folder: %w", cause(err))
	}
	if info, err = f.Stat(); err != nil {
		return "", nil, fmt.Errorf("write into the config folder: %w", cause(err))
	}
	chowned := like != nil && chownLike(f, info, like)
	if chowned || info.Mode().Perm() != mode {
		if err := f.Chmod(mode); err != nil {
			return "", nil, fmt.Errorf("write into the config folder: %w", cause(err))
		}
	}
	if err := f.Sync(); err != nil {
		return "", nil, fmt.Errorf("sync the new file: %w", cause(err))
	}
	if info, err = f.Stat(); err != nil { // there are file systems that settle the time only now
		return "", nil, fmt.Errorf("write into the config folder: %w", cause(err))
	}
	return f.Name(), info, nil
}

// chownLike gives a file the owner of another one, where that is not so already.
func chownLike(f TempFile, have, like fs.FileInfo) (tried bool) {
	is, ok := have.Sys().(*syscall.Stat_t)
	want, ok2 := like.Sys().(*syscall.Stat_t)
	if !ok || !ok2 || is.Uid == want.Uid && is.Gid == want.Gid {
		return false
	}
	// Only root may give a file away; where the owner is another, the mode at least stays.
	_ = f.Chown(int(want.Uid), int(want.Gid))
	return true
}

// writeSwap writes and syncs what is to take the place of target, which has the hash old, under a name that says so.
// Content nil is for a removal.
func writeSwap(d Disk, target string, content []byte, like fs.FileInfo, old [sha256.Size]byte) (name string, info fs.FileInfo, err error) {
	if len(filepath.Base(target)) > maxSwapBase {
		return "", nil, fmt.Errorf("replace %s: its name is longer than %d bytes, which leaves no room for a temporary name; rename it",
			filepath.Base(target), maxSwapBase)
	}
	temp, info, err := writeTemp(d, filepath.Dir(target), content, like)
	if err != nil {
		return "", nil, err
	}
	name = swapName(temp, target, old, sha256.Sum256(content))
	if err := d.Rename(temp, name); err != nil {
		_ = d.Remove(temp)
		return "", nil, fmt.Errorf("write into the config folder: %w", linkCause(err))
	}
	return name, info, nil
}

// exchange swaps temp, which has the hash ours, and target, unless target no longer has the content with the hash want.
// kept is as giveBack returns it.
func exchange(d Disk, temp, target string, want, ours [sha256.Size]byte) (kept string, err error) {
	told := !beingWritten(temp) // nobody has: else the file system tells nothing
	err = d.Exchange(temp, target)
	if errors.Is(err, errors.ErrUnsupported) {
		return "", replaceChecked(d, temp, target, want)
	}
	if err != nil {
		return "", fmt.Errorf("replace %s: %w", filepath.Base(target), err)
	}
	// In this order: nobody finds the old file by its name any more, so once none has it open for writing it stays as it is.
	busy := told && beingWritten(temp)
	out, err := d.ReadFile(temp)
	if err == nil && !busy && sha256.Sum256(out) == want {
		return "", nil
	}
	kept, backErr := giveBack(d, temp, target, ours, told)
	if backErr != nil {
		return "", fmt.Errorf("put %s back after a save in between: %w; %w", filepath.Base(target), backErr, errStranded)
	}
	if err != nil {
		return kept, fmt.Errorf("read what %s was: %w", filepath.Base(target), cause(err))
	}
	return kept, ErrChanged
}

// giveBack swaps again what a swap has brought into temp, where it had put what has the hash ours. Where somebody saves
// in between once more, it is that save which stays, and the one before, which need not be in it (somebody may have added
// a line to what stood there for a moment), is kept beside the file, under the name kept. An error leaves somebody's save
// in temp.
func giveBack(d Disk, temp, target string, ours [sha256.Size]byte, told bool) (kept string, err error) {
	there, known := ours, true // in target
	for round := range maxGiveBack {
		in, inErr := d.ReadFile(temp)
		if err := d.Exchange(temp, target); err != nil {
			return "", err
		}
		busy := told && beingWritten(temp)
		out, err := d.ReadFile(temp)
		if err != nil {
			return "", cause(err)
		}
		if !busy && (!known || sha256.Sum256(out) == there) {
			if round == 0 {
				return "", nil
			}
			return keepBeside(d, temp, target)
		}
		there, known = sha256.Sum256(in), inErr == nil
	}
	return "", errors.New("somebody keeps saving it")
}

// keepBeside gives the save in temp a name beside its file, for a person to decide.
func keepBeside(d Disk, temp, target string) (kept string, err error) {
	n, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(temp), ".fingerpost-"), "-")
	kept = fmt.Sprintf("%s.%s~", target, strings.TrimSuffix(n, ".tmp"))
	if err := d.Link(temp, kept); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", linkCause(err)
	}
	return kept, nil
}

// maxGiveBack is far more saves than there can be between so many swaps.
const maxGiveBack = 100

// replaceChecked is for file systems that cannot exchange: there a save between the two steps would be lost, so they
// are kept as close as they can be.
func replaceChecked(d Disk, temp, target string, want [sha256.Size]byte) error {
	now, err := d.ReadFile(target)
	if err != nil || sha256.Sum256(now) != want {
		return ErrChanged
	}
	if err := d.Rename(temp, target); err != nil {
		return fmt.Errorf("replace %s: %w", filepath.Base(target), linkCause(err))
	}
	return nil
}

// syncFolder makes a rename or a removal in dir durable.
func syncFolder(d Disk, dir string) error {
	if err := d.SyncFolder(dir); err != nil {
		return fmt.Errorf("sync the config folder: %w", cause(err))
	}
	return nil
}
