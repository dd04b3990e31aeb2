package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"fingerpost/resolver/catalog"
)

// A Tree is the accepted tree of the authority; *resolver.Resolver is one.
type Tree interface {
	Position() catalog.Position
	// Tree yields every file as of one moment. content is valid within the call.
	Tree(yield func(path string, content []byte) bool) error
	// TreeFile returns one file; a NOT_FOUND *catalog.Error if there is none.
	TreeFile(path string) (catalog.TreeFile, error)
}

// AuthorityOptions configure an Authority. Cluster, Connection, Tree, Logger and Holder are required.
type AuthorityOptions struct {
	Cluster    string
	Connection Connection
	Tree       Tree
	Logger     *slog.Logger
	Holder     string // names this node in the lease, which edges read, and in its log
	Version    string // of fingerpost
	// OwnServer: the server belongs to this process, so no other authority can take the lease while it is down, and
	// writes go on.
	OwnServer bool
	// TakeOver waits for the lease of another authority to run out. Otherwise Claim refuses if that one is alive.
	TakeOver bool
	// TookOver is called when the lease was another authority's before: what happened until now is in its trail. It must
	// not block. Nil: nobody wants to know.
	TookOver func()
	// TTL of the lease. 0: DefaultTTL.
	TTL time.Duration
	// Answer answers a request that an edge forwards, see Follower.Forward. Nil: none are taken.
	Answer Answer
	// now replaces time.Now in tests.
	now func() time.Time
}

// An Authority publishes the accepted tree. Call Committed with every change, from the start; Claim, then Run. The
// other methods are safe for concurrent use.
type Authority struct {
	o        AuthorityOptions
	now      func() time.Time
	instance string
	nc       *nats.Conn
	bucket   *bucket
	woken    chan struct{} // there are pending changes
	edges    edges

	sameAccount sync.Once // says that an edge has no account of its own

	published
	holder

	mu sync.Mutex // guards progress
	progress
}

// published is what Claim and Run know of the bucket.
type published struct {
	sent      map[string]Sum // what the bucket has, by path
	root      Root           // of sent
	strays    []string       // keys of the bucket that do not belong to a file
	marked    marker         // the bucket's last marker
	fresh     bool           // the bucket is not known
	connects  uint64         // of nc, when the bucket was read
	compareAt time.Time
	tail      tail // of the stream
}

// A holder holds the lease. It is renewed apart from all else, over a connection of its own.
type holder struct {
	leaseBucket *bucket
	stopHolding context.CancelFunc
	holding     sync.WaitGroup
	renewing    sync.Mutex // held during a renewal; guards lease
	lease       watchedLease
}

// progress is what other goroutines set or ask for.
type progress struct {
	pending      pending
	committed    catalog.Position // of the newest change
	leaseEnds    time.Time        // when this node stops writing unless the lease is renewed
	lapsing      error            // why the last renewal has failed, until Run has seen it
	problem      error            // why nothing is published; nil: it is
	netError     error            // the newest of the connection
	reached      catalog.Position // the bucket's
	stats        AuthorityStats
	answering    map[string]int // forwarded requests under way, by edge
	answeringAll int            // the sum
}

// AuthorityStats count what an Authority has done since the start.
type AuthorityStats struct {
	Generations uint64 // published
	Files       uint64 // put or removed
	Compared    uint64 // whole comparisons of the bucket with the tree
	Forwarded   uint64 // requests of edges
}

// pending are changes that are not published yet, merged: an edge may skip generations.
type pending struct {
	files    map[string]*catalog.TreeFile // nil: removed
	bytes    int
	position catalog.Position
	since    time.Time
	any      bool
	overflow bool // too many bytes: compare the whole tree in their place
}

// maxPending bounds the bytes of files that wait while NATS is away.
const maxPending = 64 << 20

// NewAuthority returns an Authority that is not connected.
func NewAuthority(o AuthorityOptions) *Authority {
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.now == nil {
		o.now = time.Now
	}
	var id [8]byte
	rand.Read(id[:]) // never fails, see crypto/rand
	a := &Authority{o: o, now: o.now, instance: hex.EncodeToString(id[:]), woken: make(chan struct{}, 1),
		published: published{fresh: true}, progress: progress{answering: map[string]int{}}}
	a.edges.now = o.now
	a.problem = errors.New("not connected yet")
	return a
}

