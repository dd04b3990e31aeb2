package configsrc

import (
	"context"
	"sync"
	"sync/atomic"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/watch"
	"fingerpost/resolver/catalog"
)

// A Source keeps a Sink in step with a folder. Call Load, then Run; the other methods are safe for concurrent use.
type Source struct {
	writer
	writes writeCount
	live   atomic.Bool // the Sink serves answers: work on many files leaves one core free
	asks   chan ask

	updates chan *submission  // see write.go
	git     *gitGuard         // of Dir
	folder  atomicfile.Folder // config files and the files next to them

	watch *watch.Watch // nil: only the timer triggers looks; guarded by known

	lookState
	warnings *warnings

	// mu guards status. Only the goroutine that looks writes status.Held, so it reads it without the lock.
	mu     sync.Mutex
	status Status
}

// A lookState belongs to the goroutine that looks.
type lookState struct {
	lookNo    uint64
	told      uint64 // the generation that was logged last
	loaded    bool   // "config loaded" is in the log
	changed   changes
	blind     bool // there is no watch, which was logged
	suspects  map[string]suspect
	redecode  bool                  // the decoder has changed: decode every file again, even with the same bytes
	byHash    bool                  // this look trusts no stamp
	progress  func(done, total int) // called for each file that a look has read; nil: nobody asks
	confirmed bool
	confirmer catalog.Author                  // who has; zero: the operator
	removing  map[judge.Claim]bool            // projects and domains that the Sink's note names, see removal.go
	former    map[catalog.UUID]catalog.Former // of removed projects, see former.go; nil: not read yet
}

// New returns a Source that has not loaded anything yet.
func New(o Options) *Source {
	if o.Disk == nil {
		o.Disk = o.Clone.Disk()
	}
	if o.Room == nil {
		o.Room = atomicfile.RoomOf
	}
	if o.StatEvery == 0 {
		o.StatEvery = statEvery
	}
	s := &Source{folder: atomicfile.Folder{Dir: o.Clone.Dir(o.Dir), Disk: o.Disk, Log: o.Logger},
		asks: make(chan ask), updates: make(chan *submission)}
	s.git = newGitGuard(s.realDir)
	s.writer = writer{ws: s, base: &base{o: o, facts: o.Sink, committing: new(sync.RWMutex), known: new(sync.RWMutex),
		table: judge.NewTable()}}
	s.forget()
	s.status.State = StateLoading
	return s
}

// Load brings the Sink in step with the folder for the first time. Files that do not load are no error, see Status; nor
// is an unreadable folder if the Sink has something to serve.
func (s *Source) Load(ctx context.Context) error {
	if err := s.loadTable(); err != nil {
		return err
	}
	if s.o.Follow {
		return s.loadFollowed(ctx)
	}
	return s.settle(ctx)
}

// rebuild fills a Sink that has lost its content.
func (s *Source) rebuild(ctx context.Context) error {
	s.setLive(false)
	s.forget()
	return s.Load(ctx)
}
