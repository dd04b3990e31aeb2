package atomicfile

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

// lockWait is how long a write waits for such a lock: longer than clearing leftovers takes.
const lockWait = time.Second

// Edit applies edit to the present content of a file in the config folder and swaps the result in: a temporary file in
// the same folder, fsynced, exchanged atomically with the old one; then the content that came out is compared with what
// edit was given. If there was a save in between, that version is put back and edit runs once more on it; the second
// time gives ErrChanged (configsrc/atomicfile/README.md, Refusals). Mode, owner, ACLs and extended attributes stay; for
// a symbolic link the target is replaced. If edit returns its argument's bytes, nothing is written.
//
// It is for commands that a person runs: if the system cannot tell whether an editor is writing the file, the file is
// compared once more and then replaced.
//
// dir is the config folder, path slash-separated below it. On return without error the file and its folder are synced.
func Edit(dir, path string, edit func(src []byte) ([]byte, error)) error {
	return editFile(OSDisk{}, dir, path, edit, func(d Disk, temp, target string, want, ours [sha256.Size]byte) (string,
		error) {
		kept, err := exchange(d, temp, target, want, ours)
		if isUnknownWriter(err) {
			return "", replaceChecked(d, temp, target, want)
		}
		return kept, err
	})
}

// Edit is Edit for the service: it leaves a file alone if the system cannot tell whether an editor is writing it.
func (f *Folder) Edit(path string, edit func(src []byte) ([]byte, error)) error {
	return editFile(f.Disk, f.Dir, path, edit, exchange)
}

// editFile is Edit with the function that puts the new content in place: exchange, or one that does more.
func editFile(d Disk, dir, path string, edit func(src []byte) ([]byte, error), swap swapFunc) error {
	for range 2 {
		target, err := Target(dir, path)
		if err != nil {
			return err
		}
		if err = editOnce(d, target, edit, swap); !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return fmt.Errorf("edit %s: %w", path, ErrChanged)
}

type swapFunc func(d Disk, temp, target string, want, ours [sha256.Size]byte) (kept string, err error)

// Create writes a new file of the config folder; one that exists is an error wrapping fs.ErrExist.
func Create(dir, path string, content []byte) error {
	name := filepath.Join(dir, filepath.FromSlash(path))
	lock, err := Lock(filepath.Dir(name))
	if err != nil {
		return fmt.Errorf("write into the config folder: %w", Cause(err))
	}
	defer lock.Close()
	var d OSDisk
	temp, _, err := writeTemp(d, filepath.Dir(name), content, nil, "")
	if err != nil {
		return err
	}
	defer d.Remove(temp)
	if err := d.Link(temp, name); err != nil { // link, unlike rename, never replaces
		return fmt.Errorf("create %s: %w", path, Cause(err))
	}
	return SyncFolder(d, filepath.Dir(name))
}

// Move renames a file within its folder; a name that is taken is an error wrapping fs.ErrExist. A reader may see both
// names for a moment, never none.
func Move(dir, from, to string) error {
	var d OSDisk
	source, target := filepath.Join(dir, filepath.FromSlash(from)), filepath.Join(dir, filepath.FromSlash(to))
	if err := d.Link(source, target); err != nil { // link, unlike rename, never replaces
		return fmt.Errorf("rename %s: %w", from, Cause(err))
	}
	if err := d.Remove(source); err != nil {
		return fmt.Errorf("rename %s: %w", from, Cause(err))
	}
	return SyncFolder(d, filepath.Dir(target))
}

// Target resolves links inside the folder and refuses what must not be replaced.
func Target(dir, path string) (string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("open config folder: %w", Cause(err))
	}
	name := filepath.Join(root, filepath.FromSlash(path))
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		if _, serr := os.Stat(name); errors.Is(serr, syscall.ELOOP) { // EvalSymlinks returns only a text for it
			return "", &UnfitError{Path: path, Why: "it is a symbolic link that leads back to itself"}
		}
		return "", fmt.Errorf("open %s: %w", path, Cause(err))
	}
	if rel, err := filepath.Rel(root, target); err != nil || rel == ".." || strings.HasPrefix(rel,
		".."+string(filepath.Separator)) {
		return "", &UnfitError{Path: path,
			Why: "it is a link that leads out of the config folder; put the file itself into the folder"}
	}
	info, err := os.Lstat(target)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, Cause(err))
	}
	if !info.Mode().IsRegular() {
		return "", &UnfitError{Path: path, Why: "it is no regular file"}
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return "", &UnfitError{Path: path,
			Why: fmt.Sprintf("it has %d hard links, and replacing it would part them; leave it one name", st.Nlink)}
	}
	return target, nil
}

