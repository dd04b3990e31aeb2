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
)

// ErrChanged is returned by EditFile when somebody else kept writing the file.
var ErrChanged = errors.New("the file was changed by somebody else at the same time")

// tempPattern names the new content until it is exchanged. The dot and the ending keep it out of every look.
const tempPattern = ".fingerpost-*.tmp"

// EditFile applies edit to what is in a file of the config folder at this moment and swaps the result in: a temporary
// file in the same folder, fsynced, exchanged atomically with the old one, and then what came out is compared with what
// edit had been given. If somebody else has saved in between, their version is put back and edit runs once more on it;
// a second time gives ErrChanged (contract files.md 5). Mode and owner stay; of a symbolic link the target is replaced.
// When edit returns its argument's bytes, nothing is written.
//
// dir is the config folder, path slash-separated below it. On return without error the file and its folder are synced.
func EditFile(dir, path string, edit func(src []byte) ([]byte, error)) error {
	target, err := editTarget(dir, path)
	if err != nil {
		return err
	}
	for range 2 {
		err := editOnce(target, edit)
		if !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return fmt.Errorf("edit %s: %w", path, ErrChanged)
}

// CreateFile writes a new file of the config folder; one that exists is an error wrapping fs.ErrExist.
func CreateFile(dir, path string, content []byte) error {
	name := filepath.Join(dir, filepath.FromSlash(path))
	temp, err := writeTemp(filepath.Dir(name), content, nil)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := os.Link(temp, name); err != nil { // unlike rename, never replaces
		return fmt.Errorf("create %s: %w", path, cause(linkCause(err)))
	}
	return syncFolder(filepath.Dir(name))
}

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
		return "", fmt.Errorf("edit %s: it is a link that leads out of the config folder", path)
	}
	info, err := os.Lstat(target)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, cause(err))
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("edit %s: it is no regular file", path)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return "", fmt.Errorf("edit %s: it has %d hard links, and replacing it would part them", path, st.Nlink)
	}
	return target, nil
}

func editOnce(target string, edit func([]byte) ([]byte, error)) error {
	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("open %s: %w", filepath.Base(target), cause(err))
	}
	src, err := os.ReadFile(target)
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(target), cause(err))
	}
	out, err := edit(bytes.Clone(src))
	if err != nil || bytes.Equal(out, src) {
		return err
	}
	temp, err := writeTemp(filepath.Dir(target), out, info)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	// Nothing live has been touched up to here.
	if err := exchange(temp, target, sha256.Sum256(src)); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(target))
}

// writeTemp writes and syncs a temporary file with the mode and owner of like.
func writeTemp(dir string, content []byte, like fs.FileInfo) (name string, err error) {
	f, err := os.CreateTemp(dir, tempPattern)
	if err != nil {
		return "", fmt.Errorf("write into the config folder: %w", cause(err))
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("write into the config folder: %w", cause(cerr))
		}
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	mode := fs.FileMode(0o644)
	if like != nil {
		mode = like.Mode().Perm()
		if st, ok := like.Sys().(*syscall.Stat_t); ok {
			// Only root may give a file away; where the owner is another, the mode at least stays.
			_ = f.Chown(int(st.Uid), int(st.Gid))
		}
	}
	if err := f.Chmod(mode); err != nil {
		return "", fmt.Errorf("write into the config folder: %w", cause(err))
	}
	if _, err := f.Write(content); err != nil {
		return "", fmt.Errorf("write into the config folder: %w", cause(err))
	}
	if err := f.Sync(); err != nil {
		return "", fmt.Errorf("sync the new file: %w", cause(err))
	}
	return f.Name(), nil
}

// exchange swaps temp and target, unless target no longer has the content with the hash want.
func exchange(temp, target string, want [sha256.Size]byte) error {
	told := !beingWritten(temp) // nobody has: else the file system tells nothing
	err := swap(temp, target)
	if errors.Is(err, errNoSwap) {
		return replaceChecked(temp, target, want)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", filepath.Base(target), err)
	}
	// In this order: nobody finds the old file by its name any more, so once none has it open for writing it stays as it is.
	busy := told && beingWritten(temp)
	out, err := os.ReadFile(temp)
	if err == nil && !busy && sha256.Sum256(out) == want {
		return nil
	}
	if err := swap(temp, target); err != nil {
		return fmt.Errorf("put %s back after a save in between, it is in %s now: %w", filepath.Base(target), temp, err)
	}
	return ErrChanged
}

// replaceChecked is for file systems that cannot exchange: there a save between the two steps would be lost, so they
// are kept as close as they can be.
func replaceChecked(temp, target string, want [sha256.Size]byte) error {
	now, err := os.ReadFile(target)
	if err != nil || sha256.Sum256(now) != want {
		return ErrChanged
	}
	if err := os.Rename(temp, target); err != nil {
		return fmt.Errorf("replace %s: %w", filepath.Base(target), linkCause(err))
	}
	return nil
}

// syncFolder makes a rename or a removal in dir durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync the config folder: %w", cause(err))
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync the config folder: %w", cause(err))
	}
	return nil
}

var errNoSwap = errors.New("this file system cannot exchange two files")
