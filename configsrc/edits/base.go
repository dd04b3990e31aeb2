package edits

import (
	"path/filepath"
	"slices"
	"sync"

	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// Options configure a Base.
type Options struct {
	Dir   string // the config folder, which messages name
	Clone folder.Clone
	Live  Live
	// Rules are those of the decoder now.
	Rules func() hclfile.Rules
	// Fanout puts the file of a new project into a folder named after the first two characters of its slug.
	Fanout bool
	// OpenSecret opens a secret, to recognise one that is saved again unchanged. Nil: no secret can be opened.
	OpenSecret func(s catalog.Secret, context string) (string, error)
}

// Facts say what is declared.
type Facts interface {
	names.Declared
	// File returns one row of the file table; a NOT_FOUND *catalog.Error if there is none.
	File(path string) (*catalog.FileRow, error)
	// LastGood returns the last accepted bytes of a file.
	LastGood(path string) ([]byte, error)
	// ListsNaming lists the keys, webhooks and logins that list a slug.
	ListsNaming(slug string) []catalog.ListHolder
	KeyNames() []string          // of all keys
	Webhooks() []catalog.Webhook // by name; the list must not be changed
	Sealing() *catalog.Sealing   // nil: no such block
	Defaults() *catalog.Defaults // nil: no such block
}

// Live are the Facts of what is live.
type Live interface {
	Facts
	// UnknownSlugs lists the slugs in lists of keys, webhooks and logins that no project has. The list must not be
	// changed.
	UnknownSlugs() []catalog.UnknownSlug
}

// A Base is a state that edits are made on: what is accepted, or that with a proposal over it. Looks, writes and the
// status are measured against it. Its owner is the goroutine that looks, or the call that has an Overlay.
type Base struct {
	o     Options
	Facts Facts

	// Committing is held from before a change is served until Table has it.
	Committing *sync.RWMutex
	// Known guards the fields below for writes and for what else reads them next to the owner. Only the owner changes
	// them, so it reads them without the lock.
	Known      *sync.RWMutex
	Table      *judge.Table
	Quarantine map[string]*judge.Quarantined // by path
	Sealed     bool                          // sealing { require = true } is in force
}

// NewBase returns a Base of what is live, on which nothing is accepted yet.
func NewBase(o Options) *Base {
	return &Base{o: o, Facts: o.Live, Committing: new(sync.RWMutex), Known: new(sync.RWMutex), Table: judge.NewTable(),
		Quarantine: map[string]*judge.Quarantined{}}
}

// Rules are those of the decoder now.
func (s *Base) Rules() hclfile.Rules { return s.o.Rules() }

// UsersOf lists the accepted config files that take text from a file.
func (s *Base) UsersOf(p string) (paths []string) {
	s.Known.RLock()
	defer s.Known.RUnlock()
	for _, f := range s.Table.UsersOf(p) {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	return paths
}

// FileAt returns the accepted file of a path, nil if there is none.
func (s *Base) FileAt(path string) *judge.File {
	s.Known.RLock()
	defer s.Known.RUnlock()
	return s.Table.File(path)
}

// FileOf returns the file that declares the object of the claim.
func (s *Base) FileOf(c judge.Claim) (path string, ok bool) {
	if path, ok = s.ownerOf(c); ok {
		return path, true
	}
	s.Committing.RLock() // it may be served already, and not be in the table yet
	defer s.Committing.RUnlock()
	return s.ownerOf(c)
}

func (s *Base) ownerOf(c judge.Claim) (path string, ok bool) {
	s.Known.RLock()
	defer s.Known.RUnlock()
	f := s.Table.Owner(c)
	if f == nil {
		return "", false
	}
	return f.Path, true
}

// Display returns a path for messages: it can be opened from the working directory.
func (s *Base) Display(path string) string {
	return filepath.Join(s.o.Dir, filepath.FromSlash(path))
}

// OpenTree opens the config folder.
func (s *Base) OpenTree() (*folder.Tree, error) { return s.o.Clone.OpenTree(s.o.Dir) }

// filesOf lists the files that declare objects of a kind with these names, in path order.
func (s *Base) filesOf(holders []catalog.ListHolder) (paths []string) {
	for _, h := range holders {
		if path, ok := s.FileOf(judge.HolderClaim(h)); ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// listFiles lists the files, except one, in which accepted lists of projects name the slug.
func (s *Base) listFiles(slug, except string) (paths []string) {
	paths = s.filesOf(s.Facts.ListsNaming(slug))
	return slices.DeleteFunc(paths, func(path string) bool { return path == except })
}

// LastDecoded decodes the last good bytes of a file.
func (s *Base) LastDecoded(path string) (*hclfile.Result, error) {
	src, err := s.Facts.LastGood(path)
	if err != nil {
		return nil, err
	}
	return judge.Positions(path, src), nil
}