func editOnce(d Disk, target string, edit func([]byte) ([]byte, error), swap swapFunc) error {
	info, err := d.Stat(target)
	if err != nil {
		return fmt.Errorf("open %s: %w", filepath.Base(target), Cause(err))
	}
	src, err := d.ReadFile(target)
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(target), Cause(err))
	}
	out, err := edit(bytes.Clone(src))
	if err != nil || bytes.Equal(out, src) {
		return err
	}
	lock, err := Lock(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("write into the config folder: %w", Cause(err))
	}
	defer lock.Close()
	temp, _, err := writeSwap(d, target, out, info, sha256.Sum256(src))
	if err != nil {
		return err
	}
	// Nothing live has been touched up to here.
	_, err = swap(d, temp, target, sha256.Sum256(src), sha256.Sum256(out))
	if !errors.Is(err, errStranded) {
		defer removeSwapped(d, temp)
	}
	if err != nil {
		return err
	}
	return SyncFolder(d, filepath.Dir(target))
}

// writeTemp writes and syncs a temporary file. If it is to replace the file target, with info like, it gets the same
// mode, owner, ACLs and extended attributes; an *UnfitError if one of them cannot be kept. info describes the new file.
func writeTemp(d Disk, dir string, content []byte, like fs.FileInfo, target string) (name string, info fs.FileInfo,
	err error) {
	mode := fs.FileMode(0o644)
	if like != nil {
		mode = like.Mode().Perm()
	}
	f, err := d.CreateTemp(dir, tempPattern, mode)
	if err != nil {
		return "", nil, fmt.Errorf("write into the config folder: %w", Cause(err))
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("write into the config folder: %w", Cause(cerr))
		}
		if err != nil {
			_ = d.Remove(f.Name())
		}
	}()
	if _, err := f.Write(content); err != nil {
		return "", nil, fmt.Errorf("write into the config folder: %w", Cause(err))
	}
	if like != nil {
		err := keepOwner(f, like)
		if err == nil {
			err = keepAttributes(f.Name(), target)
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
			return "", nil, &UnfitError{Path: filepath.Base(target), Why: err.Error()}
		}
		if err != nil {
			return "", nil, fmt.Errorf("write into the config folder: %w", err)
		}
	}
	if info, err = f.Stat(); err != nil {
		return "", nil, fmt.Errorf("write into the config folder: %w", Cause(err))
	}
	if info.Mode().Perm() != mode {
		if err := f.Chmod(mode); err != nil {
			return "", nil, fmt.Errorf("write into the config folder: %w", Cause(err))
		}
	}
	if err := f.Sync(); err != nil {
		return "", nil, fmt.Errorf("sync the new file: %w", Cause(err))
	}
	if info, err = f.Stat(); err != nil { // some file systems settle the time only now
		return "", nil, fmt.Errorf("write into the config folder: %w", Cause(err))
	}
	return f.Name(), info, nil
}

// keepOwner gives a file the owner and group of another one, if they differ.
func keepOwner(f TempFile, like fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	want, ok2 := like.Sys().(*syscall.Stat_t)
	if !ok || !ok2 || is.Uid == want.Uid && is.Gid == want.Gid {
		return nil
	}
	if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
		what := fmt.Sprintf("owner, uid %d,", want.Uid)
		if is.Uid == want.Uid {
			what = fmt.Sprintf("group, gid %d,", want.Gid)
		}
		return fmt.Errorf("its %s cannot be kept: %w; chown it to the service's user and group (%d:%d), or give the "+
			"service CAP_CHOWN and CAP_LEASE",
			what, Cause(err), is.Uid, is.Gid)
	}
	return nil
}

