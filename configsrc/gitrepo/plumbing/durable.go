package plumbing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// An objectFolder is git's folder of objects. Most new ones have a file each, in one of 256 folders. With core.fsync
// git syncs such a file before it gets its name; it never syncs the folder. Before anything names an object, sync does
// that.
type objectFolder struct {
	dir string

	mu       sync.Mutex      // guards what follows
	unsynced map[string]bool // folders with names that may not be on the disk
	synced   time.Time       // mtime of dir when it was synced
}

// file returns the path that an object has unless it is in a pack.
func (o *objectFolder) file(id string) string { return filepath.Join(o.dir, id[:2], id[2:]) }

// found reports whether an object has a file, and syncs it then: a person's git may have made it, which does not sync
// by default. A file that a power cut has emptied is removed, because git would take it for the object and not write it
// again.
func (o *objectFolder) found(id string) (bool, error) {
	f, err := os.Open(o.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if !isZlib(f) {
		return false, os.Remove(f.Name())
	}
	o.made(id)
	return true, f.Sync()
}

// isZlib reports whether a file begins as zlib data, as that of an object does: neither empty nor full of zeros.
func isZlib(f io.Reader) bool {
	var head [2]byte
	_, err := io.ReadFull(f, head[:])
	return err == nil && head[0]&0x0f == 8 && binary.BigEndian.Uint16(head[:])%31 == 0
}

// made notes that git has made an object, whose file it has synced.
func (o *objectFolder) made(id string) { o.noteFolder(filepath.Dir(o.file(id))) }

// noteFolder lets sync sync a folder.
func (o *objectFolder) noteFolder(dir string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unsynced[dir] = true
}

// LooseObjects counts the objects that have a file of their own, up to most.
func (g *Store) LooseObjects(most int) (n int) {
	for i := 0; i < 256 && n < most; i++ {
		list, err := os.ReadDir(filepath.Join(g.objects.dir, fmt.Sprintf("%02x", i)))
		if err == nil {
			n += len(list)
		}
	}
	return n
}

// maintainLimit is the time limit of a run of git maintenance.
const maintainLimit = time.Hour

// PackLoose packs up to 50,000 loose objects, removes those that are in packs already, and joins small packs. The packs
// are synced, with their folder: the next call removes what this one has packed. Refs and unreachable objects stay. It
// may be called from any goroutine, but not concurrently.
func (g *Store) PackLoose(ctx context.Context) error {
	end, err := g.locks.begin("objects/maintenance.lock", packIndex+".lock")
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(g.objects.dir, "maintenance.lock")); err == nil {
		end(nil) // git would say nothing and do nothing
		return errors.New("objects/maintenance.lock exists: another git packs objects, or one was killed and its lock has " +
			"to be removed")
	}
	// One after the other: of two tasks, git begins with the repack, which is an error while there is no pack.
	run := func(task string) error {
		_, err := g.Call(ctx, maintainLimit, nil, nil, "-c", "core.fsync=all", "maintenance", "run", "--quiet",
			"--task="+task)
		return err
	}
	if err = run("loose-objects"); err == nil && g.hasPacks() {
		err = run("incremental-repack")
	}
	if end(err); err != nil {
		dropPackIndex(g.GitDir)
		return err
	}
	return SyncFolder(filepath.Join(g.objects.dir, "pack"))
}

// packIndex is the index over all packs, below git's folder.
const packIndex = "objects/pack/multi-pack-index"

// dropPackIndex removes the index over all packs after a maintenance that was killed: git removes joined packs before it
// takes them out of the index, and never mends that. Each pack has an index of its own, and the next maintenance makes
// the common one again.
func dropPackIndex(gitDir string) {
	_ = os.Remove(filepath.Join(gitDir, filepath.FromSlash(packIndex)))
}

func (g *Store) hasPacks() bool {
	packs, err := filepath.Glob(filepath.Join(g.objects.dir, "pack", "*.pack"))
	return err == nil && len(packs) > 0
}

// times returns the mtimes of the folders with objects, for changedSince.
func (o *objectFolder) times() map[string]time.Time {
	times := map[string]time.Time{}
	list, err := os.ReadDir(o.dir)
	for _, e := range list {
		if info, ierr := e.Info(); err == nil && ierr == nil && e.IsDir() {
			times[filepath.Join(o.dir, e.Name())] = info.ModTime()
		}
	}
	return times
}

// changedSince notes the folders in which git has made or removed names since: those of a fetch.
func (o *objectFolder) changedSince(before map[string]time.Time) {
	now := o.times()
	o.mu.Lock()
	defer o.mu.Unlock()
	for dir, at := range now {
		if !at.Equal(before[dir]) {
			o.unsynced[dir] = true
		}
	}
}

// sync makes the names of all noted objects durable.
func (o *objectFolder) sync() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.unsynced) == 0 {
		return nil
	}
	info, err := os.Stat(o.dir)
	if err != nil {
		return err
	}
	dirs := []string{}
	for dir := range o.unsynced {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) { // else what was noted is in a pack
			dirs = append(dirs, dir)
		}
	}
	if !info.ModTime().Equal(o.synced) { // one of the 256 folders is new
		dirs = append(dirs, o.dir)
	}
	if err := syncFolders(dirs); err != nil {
		return err
	}
	o.synced = info.ModTime()
	clear(o.unsynced)
	return nil
}

// syncFolders syncs folders, or files, at the same time: syncs that wait together share the file system's work.
func syncFolders(paths []string) error {
	errs := make([]error, len(paths))
	var syncing sync.WaitGroup
	next := make(chan int)
	for range min(len(paths), blobWriters) {
		syncing.Go(func() {
			for i := range next {
				errs[i] = SyncFolder(paths[i])
			}
		})
	}
	for i := range paths {
		next <- i
	}
	close(next)
	syncing.Wait()
	return errors.Join(errs...)
}

// SyncFolder makes the names in a folder, or the content of a file, durable.
func SyncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