// Committed takes a change that the tree has made, in order; one without files says that much has changed, and has the
// whole tree compared. It returns at once; it may be called before Run.
func (a *Authority) Committed(c catalog.TreeChange) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &a.pending
	if !p.any {
		*p = pending{any: true, files: map[string]*catalog.TreeFile{}, since: a.now(), overflow: p.overflow}
	}
	a.committed, p.position = c.Position, c.Position
	a.edges.committed(c.Position)
	put := func(path string, f *catalog.TreeFile) {
		if old := p.files[path]; old != nil {
			p.bytes -= len(old.Bytes)
		}
		if p.files[path] = f; f != nil {
			p.bytes += len(f.Bytes)
		}
	}
	if !p.overflow {
		for i := range c.Put {
			put(c.Put[i].Path, &c.Put[i])
		}
		for _, path := range c.Removed {
			put(path, nil)
		}
	}
	if p.bytes > maxPending || len(c.Put)+len(c.Removed) == 0 {
		p.overflow, p.bytes = true, 0
		clear(p.files)
	}
	wake(a.woken)
}

// takePending returns the pending changes and forgets them.
func (a *Authority) takePending() pending {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pending
	a.pending = pending{}
	return p
}

// open connects. It does not wait for the server.
func (a *Authority) open() error {
	if a.nc != nil {
		return nil
	}
	c := a.o.Connection
	c.name = "fingerpost authority of " + a.o.Cluster
	c.inbox = authorityInbox
	c.failed = func(err error) {
		a.mu.Lock()
		a.netError = err
		a.mu.Unlock()
	}
	c.up = func() { wake(a.woken) }
	b, err := c.bucket(a.o.Cluster)
	if err != nil {
		return err
	}
	c.name += " (lease)"
	if a.leaseBucket, err = c.bucket(a.o.Cluster); err != nil {
		b.nc.Close()
		return err
	}
	a.mu.Lock()
	a.nc, a.bucket = b.nc, b
	a.mu.Unlock()
	return a.listen()
}

// Run publishes until ctx ends, and gives the lease back then. It returns no other error: what fails is tried again,
// and Status has it.
func (a *Authority) Run(ctx context.Context) error {
	if err := a.open(); err != nil {
		a.noteProblem(err)
		return err
	}
	backoff := 100 * time.Millisecond
	for ctx.Err() == nil {
		err := a.work(ctx)
		var held *HeldError
		if errors.As(err, &held) && held.Lost {
			a.noteProblem(err)
			a.o.Logger.Error("the lease is lost: writes are refused until the service is started again", "holder", held.Holder)
			<-ctx.Done()
			break
		}
		if err == nil {
			backoff = 100 * time.Millisecond
			continue
		}
		if ctx.Err() != nil {
			break // what is known of the bucket is enough to give the lease back
		}
		a.fresh = true
		a.noteProblem(err)
		_ = pause(ctx, backoff)
		backoff = min(2*backoff, 2*time.Second)
	}
	a.giveBack()
	a.nc.Close()
	a.leaseBucket.nc.Close()
	return nil //nolint:nilerr // noted in the status
}

// noteProblem keeps why nothing is published, and logs it when that changes.
func (a *Authority) noteProblem(err error) {
	a.mu.Lock()
	if err != nil && a.nc != nil && !a.nc.IsConnected() && a.netError != nil {
		err = a.netError
	}
	before := a.problem
	a.problem = err
	a.mu.Unlock()
	switch {
	case err == nil && before != nil:
		a.o.Logger.Info("the cluster is up to date", "cluster", a.o.Cluster)
	case err != nil && (before == nil || before.Error() != err.Error()):
		a.o.Logger.Warn("changes do not reach the cluster: they are published when the cause is gone", "cluster", a.o.Cluster,
			"error", err)
	}
}

// tell tells the edges that there is news up to seq.
func tell(nc *nats.Conn, cluster string, seq uint64) error {
	return nc.Publish(newsSubject(cluster), strconv.AppendUint(nil, seq, 10))
}
