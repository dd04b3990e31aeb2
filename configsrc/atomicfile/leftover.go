package atomicfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// An interrupted write leaves its temporary file behind. The name alone tells what may be done with it:
//
//	.fingerpost-<n>.tmp                       new content being written, or about to be linked to its place
//	.fingerpost-<n>-<old>-<new>-<target>.tmp  to be exchanged with target: holds new, afterwards the old content
//	.fingerpost-<n>-undo.tmp                  the note of a write of several files, see undo.go
//
// old and new begin the hashes of the two contents in hexadecimal; a removal's new content is empty. So a leftover with
// neither hash is a save that came in between and that the write had no time to examine: the only kind that is worth
// anything. The dot and the ending hide all of them from every look.
const tempPattern = ".fingerpost-*.tmp"

var (
	plainTemp = regexp.MustCompile(`^\.fingerpost-\d+\.tmp$`)
	swapTemp  = regexp.MustCompile(`(?s)^\.fingerpost-(\d+)-([0-9a-f]{16})-([0-9a-f]{16})-(.+)\.tmp$`)
)

// maxSwapBase is the longest file name that leaves room for the rest of swapTemp in the 255 bytes of a name.
const maxSwapBase = 255 - len(".fingerpost-4294967295-0123456789abcdef-0123456789abcdef-.tmp")

// IsTemp reports whether a file name is one of a temporary file of this package.
func IsTemp(name string) bool {
	return plainTemp.MatchString(name) || swapTemp.MatchString(name) || undoTemp.MatchString(name)
}

// patient is how long a temporary file is left alone if the file system cannot tell whether its writer is alive.
const patient = time.Minute

// A leftover is a temporary file that could not be cleared yet.
type leftover struct {
	since  time.Time // when it was first seen
	logged bool      // the reason why it stays was logged
}

// Clear finishes the temporary files at the paths, except those of running writes: it removes them, and restores a save
// that one holds to its file. It returns the files that it has changed. paths are slash-separated, below Dir.
func (f *Folder) Clear(paths []string) (changed []string) {
	left := make(map[string]*leftover, len(paths))
	notes := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !undoTemp.MatchString(path.Base(p)) })
	rest := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return undoTemp.MatchString(path.Base(p)) })
	changed = f.clearSome(notes, left)
	if len(left) == 0 { // otherwise a note may need the others
		changed = append(changed, f.clearSome(rest, left)...)
	}
	f.leftovers = left
	return changed
}

// clearSome clears those at the paths, and adds to left what could not be cleared.
func (f *Folder) clearSome(paths []string, left map[string]*leftover) (changed []string) {
	for _, p := range paths {
		left[p] = f.leftovers[p]
		if left[p] == nil {
			left[p] = &leftover{since: time.Now()}
		}
		restored, err := f.clearLeftover(p, time.Since(left[p].since) > patient)
		switch {
		case errors.Is(err, ErrLocked):
			continue // a write is running, possibly the one of this file
		case err == nil:
			delete(left, p)
		case !left[p].logged:
			left[p].logged = true
			f.Log.Warn("a temporary file that a write left when it was cut off stays for now", "file", filepath.Join(f.Dir,
				filepath.FromSlash(p)), "error", err)
		}
		for _, name := range restored {
			changed = append(changed, path.Join(path.Dir(p), name))
		}
	}
	return changed
}

// clearLeftover clears one, and returns the files that it has changed, relative to its folder. old says that the file
// is too old to have a living writer.
func (f *Folder) clearLeftover(at string, old bool) (restored []string, err error) {
	temp := filepath.Join(f.Dir, filepath.FromSlash(at))
	folder, err := claimFolder(filepath.Dir(temp))
	switch {
	case err == nil:
		defer folder.Close()
	case errors.Is(err, errors.ErrUnsupported) && old:
	case errors.Is(err, errors.ErrUnsupported):
		return nil, ErrLocked
	default:
		return nil, Cause(err)
	}
	info, err := os.Lstat(temp)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil // it belonged to a running write
	case err != nil:
		return nil, Cause(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	}
	if undoTemp.MatchString(filepath.Base(temp)) {
		return f.undo(temp)
	}
	idle, err := isIdle(f.Disk, temp)
	if err != nil {
		return nil, err
	}
	if idle {
		if err := f.Disk.Remove(temp); err != nil {
			return nil, Cause(err)
		}
		f.Log.Info("removed what a write left when it was cut off", "file", temp)
		return nil, nil
	}
	name := swapTemp.FindStringSubmatch(filepath.Base(temp))
	back, err := f.restore(temp, name[3], name[4])
	if back != "" {
		restored = []string{back}
	}
	return restored, err
}

// isIdle reports whether a temporary file is worthless: it holds no save, and none can come.
func isIdle(d Disk, temp string) (bool, error) {
	name := swapTemp.FindStringSubmatch(filepath.Base(temp))
	if name == nil {
		return true, nil
	}
	h, err := holdStill(temp)
	if errors.Is(err, ErrChanged) {
		return false, nil
	}
	if err != nil {
		return false, Cause(err)
	}
	defer h.Close()
	content, err := d.ReadFile(temp)
	if err != nil {
		return false, Cause(err)
	}
	sum := sha256.Sum256(content)
	holds := hex.EncodeToString(sum[:8])
	return holds == name[2] || holds == name[3], nil
}

// removeSwapped removes the temporary file of a finished write. If an editor has saved into it nevertheless, because it
// was about to open the file during the exchange, the file stays for Clear to restore.
func removeSwapped(d Disk, temp string) {
	if idle, err := isIdle(OSDisk{}, temp); idle || err != nil { // not a step of the write, whose answer is decided
		_ = d.Remove(temp) // Clear finds what is left
	}
}

// restore moves the save in temp back to the file target. An interrupted write had exchanged that file with the content
// that has the hash after.
func (f *Folder) restore(temp, after, target string) (restored string, err error) {
	d, place := f.Disk, filepath.Join(filepath.Dir(temp), target)
	err = d.Link(temp, place) // a removal; or a person has removed the file since, and will again
	if errors.Is(err, fs.ErrExist) {
		now, rerr := d.ReadFile(place)
		if rerr != nil {
			return "", Cause(rerr)
		}
		is := sha256.Sum256(now)
		if hex.EncodeToString(is[:8]) != after { // it was saved once more since
			kept, err := keepNextTo(d, temp, place)
			if err == nil {
				f.logKept(place, kept)
			}
			return "", err
		}
		var kept string
		if kept, err = giveBack(d, temp, place, is); kept != "" {
			f.logKept(place, kept)
		}
	}
	if err != nil {
		return "", Cause(err)
	}
	f.Log.Warn("put a save back that a write had taken away when it was cut off", "file", place)
	if err := d.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be gone already
		return target, Cause(err)
	}
	return target, Cause(d.SyncFolder(filepath.Dir(temp)))
}

// logKept logs that a save is kept next to its file.
func (f *Folder) logKept(place, kept string) {
	f.Log.Error("a save came in while a write was under way, and another one right after it: the later one is in the "+
		"file, the earlier one is kept beside it",
		"file", place, "kept", kept)
}
