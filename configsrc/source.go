package configsrc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/watch"
	"fingerpost/resolver/catalog"
)

// decoderRevision is raised when the same bytes decode differently than before: then every file is decoded again.
const decoderRevision = 5

// A Sink receives what a Source accepts; *resolver.Resolver implements it. Its methods are called by one goroutine at a
// time.
type Sink interface {
	Facts
	// Apply commits a change as a whole and returns the generation that readers see from then on. After another error it
	// may have committed it, and File tells. It refuses a client's
	// change with catalog.ErrUnaudited, and has changed nothing then, if it cannot record who made it.
	Apply(*catalog.Change) (generation uint64, err error)
	// Fill is Apply without a new generation: for the parts of a first load, from which no client is answered before the
	// next Apply, and for rows alone.
	Fill(*catalog.Change) error
	// Generation returns the newest generation of Apply, in this process or an earlier one.
	Generation() uint64
	// Files yields the file table until yield returns false.
	Files(yield func(path string, row *catalog.FileRow) bool) error
	// Pace says whether clients read the Sink, so that background work is paced.
	Pace(on bool)
	// UnknownSlugs lists the slugs in key lists that no project has. The list must not be changed.
	UnknownSlugs() []catalog.UnknownSlug
	// SetNamed stores small values by name, durably, all or none; nil deletes one. Named returns one, EachNamed those
	// whose names begin with a prefix.
	SetNamed(values map[string][]byte) error
	EachNamed(prefix string, f func(name string, value []byte) error) error
	DecoderRevision() (uint64, error)
	SetDecoderRevision(uint64) error
	// NoteRemovals replaces the note about imminent removals; an empty note deletes it. When it returns nil, the note and
	// every Apply before it are durable.
	NoteRemovals(note []byte) error
	// Removals returns the note, empty if there is none.
	Removals() ([]byte, error)
	// Position is that of the newest Apply.
	Position() catalog.Position
	// TreeFile returns an accepted file, with the times of its objects; a NOT_FOUND *catalog.Error if there is none.
	TreeFile(path string) (catalog.TreeFile, error)
	// Text returns the accepted bytes of a file that config files name, nil if there is none. It is safe for concurrent
	// use.
	Text(path string) ([]byte, error)
	// Refused yields the files of catalog.Change.Refused. yield may keep content.
	Refused(yield func(path string, content []byte) bool) error
}

// Options configure a Source. Sink, Logger and either Dir or Follow are required.
type Options struct {
	Dir string
	// Follow makes the Source one of an edge: it has no folder, and takes its files from ApplyTree.
	Follow bool
	Sink   Sink
	Logger *slog.Logger
	// MaxDelete is the share (0 to 1) of the projects or of the domains that one look may remove, with 10 projects or
	// more. Above it, the look is held back until someone confirms.
	MaxDelete float64
	// AcceptDeletes confirms removals that the first load would hold back.
	AcceptDeletes bool
	// ReadOnly keeps the Source from replacing uuid = "new" in the files.
	ReadOnly bool
	// Problems are problems of the node itself. The status shows them with those of the files.
	Problems hclfile.Diagnostics
	// Clone is set if Dir is in a git repository whose commits come from others.
	Clone folder.Clone
	// Disk replaces the system calls of writes, for tests; nil is the real disk.
	Disk atomicfile.Disk
	Hooks
	// Fanout puts the file of a new project into a folder named after the first two characters of its slug.
	Fanout bool
	// Journal, if set, keeps each API write until it is in a git commit.
	Journal Journal
	// OpenSecret opens a secret, to recognise a password that is saved again unchanged. Nil: no secret can be opened. See
	// Secrets.Open.
	OpenSecret func(s catalog.Secret, context string) (string, error)
	// StatEvery is the pause between two sweeps over the names and stamps of all files; 0: 5 s. For tests.
	StatEvery time.Duration
	// Room measures the file system of a folder; nil asks the system. For tests.
	Room func(dir string) (atomicfile.Room, error)
}

