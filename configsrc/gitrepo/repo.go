package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"fingerpost/configsrc/gitrepo/plumbing"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// Files is the config folder; *configsrc.Source is one.
type Files interface {
	// GitTurn runs f, which changes refs or the index under git's lock, while no write replaces a file. It does not run f
	// while another git is at work.
	GitTurn(f func() error) error
	// PatientGitTurn is GitTurn, but waits a while for the other git.
	PatientGitTurn(ctx context.Context, f func() error) error
	// Reload looks at all files.
	Reload(ctx context.Context) error
}

// Ledger keeps records of writes and proposals durably; *resolver.Resolver is one.
type Ledger interface {
	ChangePending(put map[int64][]byte, drop ...int64) error
	PendingWrites() (map[int64][]byte, error)
	// Committed keeps the commits of writes, and deletes their records.
	Committed(writes []catalog.WriteCommit, drop ...int64) error
	// MoveCommits records rewritten commits: moved[old] is the new one.
	MoveCommits(moved map[string]string) error
	// ChangeProposals stores and deletes records of proposals, by name.
	ChangeProposals(put map[string][]byte, drop ...string) error
	ProposalRecords() (map[string][]byte, error)
}

// An Ack is the moment at which a write is answered.
type Ack string

// The moments: once the file is safe, once the commit is made, once the remote has it.
const (
	AckFile   Ack = "file"
	AckCommit Ack = "commit"
	AckPush   Ack = "push"
)

// Options configure a Repo. Dir, Ledger, Merge and Logger are required.
type Options struct {
	Dir    string // the config folder
	Ledger Ledger
	Logger *slog.Logger
	// Merge makes the edit from before to after on the content theirs; nil stands for no file. With force, after wins
	// where theirs differs; otherwise that is an error.
	Merge func(path string, before, after, theirs []byte, force bool) ([]byte, error)
	// Answered reports whether the client of a write may have been told that it was made. It is asked after a crash, for a
	// write whose file was changed since. Nil: no.
	Answered func(w *catalog.FileWrite) bool
	// OnOverruled, if set, is called with each write that was set aside.
	OnOverruled func(Overruled)

	Trace   *trace.Exporter // takes the spans of commits and pushes of traced writes; nil: none
	Ack     Ack             // "": AckFile
	Domain  string          // of the addresses of keys and of the service
	SignKey string          // ssh key that signs commits; "": none
	Hooks   bool            // run the repository's hooks
	Push    bool            // push commits to the upstream
	Pull    time.Duration   // how often to fetch; 0: never

	Maintenance Maintenance
}

// An Overruled is a write that a person's commit has set aside.
type Overruled struct {
	Author  catalog.Author
	Commit  string // of the write
	Branch  string // that keeps it
	By      string // author of the remote's last commit
	Reason  string
	Subject string
}

// A Result is what became of a write.
type Result struct {
	Commit    string // "" if it is not known
	Pushed    bool   // the remote has it
	Overruled string // the branch that keeps it, if a person's commit has set it aside
}

// A Status is the state of a Repo.
type Status struct {
	Branch      string    `json:"branch"` // "" while HEAD is detached
	Head        string    `json:"head"`   // "" before the first commit
	Upstream    string    `json:"upstream,omitempty"`
	Ahead       int       `json:"ahead"`
	Behind      int       `json:"behind"`
	Pending     int       `json:"pending"` // writes without a commit
	Commits     uint64    `json:"commits"` // made by this process
	Pushes      uint64    `json:"pushes"`
	Pulls       uint64    `json:"pulls"` // that brought commits
	Failures    uint64    `json:"failures"`
	LastCommit  time.Time `json:"lastCommit,omitzero"`
	LastFetch   time.Time `json:"lastFetch,omitzero"`
	LastPush    time.Time `json:"lastPush,omitzero"`
	CommitError string    `json:"commitError,omitempty"` // why the last commit was not made
	SyncError   string    `json:"syncError,omitempty"`   // why the last fetch, merge or push failed
	LockError   string    `json:"lockError,omitempty"`   // why our lock on git's index is still there
	Locks       []Lock    `json:"locks,omitempty"`       // of others, that hold commits up
	IndexError  string    `json:"indexError,omitempty"`  // why people's index cannot be read, and what to do
	FilterError string    `json:"filterError,omitempty"` // which files are under a git filter: no writes
	// Conflict says what a person has to do before anything is pulled or pushed again.
	Conflict  string   `json:"conflict,omitempty"`
	Overruled []string `json:"overruled,omitempty"` // branches with writes that were set aside, the latest last
}

