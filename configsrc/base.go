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
	"fingerpost/resolver/catalog"
)

// A base is a state that writes are made on: what is accepted, or that with a proposal over it. Looks, writes and the
// status are measured against it.
type base struct {
	o     Options
	facts Facts

	// committing is held from before a change is served until table has it.
	committing *sync.RWMutex
	// known guards table and quarantine for the sweeps and for writes, which read them. Only the goroutine that looks
	// (Load, then Run) writes them, so it reads them without the lock.
	known      *sync.RWMutex
	table      *judge.Table
	quarantine map[string]*judge.Quarantined
	sealed     bool        // sealing { require = true } is in force
	redecode   bool        // the decoder has changed: decode every file again, even with the same bytes
	live       atomic.Bool // the Sink serves answers: work on many files leaves one core free
}

func newBase(o Options) *base {
	return &base{o: o, facts: o.Sink, committing: new(sync.RWMutex), known: new(sync.RWMutex), table: judge.NewTable(),
		quarantine: map[string]*judge.Quarantined{}}
}

// rules are those of the decoder. An edge has none: its authority has accepted the files, and clocks and flags of the two
// differ.
func (s *base) rules() hclfile.Rules {
	if s.o.Follow {
		return hclfile.Rules{}
	}
	return hclfile.Rules{Today: s.now().UTC().Format(time.DateOnly), Allow: s.o.Allow}
}

// revision tells apart what decodes the same bytes differently: releases, and with or without --public-url. What that makes
// a warning was accepted without one, so a start that lacks the flag for the first time decodes every file.
func (s *base) revision() uint64 {
	v := uint64(decoderRevision) << 1
	if s.rules().Allow.NoPublicURL {
		v |= 1
	}
	return v
}

func (s *base) now() time.Time {
	if s.o.Now != nil {
		return s.o.Now()
	}
	return time.Now()
}

// usersOf lists the accepted config files that take text from a file.
func (s *base) usersOf(p string) (paths []string) {
	s.known.RLock()
	defer s.known.RUnlock()
	for _, f := range s.table.UsersOf(p) {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	return paths
}

// fileAt returns the accepted file of a path, nil if there is none.
func (s *base) fileAt(path string) *judge.File {
	s.known.RLock()
	defer s.known.RUnlock()
	return s.table.File(path)
}

// fileOf returns the file that declares the object of the claim.
func (s *base) fileOf(c judge.Claim) (path string, ok bool) {
	if path, ok = s.ownerOf(c); ok {
		return path, true
	}
	s.committing.RLock() // it may be served already, and not be in the table yet
	defer s.committing.RUnlock()
	return s.ownerOf(c)
}

func (s *base) ownerOf(c judge.Claim) (path string, ok bool) {
	s.known.RLock()
	defer s.known.RUnlock()
	f := s.table.Owner(c)
	if f == nil {
		return "", false
	}
	return f.Path, true
}

// display returns a path for messages: it can be opened from the working directory.
func (s *base) display(path string) string {
	return filepath.Join(s.o.Dir, filepath.FromSlash(path))
}

func (s *base) openTree() (*folder.Tree, error) { return s.o.Clone.OpenTree(s.o.Dir) }

// realDir returns the path of the config folder with links resolved. In a Clone none are followed.
func (s *base) realDir() (string, error) {
	if s.o.Clone != (folder.Clone{}) {
		return s.o.Clone.Dir(s.o.Dir), nil
	}
	return filepath.EvalSymlinks(s.o.Dir)
}

func (s *base) setLive(on bool) {
	s.live.Store(on)
	s.o.Sink.Pace(on)
}

// filesOf lists the files that declare objects of a kind with these names, in path order.
func (s *base) filesOf(holders []catalog.ListHolder) (paths []string) {
	for _, h := range holders {
		if path, ok := s.fileOf(judge.HolderClaim(h)); ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// listFiles lists the files, except one, in which accepted lists of projects name the slug.
func (s *base) listFiles(slug, except string) (paths []string) {
	paths = s.filesOf(s.facts.ListsNaming(slug))
	return slices.DeleteFunc(paths, func(path string) bool { return path == except })
}

// lastDecoded decodes the last good bytes of a file.
func (s *base) lastDecoded(path string) (*hclfile.Result, error) {
	src, err := s.facts.LastGood(path)
	if err != nil {
		return nil, err
	}
	return judge.Positions(path, src), nil
}
