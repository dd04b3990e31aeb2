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
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// decoderRevision is raised when the same bytes decode to something else than before: the store then takes up every
// file anew.
const decoderRevision = 2

// A Sink takes what a Source accepts. *resolver.Resolver is one. Its methods are called by one goroutine at a time.
type Sink interface {
	// Apply commits a change as a whole and returns the generation that readers see from then on.
	Apply(*catalog.Change) (generation uint64, err error)
	// Fill is Apply without a new generation: for the parts of a first load, which nobody is answered from before the next
	// Apply, and for rows alone.
	Fill(*catalog.Change) error
	// Generation is the newest that Apply has returned, in this process or before it.
	Generation() uint64
	// Files yields the file table until yield returns false.
	Files(yield func(path string, row *catalog.FileRow) bool) error
	// File returns one row of the table, with a NOT_FOUND *catalog.Error where there is none.
	File(path string) (*catalog.FileRow, error)
	// LastGood returns the bytes of a file as they were accepted last.
	LastGood(path string) ([]byte, error)
	// Pace tells whether somebody reads what is served, so that work in the background takes its time.
	Pace(on bool)
	// KeysNaming lists the names of the keys whose lists hold a slug.
	KeysNaming(slug string) []string
	// UnknownSlugs lists the slugs in lists of keys that no project has. The list must not be changed.
	UnknownSlugs() []catalog.UnknownSlug
	Sealing() *catalog.Sealing   // nil: no such block
	Defaults() *catalog.Defaults // nil: no such block
	Names
	DecoderRevision() (uint64, error)
	SetDecoderRevision(uint64) error
	// NoteRemovals replaces the note of what is about to be removed; an empty one removes it. When it returns nil, the
	// note and every Apply before it are durable.
	NoteRemovals(note []byte) error
	// Removals returns the note, empty where there is none.
	Removals() ([]byte, error)
}

// Options say how a Source works. Dir, Sink and Logger are required.
type Options struct {
	Dir    string
	Sink   Sink
	Logger *slog.Logger
	// MaxDelete is the share (0 to 1) of the projects or of the domains that one look may remove, with 10 projects or
	// more. Above it, the look is held back until someone confirms.
	MaxDelete float64
	// AcceptDeletes confirms what the first load would hold back.
	AcceptDeletes bool
	// ReadOnly keeps the Source from replacing uuid = "new" in the files.
	ReadOnly bool
	// Problems are of the node itself. The status shows them with those of the files.
	Problems hclfile.Diagnostics
	// Disk replaces the system calls of writes, for tests; nil is the disk itself.
	Disk atomicfile.Disk
	// OnProgress, if set, is told during a first load how many of the files have been taken up.
	OnProgress func(done, total int)
	// OnReload, if set, is called after each look that changed something or failed, without any lock held.
	OnReload func(Status)
	// OnWrite, if set, is told of what API writes have committed, before their callers are. It is called by the goroutine
	// that looks, without any lock held, and must return at once.
	OnWrite func([]Written)
	// OpenSecret opens a secret, so that a password that is saved again is known to be the one that the file gives. Nil:
	// none can be. See Secrets.Open.
	OpenSecret func(s catalog.Secret, context string) (string, error)
	// Room measures the file system of a folder; nil asks the system. For tests.
	Room func(dir string) (atomicfile.Room, error)
}

