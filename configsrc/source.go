package configsrc

import (
	"context"
	"sync"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// A Source keeps a Sink in step with a folder. Call Load, then Run; the other methods are safe for concurrent use.
type Source struct {
	writer
	writes writeCount
	turns  turns

	updates chan *submission  // see write.go
	git     *gitGuard         // of Dir
	folder  atomicfile.Folder // config files and the files next to them

	watching *watching

	lookState
	states   *pathStates
	warnings *warnings
	*removals
	*reporter
}

// A lookState belongs to the goroutine that looks.
type lookState struct {
	lookNo    uint64
	blind     bool                  // there is no watch, which was logged
	byHash    bool                  // this look trusts no stamp
	progress  func(done, total int) // called for each file that a look has read; nil: nobody asks
	confirmed bool
	confirmer catalog.Author                  // who has; zero: the operator
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
		turns: make(turns), updates: make(chan *submission)}
	s.writer = writer{ws: s, base: &base{o: o, facts: o.Sink, committing: new(sync.RWMutex), known: new(sync.RWMutex),
		table: judge.NewTable()}}
	s.git = newGitGuard(s.realDir)
	s.states, s.removals, s.reporter = &pathStates{base: s.base}, &removals{sink: o.Sink}, newReporter(&o)
	s.watching = &watching{dir: o.Dir, log: o.Logger, report: s.reporter}
	s.forget()
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

// Status returns the present state.
func (s *Source) Status() Status { return s.reporter.present() }

// Write is writer.Write, and counts.
func (s *Source) Write(ctx context.Context, e *catalog.Edit) (Outcome, error) {
	out, err := s.writer.Write(ctx, e)
	if !e.DryRun && (err != nil || len(out.Paths) > 0) { // else nothing was to be changed
		s.writes.count(err, s.o.ReadOnly || s.o.Follow)
	}
	return out, err
}

// EachWrite yields how many writes of clients changed files, were refused for what they asked, and failed. Dry runs, and
// writes that had nothing to change, are not counted.
func (s *Source) EachWrite(yield func(result string, count uint64)) { s.writes.each(yield) }
