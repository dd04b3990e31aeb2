package configsrc

import (
	"crypto/sha256"
	"errors"
	"path/filepath"
	"slices"
	"sync"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/folder"
)

// placeRound exchanges the files of a round, syncs their folders, and returns the updates that are durable in place. If
// git has started meanwhile, it takes all of them back: git may have read the old files and be about to write over the
// new ones.
func (d *configFolder) placeRound(round []*submission, before gitState) []*submission {
	errs := make([]error, len(round))
	sideBySide(len(round), func(i int) { errs[i] = d.putFiles(round[i]) })
	placed := round[:0]
	var folders []string
	for i, u := range round {
		if errs[i] != nil {
			u.done <- errs[i]
			continue
		}
		placed = append(placed, u)
		for _, f := range u.Files {
			if dir := filepath.Dir(f.Target); !slices.Contains(folders, dir) {
				folders = append(folders, dir)
			}
		}
	}
	if d.git.hasMoved(before) {
		for _, u := range placed {
			u.takeBack()
		}
		answer(placed, errGitBusy)
		return nil
	}
	errs = make([]error, len(folders))
	sideBySide(len(folders), func(i int) { errs[i] = atomicfile.SyncFolder(d.o.Disk, folders[i]) })
	durable := placed[:0]
	for _, u := range placed {
		var err error
		for _, f := range u.Files {
			err = errors.Join(err, errs[slices.Index(folders, filepath.Dir(f.Target))])
		}
		if err != nil {
			u.takeBack()
			u.done <- edits.WriteFault("write "+u.Is.Path, err)
			continue
		}
		durable = append(durable, u)
	}
	return durable
}

// putFiles exchanges all files of an update, the project's file last. If one of them cannot be exchanged, the others are
// put back. If there are several, a note that is durable before the first exchange lets the next look finish the way
// back after a crash (atomicfile.Note).
func (d *configFolder) putFiles(u *submission) (err error) {
	defer func() {
		if err != nil {
			u.takeBack()
		}
	}()
	disk, last := d.o.Disk, len(u.Files)-1
	swaps := make([]*atomicfile.Swap, len(u.Files))
	for i, f := range u.Files {
		swaps[i] = &f.Swap
	}
	if last > 0 {
		if u.undo, err = atomicfile.Note(disk, swaps); err != nil {
			return edits.WriteFault("write "+u.Is.Path, err)
		}
	}
	for i, f := range u.Files {
		if i == last && last > 0 { // the others must be durable before the last, which decides
			if err = atomicfile.SyncFolders(disk, swaps[:last]); err != nil {
				return edits.WriteFault("write "+u.Is.Path, err)
			}
		}
		if err = f.Put(); err != nil {
			if fault, is := errors.AsType[*atomicfile.Fault](err); is {
				return edits.WriteFault(fault.Step, fault.Err)
			}
			return err
		}
		f.Stamp = folder.Renamed(f.Stamp, f.Target)
		if f.Config != nil {
			f.Config.Stamp = f.Stamp
			continue
		}
		for i := range u.Is.Deps {
			if u.Is.Deps[i].Path == f.Name {
				u.Is.Deps[i].Stamp = f.Stamp
			}
		}
	}
	if u.Stays {
		if now, rerr := disk.ReadFile(u.File.Target); rerr != nil || sha256.Sum256(now) != u.File.Old {
			return atomicfile.ErrChanged
		}
	}
	return nil
}

// sideBySide runs f(0) … f(n-1) concurrently, because they mostly wait for the disk.
func sideBySide(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { f(i) })
	}
	if n > 0 {
		f(0)
	}
	wg.Wait()
}

// takeBack undoes putFiles: the last file first, durably, because after a crash it decides over the others.
func (u *submission) takeBack() {
	for i, f := range slices.Backward(u.Files) {
		f.TakeBack()
		if i > 0 && i == len(u.Files)-1 {
			_ = atomicfile.SyncFolder(f.Folder.Disk, filepath.Dir(f.Target)) // was not acknowledged
		}
	}
}
