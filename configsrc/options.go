package configsrc

import (
	"log/slog"
	"time"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// decoderRevision is raised when the same bytes decode differently than before: then every file is decoded again, see
// base.revision.
const decoderRevision = 5

// A Sink receives what a Source accepts; *resolver.Resolver implements it. Its methods are called by one goroutine at a
// time.
type Sink interface {
	edits.Live
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
	// Allow says to which addresses attributes may lead with http.
	Allow catalog.Allows
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

// A Journal keeps API writes from before their files are replaced until they are in a git commit, so that a crash in
// between loses no author. Its methods may be called from any goroutine.
type Journal interface {
	// Begin notes a write and sets its ID. When it returns nil, the note is durable. An error refuses the write.
	Begin(w *catalog.FileWrite) error
	// End says whether the write of a Begin was made. Writes to one file end in the order in which they were made.
	End(w *catalog.FileWrite, made bool)
}
