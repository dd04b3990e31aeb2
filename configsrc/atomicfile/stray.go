package atomicfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A write that is cut off leaves its temporary file behind. Its name tells what may be done with it, so that nothing
// else is needed for that, the store neither:
//
//	.fingerpost-<n>.tmp                       new content in the making, or about to be linked to its place
//	.fingerpost-<n>-<old>-<new>-<target>.tmp  to change places with target: has new in it, after that what was there
//	.fingerpost-<n>-undo.tmp                  what belongs together in a write of several files, see undo.go
//
// where old and new begin the two contents' hashes in hexadecimal; a removal's new content is empty. So what has neither
// hash is a save that came in between and was taken away before the write could look at it: the only kind of stray that
// is worth anything. The dot and the ending keep all of them out of every look.
const tempPattern = ".fingerpost-*.tmp"

var (
	plainTemp = regexp.MustCompile(`^\.fingerpost-\d+\.tmp$`)
	swapTemp  = regexp.MustCompile(`(?s)^\.fingerpost-(\d+)-([0-9a-f]{16})-([0-9a-f]{16})-(.+)\.tmp$`)
)

// maxSwapBase is the longest name of a file that leaves room for the rest of swapTemp in the 255 bytes of a name.
const maxSwapBase = 255 - len(".fingerpost-4294967295-0123456789abcdef-0123456789abcdef-.tmp")

// swapName is the second kind of name, for a temp of the first kind.
func swapName(temp, target string, before, after [sha256.Size]byte) string {
	n := strings.TrimSuffix(filepath.Base(temp), ".tmp")
	return filepath.Join(filepath.Dir(temp), fmt.Sprintf("%s-%x-%x-%s.tmp", n, before[:8], after[:8], filepath.Base(target)))
}

func IsTemp(name string) bool {
	return plainTemp.MatchString(name) || swapTemp.MatchString(name) || undoTemp.MatchString(name)
}

// patient is how long a temporary file is left alone where the file system cannot tell whether its writer lives.
const patient = time.Minute

// A stray is a temporary file that could not be cleared yet.
type stray struct {
	since time.Time // when it was seen first
	told  bool      // the log says why it stays
}

// Clear settles the temporary files at the paths, those of writes under way apart: it removes them, and gives a
// save that one holds back to its file. It returns the files that it has changed so. paths are slash-separated, below Dir.
func (f *Folder) Clear(paths []string) (changed []string) {
	left := make(map[string]*stray, len(paths))
	notes := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !undoTemp.MatchString(path.Base(p)) })
	rest := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return undoTemp.MatchString(path.Base(p)) })
	changed = f.clearSome(notes, left)
	if len(left) == 0 { // else the others may be what a note needs
		changed = append(changed, f.clearSome(rest, left)...)
	}
	f.strays = left
	return changed
}

// clearSome settles those at the paths, and puts into left what could not be settled.
func (f *Folder) clearSome(paths []string, left map[string]*stray) (changed []string) {
	for _, p := range paths {
		left[p] = f.strays[p]
		if left[p] == nil {
			left[p] = &stray{since: time.Now()}
		}
		restored, err := f.clearStray(p, time.Since(left[p].since) > patient)
		switch {
		case errors.Is(err, ErrLocked):
			continue // a write is under way; it may be this one's
		case err == nil:
			delete(left, p)
		case !left[p].told:
			left[p].told = true
			f.Log.Warn("a temporary file that a write left when it was cut off stays for now", "file", filepath.Join(f.Dir, filepath.FromSlash(p)), "error", err)
		}
		for _, name := range restored {
			changed = append(changed, path.Join(path.Dir(p), name))
		}
	}
	return changed
}

// clearStray settles one, and names the files that it has changed, from its folder. old says that the file has been there
// for so long that no writer can be alive.
func (f *Folder) clearStray(at string, old bool) (restored []string, err error) {
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
		return nil, nil // it was a living write's
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

// isIdle reports whether a temporary file is worth nothing: it is known to have no save in it, and none can come.
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
	holds := hashPrefix(content)
	return holds == name[2] || holds == name[3], nil
}

// removeSwapped removes the temporary file of a write that has ended. One into which an editor has saved in spite of all
// precautions, since it was about to open the file when that was swapped out, stays for Clear to give back.
func removeSwapped(d Disk, temp string) {
	if idle, err := isIdle(OSDisk{}, temp); idle || err != nil { // no step of the write, whose answer is settled
		_ = d.Remove(temp) // what stays behind, Clear finds
	}
}

// restore gives the save in temp back to the file of the name target, which a write had filled with what has the hash
// after, and had then been cut off.
func (f *Folder) restore(temp, after, target string) (restored string, err error) {
	d, place := f.Disk, filepath.Join(filepath.Dir(temp), target)
	err = d.Link(temp, place) // a removal; or a person has removed the file since, who then will again
	if errors.Is(err, fs.ErrExist) {
		now, rerr := d.ReadFile(place)
		if rerr != nil {
			return "", Cause(rerr)
		}
		if hashPrefix(now) != after {
			return "", f.setAside(temp, place)
		}
		var kept string
		kept, err = giveBack(d, temp, place, sha256.Sum256(now))
		f.tellKept(place, kept)
	}
	if err != nil {
		return "", Cause(err)
	}
	f.Log.Warn("put a save back that a write had taken away when it was cut off", "file", place)
	if err := d.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) { // keepBeside may have done it
		return target, Cause(err)
	}
	return target, Cause(d.SyncFolder(filepath.Dir(temp)))
}

// setAside keeps a save under another name, for a person to decide: the file has been saved once more since.
func (f *Folder) setAside(temp, place string) error {
	kept, err := keepBeside(f.Disk, temp, place)
	if err != nil {
		return err
	}
	f.tellKept(place, kept)
	return nil
}

// tellKept logs that a save is kept next to its file, if kept names one.
func (f *Folder) tellKept(place, kept string) {
	if kept != "" {
		f.Log.Error("a save came in while a write was under way, and another one right after it: the later one is in the file, the earlier one is kept beside it",
			"file", place, "kept", kept)
	}
}

// hashPrefix is a content's hash as temporary names have it.
func hashPrefix(b []byte) string {
	h := sha256.Sum256(b)
	return fmt.Sprintf("%x", h[:8])
}
