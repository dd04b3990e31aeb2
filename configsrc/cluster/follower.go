package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/share"
)

// A Replica is the tree of an edge, which it keeps in its own store.
type Replica interface {
	// Position is that of the last change; generation 0 before the first, in any epoch or none.
	Position() catalog.Position
	// Tree yields every file that was received, as of one moment. content is valid within the call.
	Tree(yield func(path string, content []byte) bool) error
	// ApplyTree applies one change whole, or fails and changes nothing. After a failure the same change, with what has
	// come since, is given again. It is called by one goroutine at a time.
	ApplyTree(ctx context.Context, c catalog.TreeChange) error
}

// FollowerOptions configure a Follower. Cluster, Edge, Connection, Replica and Logger are required.
type FollowerOptions struct {
	Cluster    string
	Edge       string // the name that the files declare
	Connection Connection
	Replica    Replica
	Logger     *slog.Logger
	Version    string // of fingerpost
	// OnWhole, if set, is called once the replica has a whole tree for the first time in this process.
	OnWhole func()
	// Broken, if set, says what is wrong with files of the tree that arrived; "": nothing. The authority is told.
	Broken func() string
	now    func() time.Time // replaces time.Now in tests
}

// A Follower keeps a Replica in step with the bucket. Call Run once; the other methods are safe for concurrent use.
type Follower struct {
	o        FollowerOptions
	now      func() time.Time
	instance string
	nc       *nats.Conn
	bucket   *bucket
	started  time.Time
	// lastContact: when the authority was last heard, in ns since started; atomic because each answer reads it
	lastContact atomic.Int64
	news        chan struct{} // there is something new to read
	beats       chan struct{} // the position has moved
	forwarding  *share.Places // of the requests that are forwarded, shared by key

	reader

	mu sync.Mutex // guards shown
	shown
}

// A reader is what Run knows of the bucket and of its own tree.
type reader struct {
	made      time.Time // which bucket was read; another one is read from its start
	next      uint64    // sequence to go on from
	own       map[string]Sum
	ownRoot   Root
	view      map[string]Sum // what the bucket has, as far as it was read
	viewRoot  Root
	held      map[string]*catalog.TreeFile // what differs between view and own, by path; nil: removed
	bad       map[string]string            // by key: why a message is refused
	badSums   map[string]Sum               // by key: the sums that refused messages name, as far as they can be read
	from      listing
	last      marker // the newest one read
	state     followState
	compareAt time.Time
}

// shown is what other goroutines set or ask for.
type shown struct {
	heard    uint64    // the newest sequence that the authority has told
	heardAt  time.Time // when the authority was last heard; zero: not yet
	newest   catalog.Position
	problem  error
	logged   string // the problem of which the log has a warning; "": none
	netError error
	refused  map[string]string // as reader.bad
	stats    FollowerStats
	whole    bool
	refilled chan struct{} // set by Refill, closed when the whole tree was applied
}

// A listing says how much of the bucket view was read from.
type listing struct {
	start bool // it was read from its start, so a file that it lacks was removed
	anew  bool // every file is taken, because the epoch has changed and with it the times of objects
}

// FollowerStats count what a Follower has done since the start.
type FollowerStats struct {
	Generations uint64 // applied
	Listings    uint64 // times that the bucket was read from its start
	Repairs     uint64 // of them, those because the own tree differed from the bucket's
	Forwarded   uint64 // requests
}

var (
	// errRepair makes the follower read the bucket from its start.
	errRepair = errors.New("the own tree is not that of the bucket")
	// errEpoch: the authority's store was recreated or restored; read the bucket from the start.
	errEpoch = errors.New("the authority has another store")
	errEmpty = errors.New("the authority's tree has no file: an edge never takes an empty tree")
	// errNoMarker: the authority is filling the bucket, or has to do so again because the server has lost messages.
	errNoMarker = errors.New("the bucket holds no whole generation: waiting for the authority")
	errTorn     = errors.New("the bucket holds a part of a generation: waiting for the authority, which puts the rest")
)

// tornFor is how long the rest of a generation may take to come, before the follower reads the bucket from its start.
const tornFor = time.Second

// NewFollower returns a Follower that is not connected.
func NewFollower(o FollowerOptions) *Follower {
	if o.now == nil {
		o.now = time.Now
	}
	var id [8]byte
	rand.Read(id[:]) // never fails, see crypto/rand
	return &Follower{o: o, now: o.now, started: o.now(), instance: hex.EncodeToString(id[:]), news: make(chan struct{}, 1),
		beats: make(chan struct{}, 1), forwarding: share.New(forwardsOfEdge),
		reader: reader{bad: map[string]string{}, badSums: map[string]Sum{}},
		shown:  shown{problem: errors.New("not connected yet")}}
}

func (f *Follower) isWhole() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.whole
}

// Open connects. It does not wait for the server.
func (f *Follower) Open() error {
	c := f.o.Connection
	c.name = "fingerpost edge " + f.o.Edge + " of " + f.o.Cluster
	c.inbox, c.edge = inboxOf(f.o.Edge), true
	c.failed = func(err error) {
		f.mu.Lock()
		f.netError = err
		f.mu.Unlock()
	}
	c.up = func() {
		f.mu.Lock()
		f.netError = nil
		f.mu.Unlock()
		wake(f.news)
	}
	nc, err := c.connect()
	if err != nil {
		return err
	}
	if f.bucket, err = newBucket(nc, f.o.Cluster); err != nil {
		nc.Close()
		return err
	}
	f.nc = nc
	_, err = nc.Subscribe(newsSubject(f.o.Cluster), func(m *nats.Msg) {
		f.told(m.Data)
		wake(f.news)
	})
	return err
}

