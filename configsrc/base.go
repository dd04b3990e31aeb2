package configsrc

import (
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
)

// A base is a state that writes are made on: what is accepted, or that with a proposal over it. All that a look finds and
// commits, a write changes and the status says is measured against it.
type base struct {
	o     Options
	facts Facts

	// committing is held from before a change is served until table has it.
	committing *sync.RWMutex
	// known guards table and quarantine for the sweep and for writes, which read them. Only the goroutine that looks (Load,
	// then Run) writes them, so it reads them without the lock.
	known      *sync.RWMutex
	table      *judge.Table
	quarantine map[string]*judge.Quarantined
	sealed     bool        // sealing { require = true } is in force
	redecode   bool        // the decoder has changed: decode every file again, even with the same bytes
	live       atomic.Bool // the Sink serves answers: work on many files leaves one core free
}

// today is the day in UTC for the decoder. An edge has none: its authority has accepted the files, and the clocks of the
// two differ.
func (b *base) today() string {
	if b.o.Follow {
		return ""
	}
	return b.now().UTC().Format(time.DateOnly)
}

func (b *base) now() time.Time {
	if b.o.Now != nil {
		return b.o.Now()
	}
	return time.Now()
}

// usersOf lists the accepted config files that take text from a file.
func (b *base) usersOf(p string) (paths []string) {
	b.known.RLock()
	defer b.known.RUnlock()
	for _, f := range b.table.UsersOf(p) {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	return paths
}

// fileAt returns the accepted file of a path, nil if there is none.
func (b *base) fileAt(path string) *judge.File {
	b.known.RLock()
	defer b.known.RUnlock()
	return b.table.File(path)
}

// fileOf returns the file that declares the object of the claim.
func (b *base) fileOf(c judge.Claim) (path string, ok bool) {
	if path, ok = b.ownerOf(c); ok {
		return path, true
	}
	b.committing.RLock() // it may be served already, and not be in the table yet
	defer b.committing.RUnlock()
	return b.ownerOf(c)
}

func (b *base) ownerOf(c judge.Claim) (path string, ok bool) {
	b.known.RLock()
	defer b.known.RUnlock()
	f := b.table.Owner(c)
	if f == nil {
		return "", false
	}
	return f.Path, true
}

// display returns a path for messages: it can be opened from the working directory.
func (b *base) display(path string) string {
	return filepath.Join(b.o.Dir, filepath.FromSlash(path))
}

func (b *base) openTree() (*folder.Tree, error) { return b.o.Clone.OpenTree(b.o.Dir) }

// realDir returns the path of the config folder with links resolved. In a Clone none are followed.
func (b *base) realDir() (string, error) {
	if b.o.Clone != (folder.Clone{}) {
		return b.o.Clone.Dir(b.o.Dir), nil
	}
	return filepath.EvalSymlinks(b.o.Dir)
}

func (b *base) setLive(on bool) {
	b.live.Store(on)
	b.o.Sink.Pace(on)
}

// filesOfKeys lists the files that declare the keys with these names, in path order.
func (b *base) filesOfKeys(names []string) (paths []string) {
	for _, name := range names {
		if path, ok := b.fileOf(judge.ClaimOf("key", name)); ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// keyFiles lists the files, except one, in which accepted keys name the slug.
func (b *base) keyFiles(slug, except string) (paths []string) {
	paths = b.filesOfKeys(b.facts.KeysNaming(slug))
	return slices.DeleteFunc(paths, func(path string) bool { return path == except })
}

// lastDecoded decodes the last good bytes of a file.
func (b *base) lastDecoded(path string) (*hclfile.Result, error) {
	src, err := b.facts.LastGood(path)
	if err != nil {
		return nil, err
	}
	return judge.Positions(path, src), nil
}