// A Source keeps a Sink in step with a folder. Load, then Run; the other methods are safe for concurrent use.
type Source struct {
	o    Options
	live atomic.Bool // the Sink serves answers: work on many files leaves it a core
	asks chan ask

	updates chan *update // see write.go
	writers writers
	folder  atomicfile.Folder // config files and what is next to them
	writing atomic.Int32      // API writes under way
	git     gitDesk

	// known guards table, bad and watch for the sweep, which reads them. The goroutine that looks (Load, then Run) alone
	// writes them, so that it reads without it.
	known      sync.RWMutex
	table      *table
	quarantine map[string]*quarantined
	watch      *watch // nil: the timer alone looks

	// Below: only the goroutine that looks.
	lookNo   uint64
	blind    bool                           // no watch could be had, and the log says so
	warnings map[string]hclfile.Diagnostics // of accepted files
	overlaps map[string]overlap             // by wildcard

	overlapping map[string]int           // how many of overlaps a file has
	unknown     map[string]*unknownSlugs // by file
	suspects    map[string]suspect
	redecode    bool // the decoder is another one: decode every file anew, also with the same bytes
	byHash      bool // this look trusts no stamp
	confirmed   bool
	sealed      bool           // sealing { require = true } is in force
	removing    map[claim]bool // projects and domains that the note in the Sink names, see removal.go

	mu     sync.Mutex // guards status
	status Status
}

// settleAtMost is how long a load or a reload waits for files to settle.
const settleAtMost = 10 * time.Second

// New returns a Source that has not looked yet.
func New(o Options) *Source {
	if o.Disk == nil {
		o.Disk = atomicfile.OSDisk{}
	}
	s := &Source{o: o, folder: atomicfile.Folder{Dir: o.Dir, Disk: o.Disk, Log: o.Logger}, asks: make(chan ask), updates: make(chan *update), table: newTable()}
	s.forget()
	s.status.State = StateLoading
	return s
}

// display is a path as messages name it: openable from where the service was started.
func (s *Source) display(path string) string {
	return filepath.Join(s.o.Dir, filepath.FromSlash(path))
}

// Load brings the Sink in step with the folder for the first time. Files that do not load are no error, see Status; nor is
// a folder that cannot be read while the Sink has something to serve.
func (s *Source) Load(ctx context.Context) error {
	if err := s.loadTable(); err != nil {
		return err
	}
	return s.settle(ctx)
}

// forget empties what is known about files that are not in the table.
func (s *Source) forget() {
	s.known.Lock()
	defer s.known.Unlock()
	s.quarantine, s.suspects, s.warnings = map[string]*quarantined{}, map[string]suspect{}, map[string]hclfile.Diagnostics{}
	s.overlaps, s.overlapping = map[string]overlap{}, map[string]int{}
}

// rebuild fills a Sink that has lost what it had.
func (s *Source) rebuild(ctx context.Context) error {
	s.setLive(false)
	s.forget()
	return s.Load(ctx)
}

func (s *Source) setLive(on bool) {
	s.live.Store(on)
	s.o.Sink.Pace(on)
}

// clearStrays settles what writes that were cut off have left, on a node that may write, and returns the files that change
// so.
func (s *Source) clearStrays(paths []string) (changed []string) {
	if s.o.ReadOnly {
		return nil
	}
	return s.folder.Clear(paths)
}

// settle is the look of a first load.
func (s *Source) settle(ctx context.Context) error {
	s.confirmed = s.confirmed || s.o.AcceptDeletes
	err := s.lookTwice(ctx, scope{all: true})
	s.setLive(true)
	switch {
	case errors.Is(err, ErrHeld):
		return nil // the Sink serves what it has
	case err != nil:
		return err
	}
	s.redecode = false
	return s.o.Sink.SetDecoderRevision(decoderRevision)
}

// lookTwice looks until nothing waits for a second look, or for settleAtMost: some program may never stop writing a file,
// whose accepted state then stays until Run finds it settled.
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

// loadTable takes over the Sink's file table, so that unchanged files need not be parsed.
func (s *Source) loadTable() error {
	s.known.Lock()
	defer s.known.Unlock()
	s.table = newTable()
	s.setGeneration(s.o.Sink.Generation())
	revision, err := s.o.Sink.DecoderRevision()
	if err != nil {
		return fmt.Errorf("read the decoder revision: %w", err)
	}
	s.redecode = revision != decoderRevision
	now := time.Now()
	err = s.o.Sink.Files(func(path string, row *catalog.FileRow) bool {
		s.table.put(fileOf(path, row, s.redecode || row.Warned || isRacy(row.Stamp, now)))
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
