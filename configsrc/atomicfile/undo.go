package atomicfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// A write that changes several files takes effect as a whole or not at all, also after a crash. The last file decides:
// as long as it is unchanged, Clear puts the others back. A note next to the last file holds what that needs. The note
// is durable before the first file is exchanged and is removed before the write ends. The other files are durable
// before the last is exchanged; otherwise a power cut could leave only the last one changed:
//
//	.fingerpost-<n>-undo.tmp    JSON: an undoNote
const undoPattern = ".fingerpost-*-undo.tmp"

var undoTemp = regexp.MustCompile(`^\.fingerpost-\d+-undo\.tmp$`)

// An undoNote lists the files of a write in the order in which they are exchanged.
type undoNote struct {
	Files []undoFile `json:"files"`
}

// An undoFile is one of these files. Names are relative to the note's folder; hashes are SHA-256 in hexadecimal.
type undoFile struct {
	Name string `json:"name"`
	Temp string `json:"temp"` // holds the new content, and the old one after the exchange
	Old  string `json:"old"`
	New  string `json:"new"`

	Creates bool `json:"creates,omitempty"` // the write made the file: undoing it removes the file
}

// Note writes the note for several staged swaps, in the order in which they will be put, and returns its name.
func Note(d Disk, swaps []*Swap) (name string, err error) {
	dir := filepath.Dir(swaps[len(swaps)-1].Target)
	var note undoNote
	for _, w := range swaps {
		f := undoFile{Creates: w.Creates, Old: hex.EncodeToString(w.Old[:]), New: hex.EncodeToString(w.hash[:])}
		if f.Name, err = filepath.Rel(dir, w.Target); err != nil {
			return "", err
		}
		if f.Temp, err = filepath.Rel(dir, w.temp); err != nil {
			return "", err
		}
		note.Files = append(note.Files, f)
	}
	content, err := json.Marshal(note)
	if err != nil {
		return "", err
	}
	if name, err = writeNote(d, dir, content); err != nil {
		return "", err
	}
	if err := SyncFolders(d, swaps); err != nil {
		_ = d.Remove(name)
		return "", err
	}
	return name, nil
}

// SyncFolders makes the names of the swaps' files durable.
func SyncFolders(d Disk, swaps []*Swap) error {
	var synced []string
	for _, w := range swaps {
		folder := filepath.Dir(w.Target)
		if slices.Contains(synced, folder) {
			continue
		}
		synced = append(synced, folder)
		if err := SyncFolder(d, folder); err != nil {
			return err
		}
	}
	return nil
}

func writeNote(d Disk, dir string, content []byte) (name string, err error) {
	f, err := d.CreateTemp(dir, undoPattern, 0o600)
	if err != nil {
		return "", fmt.Errorf("write into the config folder: %w", Cause(err))
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = d.Remove(f.Name())
		return "", fmt.Errorf("write into the config folder: %w", Cause(err))
	}
	return f.Name(), nil
}

// undo finishes the note of a dead writer, and returns the files that it has changed, relative to the note's folder.
func (f *Folder) undo(name string) (changed []string, err error) {
	d := f.Disk
	content, err := d.ReadFile(name)
	if err != nil {
		return nil, Cause(err)
	}
	var note undoNote
	// the note itself was cut off: no file was exchanged yet
	if json.Unmarshal(content, &note) != nil || len(note.Files) < 2 {
		return nil, Cause(d.Remove(name))
	}
	dir := filepath.Dir(name)
	last := note.Files[len(note.Files)-1]
	if !last.done(d, dir) {
		for _, one := range note.Files[:len(note.Files)-1] {
			target, temp := filepath.Join(dir, one.Name), filepath.Join(dir, one.Temp)
			if hashOf(d, target) != one.New || !one.Creates && hashOf(d, temp) != one.Old ||
				one.Creates && !linked(d, temp, target) {
				continue // not exchanged; or saved since, and the save wins
			}
			if one.Creates {
				err = d.Remove(target)
			} else {
				err = d.Exchange(temp, target)
			}
			if err != nil {
				return changed, fmt.Errorf("put %s back: %w", one.Name, err)
			}
			changed = append(changed, filepath.ToSlash(one.Name))
			if err := SyncFolder(d, filepath.Dir(target)); err != nil {
				return changed, err
			}
			f.Log.Info("put a file back that a write had changed when it was cut off", "file", target)
		}
	}
	return changed, Cause(d.Remove(name))
}

// done reports whether a file was exchanged, and the exchange did not bring out a save that came in between.
func (f *undoFile) done(d Disk, dir string) bool {
	out := hashOf(d, filepath.Join(dir, f.Temp))
	return hashOf(d, filepath.Join(dir, f.Name)) != f.Old && (out == "" || out == f.Old)
}

// linked reports whether a created file has its name: temp was removed since, or is another name of the file. Otherwise
// the file of this name is somebody else's, with the same content.
func linked(d Disk, temp, target string) bool {
	was, err := d.Lstat(temp)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	is, err := d.Lstat(target)
	return err == nil && os.SameFile(was, is)
}

// hashOf returns a file's SHA-256 in hexadecimal, "" if it cannot be read.
func hashOf(d Disk, name string) string {
	b, err := d.ReadFile(name)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