// Hooks are functions that a Source calls; each may be nil.
type Hooks struct {
	// Now is the clock by which a day lies in the future; nil is the system's.
	Now func() time.Time
	// OnProgress is called during a first load with the number of accepted files.
	OnProgress func(done, total int)
	// OnConfirm is called with what the brake would have held back, once a look that someone has confirmed is
	// committed. It is called by the goroutine that looks, without any lock held, and must return at once.
	OnConfirm func(Held)
	// AuthorOf says who has brought a file's content, nil content for its absence; nil means that somebody has
	// saved it here. It is called by the goroutine that looks, and must return at once.
	AuthorOf func(path string, content []byte) *catalog.Author
	// OnCommit is called with each change of what is accepted, in order, before anybody is told that it is made.
	// A change without files says that the Sink was filled anew. It is called by the goroutine that looks, and must return
	// at once.
	OnCommit func(catalog.TreeChange)
}

// A Source keeps a Sink in step with a folder. Call Load, then Run; the other methods are safe for concurrent use.
type Source struct {
	base
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

// settleAtMost is how long a load or a reload waits for suspect files.
const settleAtMost = 10 * time.Second

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
	s.base = base{o: o, facts: o.Sink, ws: s, committing: new(sync.RWMutex), known: new(sync.RWMutex),
		table: judge.NewTable()}
	s.forget()
	s.status.State = StateLoading
	return s
}

// realDir returns the path of the config folder with links resolved. In a Clone none are followed.
func (s *Source) realDir() (string, error) {
	if s.o.Clone != (folder.Clone{}) {
		return s.o.Clone.Dir(s.o.Dir), nil
	}
	return filepath.EvalSymlinks(s.o.Dir)
}

// display returns a path for messages: it can be opened from the working directory.
func (s *base) display(path string) string {
	return filepath.Join(s.o.Dir, filepath.FromSlash(path))
}

func (s *Source) openTree() (*folder.Tree, error) { return s.o.Clone.OpenTree(s.o.Dir) }

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

// forget clears all state about files outside the table.
func (s *Source) forget() {
	s.known.Lock()
	defer s.known.Unlock()
	s.quarantine, s.suspects, s.warnings = map[string]*judge.Quarantined{}, map[string]suspect{}, newWarnings(&s.base)
}

// rebuild fills a Sink that has lost its content.
func (s *Source) rebuild(ctx context.Context) error {
	s.setLive(false)
	s.forget()
	return s.Load(ctx)
}

func (s *Source) setLive(on bool) {
	s.live.Store(on)
	s.o.Sink.Pace(on)
}

// clearLeftovers finishes or undoes what interrupted writes have left, on a node that may write, and returns the files
// that this changes.
func (s *Source) clearLeftovers(paths []string) (changed []string) {
	if s.o.ReadOnly {
		return nil
	}
	return s.folder.Clear(paths)
}

// settle is the look of a first load.
func (s *Source) settle(ctx context.Context) error {
	s.confirmed = s.confirmed || s.o.AcceptDeletes
	err := s.lookTwice(ctx, scope{Seen: watch.Seen{All: true}})
	s.setLive(true)
	switch {
	case errors.Is(err, ErrHeld):
		return nil // the Sink serves its present content
	case err != nil:
		return err
	}
	s.redecode = false
	return s.o.Sink.SetDecoderRevision(decoderRevision)
}

// lookTwice looks until there is no suspect, or for settleAtMost: some program may never stop writing a file. Its
// accepted state then stays until Run finds it unchanged.
func (s *Source) lookTwice(ctx context.Context, sc scope) error {
	end := time.Now().Add(settleAtMost)
	err := s.look(ctx, sc)
	for err == nil && len(s.suspects) > 0 && time.Now().Before(end) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(s.due())):
		}
		err = s.look(ctx, scope{})
	}
	return err
}

// loadTable loads the Sink's file table, so that unchanged files need not be parsed.
func (s *Source) loadTable() error {
	s.known.Lock()
	defer s.known.Unlock()
	s.table = judge.NewTable()
	s.setGeneration(s.o.Sink.Generation())
	revision, err := s.o.Sink.DecoderRevision()
	if err != nil {
		return fmt.Errorf("read the decoder revision: %w", err)
	}
	s.redecode = revision != decoderRevision
	now := time.Now()
	err = s.o.Sink.Files(func(path string, row *catalog.FileRow) bool {
		s.table.Put(judge.NewFile(path, row, s.redecode || row.Warned || age(row.Stamp, now) < racyFor))
		return true
	})
	if err != nil {
		return fmt.Errorf("read the file table: %w", err)
	}
	if err := s.loadRemovals(); err != nil {
		return err
	}
	if sealing := s.o.Sink.Sealing(); sealing != nil {
		s.sealed = sealing.Require
	}
	return nil
}