// Refill reads the whole bucket into a replica that has lost its content, and returns once that has a whole tree again.
// Run must be running. Without a server it waits until ctx ends.
func (f *Follower) Refill(ctx context.Context) error {
	refilled := make(chan struct{})
	f.mu.Lock()
	f.refilled = refilled
	f.mu.Unlock()
	wake(f.news)
	select {
	case <-refilled:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("read the tree from the cluster again: %w", ctx.Err())
	}
}

// mustRefill reports whether Refill waits, and begins anew for it.
func (f *Follower) mustRefill() error {
	f.mu.Lock()
	wanted := f.refilled != nil
	f.mu.Unlock()
	if !wanted {
		return nil
	}
	f.made = time.Time{}
	return f.loadOwn()
}

// authorityInbox is the prefix of the authority's reply subjects.
const authorityInbox = "_INBOX_fingerpost_authority"

// inboxOf is the prefix of an edge's reply subjects: it may hear no other edge's.
func inboxOf(edge string) string { return "_INBOX_fingerpost_" + edge }

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (f *Follower) told(data []byte) {
	seq, err := strconv.ParseUint(string(data), 10, 64)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.heard = max(f.heard, seq)
	f.mu.Unlock()
}

// pollEvery is how often the bucket is read without a word of the authority.
const pollEvery = 2 * time.Second

// Run follows until ctx ends. It returns no other error: what fails is tried again, and Status has it.
func (f *Follower) Run(ctx context.Context) error {
	defer f.nc.Close()
	var beating sync.WaitGroup
	beating.Go(func() { f.beat(ctx) })
	defer beating.Wait()
	if err := f.loadOwn(); err != nil {
		f.noteProblem(err)
	}
	backoff := 50 * time.Millisecond
	for ctx.Err() == nil {
		err := f.step(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errRepair):
			f.o.Logger.Warn("the own tree is not that of the cluster: reading all of it", "position",
				f.o.Replica.Position().String())
			f.mu.Lock()
			f.stats.Repairs++
			f.mu.Unlock()
			f.made = time.Time{} // read from the start
			if err := f.loadOwn(); err != nil {
				f.noteProblem(err)
			}
			_ = pause(ctx, backoff)
			backoff = min(2*backoff, 2*time.Second)
			continue
		case errors.Is(err, errEpoch):
			f.o.Logger.Info("the authority's store was recreated or restored: reading all of the bucket", "cluster", f.o.Cluster)
			f.made = time.Time{}
			continue
		case err != nil:
			f.noteProblem(err)
			f.wait(ctx, backoff)
			backoff = min(2*backoff, 2*time.Second)
			continue
		default:
			f.noteProblem(nil)
		}
		backoff = 50 * time.Millisecond
		most := pollEvery
		if f.state.at == torn {
			most = tornFor / 4
		}
		f.wait(ctx, most)
	}
	return nil
}

// wait waits for news.
func (f *Follower) wait(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-f.news:
	case <-timer.C:
	}
}

// startPatience is how long an edge that starts may wait for its authority before that is worth a warning: where all
// nodes start at once, some are later than others.
const startPatience = 10 * time.Second

// noteProblem keeps why the edge does not follow, and logs it when that changes.
func (f *Follower) noteProblem(err error) {
	f.mu.Lock()
	switch {
	case err == nil || f.netError == nil:
	case !f.nc.IsConnected():
		err = f.netError
	case errors.Is(f.netError, nats.ErrPermissionViolation): // requests that are not let through have no answer
		err = fmt.Errorf("%w: is %q the name that this key has in the files, and %q the name of the cluster?", f.netError,
			f.o.Edge, f.o.Cluster)
	}
	before, logged := f.problem, f.logged
	starting := f.heardAt.IsZero() && f.now().Sub(f.started) < startPatience
	if f.problem = err; err == nil || starting {
		f.logged = ""
	} else {
		f.logged = err.Error()
	}
	f.mu.Unlock()
	switch {
	case err == nil && before != nil:
		f.o.Logger.Info("the edge follows the cluster", "cluster", f.o.Cluster, "edge", f.o.Edge, "position",
			f.o.Replica.Position().String())
		if f.open() {
			f.o.Logger.Warn(openServer+": see configsrc/cluster/README.md", "edge", f.o.Edge)
		}
	case err != nil && starting:
		if before == nil || before.Error() != err.Error() {
			f.o.Logger.Info("the edge waits for the cluster", "cluster", f.o.Cluster, "edge", f.o.Edge, "error", err)
		}
	case err != nil && err.Error() != logged:
		f.o.Logger.Warn("the edge does not follow the cluster: it goes on with what it has", "cluster", f.o.Cluster, "edge",
			f.o.Edge, "error", err)
	}
}

// beat tells the authority how this edge is.
func (f *Follower) beat(ctx context.Context) {
	for ctx.Err() == nil {
		f.mu.Lock()
		b := beat{Instance: f.instance, Version: f.o.Version, Ready: f.whole}
		if f.problem != nil {
			b.Problem = f.problem.Error()
		}
		f.mu.Unlock()
		if b.Problem == "" && f.o.Broken != nil {
			b.Problem = f.o.Broken()
		}
		if b.Problem == "" && f.open() {
			b.Problem = openServer
		}
		if b.Ready {
			b.Position = f.o.Replica.Position().String()
		}
		if data, err := json.Marshal(b); err == nil {
			_ = f.nc.Publish(beatSubject(f.o.Cluster, f.o.Edge), data) // the next one may get through
		}
		if pause(ctx, beatAtMost) != nil {
			return
		}
		timer := time.NewTimer(beatEvery - beatAtMost)
		select {
		case <-ctx.Done():
		case <-f.beats:
		case <-timer.C:
		}
		timer.Stop()
	}
}