// A Lock is a file of git's that holds commits up: another git is at work, or one was killed.
type Lock struct {
	Path       string `json:"path"` // below the top of the clone
	AgeSeconds int64  `json:"ageSeconds"`
}

// Errors says what is wrong, but for Conflict, and what to do.
func (s *Status) Errors() (list []string) {
	for _, text := range []string{s.CommitError, s.SyncError, s.LockError, s.IndexError, s.FilterError} {
		if text != "" {
			list = append(list, text)
		}
	}
	for _, l := range s.Locks {
		list = append(list, fmt.Sprintf("%s is there for %s and holds commits up: another git is at work, or one was "+
			"killed; if none is, remove the file", l.Path, time.Duration(l.AgeSeconds)*time.Second))
	}
	return list
}

var errOtherService = errors.New("another service, or a git that it has started, uses the clone")

// closeAtMost is how long Open waits for git processes that have outlived an earlier service.
const closeAtMost = 30 * time.Second

// lockClone makes this process the only service on the clone. It waits until end for another one.
func (r *Repo) lockClone(ctx context.Context, end time.Time) error {
	f, err := os.OpenFile(filepath.Join(r.git.GitDir, "fingerpost.lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			r.git.Share(f)
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			f.Close()
			return fmt.Errorf("%w of %s (%s is locked)", errOtherService, r.o.Dir, f.Name())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A Repo is the git repository of a config folder.
type Repo struct {
	o      Options
	git    *plumbing.Store
	prefix string // of the config folder in the repository: "" or ends in a slash
	files  Files

	attributes *plumbing.Attributes

	earlier    map[int64][]byte // records of writes of earlier processes, until Recover
	queue      queue
	described  descriptions
	wakeCommit chan struct{} // of capacity 1
	remote     remote

	// work is held by a commit and by a merge.
	work     sync.Mutex
	writable atomic.Bool // the clone is ours, and git's folder can be written, see openForWrites
	index    index
	mended   time.Time            // when mend has not helped
	applied  map[string]*Proposal // whose branches could not be removed, see dropApplied

	mu     sync.Mutex // guards what follows
	status Status
	pulled map[string]pulledFile // by path below the config folder; of the last pull
	cutOff map[string]cutOffFile // by path below the config folder; of writes of an earlier process, until Recover
}

// checked returns the repository of the config folder, whose set-up is right.
func checked(ctx context.Context, o Options) (*Repo, error) {
	if o.Ack == "" {
		o.Ack = AckFile
	}
	dir, err := filepath.Abs(o.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	r := &Repo{o: o, git: &plumbing.Store{Command: plumbing.NewCommand(dir, o.Hooks)},
		wakeCommit: make(chan struct{}, 1), remote: remote{wake: make(chan struct{}, 1)}}
	return r, r.check(ctx)
}

// Open checks the repository of the config folder. All that is wrong with the set-up is one error.
func Open(ctx context.Context, o Options) (*Repo, error) {
	r, err := checked(ctx, o)
	if err != nil {
		return nil, err
	}
	r.git.SignKey = r.o.SignKey
	r.git.Committer = []string{"GIT_COMMITTER_NAME=fingerpost", "GIT_COMMITTER_EMAIL=fingerpost@" + o.Domain}
	r.index.lock = plumbing.NewIndexLock(r.git.GitDir, r.unlocked)
	r.makeScratch() // now, when nobody takes it for the work of a git
	if err := r.git.Open(ctx); err != nil {
		return nil, fmt.Errorf("--git: %w", err)
	}
	r.attributes = r.git.Attributes(ctx)
	if text, err := r.filtered(ctx); err != nil {
		o.Logger.Warn("git: the attributes of the files cannot be read", "error", err)
	} else if text != "" {
		o.Logger.Warn("git: " + text)
		r.status.FilterError = text
	}
	// Before the files are read: a power cut in the middle of a pull may have left some of them empty.
	err = r.openForWrites(ctx, closeAtMost, func(f func() error) error { return f() })
	if errors.Is(err, errOtherService) {
		return nil, fmt.Errorf("--git: %w", err)
	} else if err != nil {
		r.commitFails(err)
	}
	// Read before the first Begin: from then on there are records of this process.
	if r.earlier, err = o.Ledger.PendingWrites(); err != nil {
		o.Logger.Error("git: the records of earlier writes cannot be read; such writes stay uncommitted", "error", err)
	}
	r.noteCutOff()
	_, _ = r.head(ctx) // so that /status names the branch and its locks before the first commit, which tells what fails
	last := time.Now().UnixMicro()
	for id := range r.earlier {
		last = max(last, id)
	}
	r.queue.startAt(last)
	return r, nil
}

// openForWrites makes this process the only service on the clone, and takes up what an earlier one has left in git's
// folder. It fails while the folder cannot be written: then the files are served, nothing is committed, and it is
// called again. turn is Files.GitTurn, once there are Files.
func (r *Repo) openForWrites(ctx context.Context, patience time.Duration, turn func(f func() error) error) error {
	if r.writable.Load() {
		return nil
	}
	if r.git.Shared() == nil {
		if err := r.lockClone(ctx, time.Now().Add(patience)); err != nil {
			return fmt.Errorf("nothing can be committed: %w", err)
		}
	}
	removed, err := r.git.OpenForWrites()
	if err != nil {
		return fmt.Errorf("nothing can be committed: %w", err)
	}
	if len(removed) > 0 {
		r.o.Logger.Info("git: removes locks that a git of an earlier process of this service has left", "locks", removed)
	}
	if r.index.lock.TakeOver() {
		r.o.Logger.Info("git: takes over the lock that an earlier process of this service has left")
	}
	if err := turn(func() error { return r.finishMove(ctx) }); err != nil {
		r.o.Logger.Warn("git: a pull that was cut off", "error", err)
	}
	r.writable.Store(true)
	return nil
}

// commitFails notes why nothing is committed, or nil, in the status.
func (r *Repo) commitFails(err error) {
	told := false
	r.change(func(s *Status) {
		was := s.CommitError
		s.CommitError = ""
		if err != nil {
			s.CommitError = err.Error()
			s.Failures++
		}
		told = was == s.CommitError
	})
	if err != nil && !told && !errors.Is(err, plumbing.ErrLocked) {
		r.o.Logger.Warn("git: writes are not committed yet; it is tried again", "error", err)
	}
}

// Status returns the current state.
func (r *Repo) Status() Status {
	pending := len(r.queue.waiting()) // first: who sees none must see their commits
	r.mu.Lock()
	s := r.status
	s.Pending, s.Overruled = pending, slices.Clone(s.Overruled)
	r.mu.Unlock()
	for _, l := range r.git.HeldLocks("refs/heads/"+s.Branch, r.index.lock) {
		path, err := filepath.Rel(r.git.Dir, filepath.Join(r.git.GitDir, filepath.FromSlash(l.Path)))
		if err != nil {
			path = l.Path
		}
		s.Locks = append(s.Locks, Lock{filepath.ToSlash(path), int64(time.Since(l.Since).Seconds())})
	}
	return s
}

func (r *Repo) change(f func(s *Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.status)
}

// unlocked notes whether our lock on git's index could be removed.
func (r *Repo) unlocked(err error) {
	text := ""
	if err != nil {
		text = fmt.Sprintf("the service's own lock on git's index cannot be removed, "+
			"so writes and other gits have to wait; it is tried again every %v: %v", plumbing.UnlockEvery, err)
	}
	r.change(func(s *Status) {
		if s.LockError == "" && text != "" {
			r.o.Logger.Warn("git: " + text)
		}
		s.LockError = text
	})
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Sync lets the next fetch and push begin at once.
func (r *Repo) Sync() {
	r.remote.mu.Lock()
	r.remote.fetchNow = true
	r.remote.mu.Unlock()
	wake(r.remote.wake)
}

// Close ends git's helpers. Call it after Run.
func (r *Repo) Close() {
	if r == nil {
		return
	}
	r.work.Lock()
	defer r.work.Unlock()
	r.index.lock.Close()
	r.git.Close()
}

// Run commits, fetches and pushes until ctx ends; then it makes the commits that are due. Call it once, after Recover.
func (r *Repo) Run(ctx context.Context) error {
	var syncing sync.WaitGroup // and maintaining
	if r.o.Push || r.o.Pull > 0 {
		syncing.Go(func() { r.syncLoop(ctx) })
	}
	syncing.Go(func() { r.maintainLoop(ctx) })
	r.commitLoop(ctx)
	syncing.Wait()
	return nil
}
