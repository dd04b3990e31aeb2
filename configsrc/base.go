package configsrc

import (
	"context"
	"slices"
	"sync"
	"time"

	"fingerpost/configsrc/judge"
)

// A base is a state that writes are made on: what is accepted, or that with a proposal over it. The writes in write.go
// read the files of its workspace, find and judge names in its table, and leave the result to the workspace.
type base struct {
	o     Options
	facts Facts
	ws    workspace

	// committing is held from before a change is served until table has it.
	committing *sync.RWMutex
	// known guards table and quarantine for the sweep and for writes, which read them. Only the goroutine that looks (Load,
	// then Run) writes them, so it reads them without the lock.
	known      *sync.RWMutex
	table      *judge.Table
	quarantine map[string]*judge.Quarantined
	sealed     bool // sealing { require = true } is in force
	writers    writers
}

// A workspace is where the files of a base are, and where writes put them.
type workspace interface {
	// patient runs a write when nobody else is at work on the files, and refuses it if nothing can be written now.
	patient(ctx context.Context, write func(context.Context) error) error
	open() (contents, error)
	// swap reads a file that will be replaced, and returns the swap, which lacks the new content, with the present content
	// and its stamp.
	swap(t contents, path string) (*fileSwap, []byte, error)
	// create is swap for a new file; fs.ErrExist if something has its name.
	create(path string) (*fileSwap, error)
	// noteDomains makes the notes of a write, durably, and forgetNotes undoes that.
	noteDomains(n *domainNotes) error
	forgetNotes(n *domainNotes)
	// makeFolder makes a folder for new files, if there is none, and dropFolder removes it if it is empty.
	makeFolder(name string) error
	dropFolder(name string)
	// isLink reports whether a config file is a link, which a person has made and which stays.
	isLink(path string) bool
	// submit judges an update, and makes it or refuses it. id is that of the write in the Journal, 0 for none.
	submit(ctx context.Context, u *update) (id int64, err error)
}

// today is the day in UTC for the decoder. An edge has none: its authority has accepted the files, and the clocks of the
// two differ.
func (s *base) today() string {
	if s.o.Follow {
		return ""
	}
	return s.now().UTC().Format(time.DateOnly)
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