// writeSwap writes and syncs the new content for target, which has the hash old, under a name that contains the hashes.
// Content nil means a removal.
func writeSwap(d Disk, target string, content []byte, like fs.FileInfo, old [sha256.Size]byte) (name string,
	info fs.FileInfo, err error) {
	if len(filepath.Base(target)) > maxSwapBase {
		return "", nil, fmt.Errorf("replace %s: its name is longer than %d bytes, which leaves no room for a temporary "+
			"name; rename it",
			filepath.Base(target), maxSwapBase)
	}
	temp, info, err := writeTemp(d, filepath.Dir(target), content, like, target)
	if err != nil {
		return "", nil, err
	}
	after := sha256.Sum256(content)
	// as in swapTemp
	name = fmt.Sprintf("%s-%x-%x-%s.tmp", strings.TrimSuffix(temp, ".tmp"), old[:8], after[:8], filepath.Base(target))
	if err := d.Rename(temp, name); err != nil {
		_ = d.Remove(temp)
		return "", nil, fmt.Errorf("write into the config folder: %w", Cause(err))
	}
	return name, info, nil
}

// exchange swaps temp, which has the hash ours, and target, unless the content of target does not have the hash want,
// or a program has it open for writing. A lease keeps writers out until the end, so only a save by renaming can come in
// between, and only between the check and the swap. That save is swapped back. kept is as giveBack returns it.
func exchange(d Disk, temp, target string, want, ours [sha256.Size]byte) (kept string, err error) {
	old, err := holdAs(d, target, want)
	if err != nil {
		return "", err
	}
	defer old.Close()
	if err := d.Exchange(temp, target); errors.Is(err, errors.ErrUnsupported) {
		return "", unknownWriter(target, "its file system cannot exchange two files in one step")
	} else if err != nil {
		return "", fmt.Errorf("replace %s: %w", filepath.Base(target), err)
	}
	changed := old.check(d, temp, want)
	if changed == nil {
		return "", nil
	}
	if kept, err = giveBack(d, temp, target, ours); err != nil {
		return "", fmt.Errorf("put %s back after a save in between: %w; %w", filepath.Base(target), err, errStranded)
	}
	if errors.Is(changed, ErrChanged) {
		return kept, ErrChanged
	}
	return kept, fmt.Errorf("read what %s was: %w", filepath.Base(target), changed)
}

// giveBack swaps back a save that a swap has brought into temp, in exchange for the content with the hash ours. If
// there is another save in between, the later one stays in the file. The earlier one need not be part of it (its writer
// may have seen our content), so it is kept next to the file, under the name kept. After an error temp holds a save.
func giveBack(d Disk, temp, target string, ours [sha256.Size]byte) (kept string, err error) {
	there, known := ours, true // content of target
	for round := range maxGiveBack {
		in, inErr := d.ReadFile(temp)
		if err := d.Exchange(temp, target); err != nil {
			return "", err
		}
		out, err := d.ReadFile(temp)
		if err != nil {
			return "", Cause(err)
		}
		as := !known || sha256.Sum256(out) == there
		if round == 0 && as && nobodyWrites(temp) {
			return "", nil
		}
		if round > 0 && as { // a program that still has it open writes into the kept file
			return keepNextTo(d, temp, target)
		}
		there, known = sha256.Sum256(in), inErr == nil
	}
	return "", errors.New("somebody keeps saving it")
}

// keepNextTo renames the save in temp to a name next to its file, for a person to decide.
func keepNextTo(d Disk, temp, target string) (kept string, err error) {
	n, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(temp), ".fingerpost-"), "-")
	kept = fmt.Sprintf("%s.%s~", target, strings.TrimSuffix(n, ".tmp"))
	if err := d.Link(temp, kept); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", Cause(err)
	}
	_ = d.Remove(temp) // if that fails, Clear repeats it all
	return kept, nil
}

// maxGiveBack is far more than the number of saves that fit between so many swaps.
const maxGiveBack = 100

// replaceChecked compares and renames. It is for systems that do not report writers or cannot exchange: a save between
// the two steps is lost, so they follow each other directly.
func replaceChecked(d Disk, temp, target string, want [sha256.Size]byte) error {
	now, err := d.ReadFile(target)
	if IsDiskFault(err) {
		return fmt.Errorf("read %s: %w", filepath.Base(target), Cause(err))
	}
	if err != nil || sha256.Sum256(now) != want {
		return ErrChanged
	}
	if err := d.Rename(temp, target); err != nil {
		return fmt.Errorf("replace %s: %w", filepath.Base(target), Cause(err))
	}
	return nil
}

// SyncFolder makes a rename or a removal in dir durable.
func SyncFolder(d Disk, dir string) error {
	if err := d.SyncFolder(dir); err != nil {
		return fmt.Errorf("sync the config folder: %w", Cause(err))
	}
	return nil
}
