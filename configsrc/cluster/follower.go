package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"fingerpost/resolver/catalog"
)

// A Replica is the tree of an edge, which it keeps in its own store.
type Replica interface {
	// Position is that of the last change; no epoch before the first.
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
	now     func() time.Time // replaces time.Now in tests
}

// A Follower keeps a Replica in step with the bucket. Call Run once; the other methods are safe for concurrent use.
type Follower struct {
	o        FollowerOptions
	now      func() time.Time
	instance string
	nc       *nats.Conn
	bucket   *bucket
	started  time.Time
	word     atomic.Int64  // nanoseconds from started to the last word of the authority: answers read it
	news     chan struct{} // there is something new to read
	beats    chan struct{} // the position has moved

	// The fields below belong to Run.
	made      time.Time // which bucket was read; another one is read from its start
	next      uint64    // sequence to go on from
	heard     uint64    // the newest sequence that the authority has told
	own       map[string]Sum
	ownRoot   Root
	view      map[string]Sum // what the bucket has, as far as it was read
	viewRoot  Root
	held      map[string]*catalog.TreeFile // what differs between view and own, by path; nil: removed
	bad       map[string]string            // by key: why a message is refused
	parts     map[string]*partial          // by encoded path
	from      listing
	last      marker    // the newest one read
	owing     bool      // last is not applied yet
	stuck     error     // why last is not applied; nil: it is, or it could be
	tornAt    time.Time // since when view is not what last says; zero: it is
	compareAt time.Time

	mu       sync.Mutex // guards the fields below
	heardAt  time.Time  // the last word of the authority; zero: none yet
	newest   catalog.Position
	problem  error
	netError error
	refused  map[string]string // as bad
	stats    FollowerStats
	whole    bool
	refilled chan struct{} // set by Refill, closed when the whole tree was applied
}

// A listing says how much of the bucket view was read from.
type listing struct {
	start bool // it was read from its start, so a file that it lacks was removed
	anew  bool // every file is taken, because the epoch has changed and with it the times of objects
}

// A partial is a file whose parts are coming in.
type partial struct {
	of     [partSum]byte
	chunks [][]byte
	bytes  int
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
	// errEpoch makes it do so because the authority's store was made anew or restored.
	errEpoch = errors.New("the authority has another store")
	errEmpty = errors.New("the authority's tree has no file: an edge never takes an empty tree")
	errTorn  = errors.New("the bucket holds a part of a generation: waiting for the authority, which puts the rest")
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
	return &Follower{o: o, now: o.now, started: o.now(), instance: hex.EncodeToString(id[:]), news: make(chan struct{}, 1), beats: make(chan struct{}, 1),
		problem: errors.New("not connected yet"), bad: map[string]string{}}
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
	c.inbox = inboxOf(f.o.Edge)
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
		f.note(err)
	}
	backoff := 50 * time.Millisecond
	for ctx.Err() == nil {
		err := f.step(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errRepair):
			f.o.Logger.Warn("the own tree is not that of the cluster: reading all of it", "position", f.o.Replica.Position().String())
			f.mu.Lock()
			f.stats.Repairs++
			f.mu.Unlock()
			f.made = time.Time{} // read from the start
			if err := f.loadOwn(); err != nil {
				f.note(err)
			}
			_ = pause(ctx, backoff)
			backoff = min(2*backoff, 2*time.Second)
			continue
		case errors.Is(err, errEpoch):
			f.o.Logger.Info("the authority's store was made anew or restored: reading all of the bucket", "cluster", f.o.Cluster)
			f.made = time.Time{}
			continue
		case err != nil:
			f.note(err)
			f.wait(ctx, backoff)
			backoff = min(2*backoff, 2*time.Second)
			continue
		default:
			f.note(nil)
		}
		backoff = 50 * time.Millisecond
		most := pollEvery
		if !f.tornAt.IsZero() {
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

// loadOwn reads which files the replica has.
func (f *Follower) loadOwn() error {
	f.own, f.ownRoot = map[string]Sum{}, Root{}
	err := f.o.Replica.Tree(func(path string, content []byte) bool {
		s := SumOf(path, content)
		f.own[path] = s
		f.ownRoot.Add(s)
		return true
	})
	f.compareAt = f.now().Add(compareEvery)
	if err != nil {
		return fmt.Errorf("read the own tree: %w", err)
	}
	if len(f.own) > 0 {
		f.becomeWhole()
	}
	return nil
}

// becomeWhole notes that the replica has a whole tree.
func (f *Follower) becomeWhole() {
	f.mu.Lock()
	first := !f.whole
	f.whole = true
	f.mu.Unlock()
	if first && f.o.OnWhole != nil {
		f.o.OnWhole()
	}
}

// step reads what is new.
func (f *Follower) step(ctx context.Context) error {
	if err := checkVersion(f.nc); err != nil {
		return err
	}
	if err := f.mustRefill(); err != nil {
		return err
	}
	f.mu.Lock()
	heard := f.heard
	f.mu.Unlock()
	// The state says whether it is still the same bucket. Between two polls the authority's word is enough.
	if f.made.IsZero() || heard < f.next {
		st, err := f.bucket.state(ctx)
		if err != nil {
			return err
		}
		if !st.created.Equal(f.made) || st.last+1 < f.next {
			f.mu.Lock()
			f.heard = 0
			f.mu.Unlock()
			if err := f.begin(ctx, st); err != nil {
				return err
			}
		}
	}
	for tries := 0; ; tries++ {
		next, err := f.bucket.read(ctx, f.next, func(r record) error { return f.take(ctx, r) })
		f.next = max(f.next, next)
		if err != nil {
			return err
		}
		if f.next > heard || tries > 20 {
			break
		}
		// A replica of the server's stream that lags behind has answered.
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	if f.owing { // it was held back, or the store has refused it
		if err := f.mark(ctx); err != nil {
			return err
		}
	}
	if !f.tornAt.IsZero() && f.now().Sub(f.tornAt) > tornFor {
		if !f.from.start {
			return errRepair
		}
		f.stuck = errTorn
	}
	if f.stuck != nil {
		return f.stuck
	}
	if f.now().After(f.compareAt) {
		if err := f.loadOwn(); err != nil {
			return err
		}
		if !f.owing && f.last.Root != "" && f.ownRoot.String() != f.last.Root && len(f.bad) == 0 {
			return errRepair
		}
	}
	return nil
}

// begin starts to read a bucket: from its start, or from its marker where the own tree is the marker's.
func (f *Follower) begin(ctx context.Context, st bucketState) error {
	f.held, f.parts, f.owing, f.last = map[string]*catalog.TreeFile{}, map[string]*partial{}, false, marker{}
	f.stuck, f.tornAt = nil, time.Time{}
	clear(f.bad)
	f.showBad()
	have := f.o.Replica.Position()
	f.from = listing{start: true}
	if r, found, err := f.bucket.last(ctx, keyMarker); err != nil {
		return err
	} else if found {
		m, err := parseMarker(r.value)
		if err == nil && m.position.Epoch == have.Epoch && m.Root == f.ownRoot.String() && m.Files == len(f.own) {
			f.view, f.viewRoot, f.from = maps.Clone(f.own), f.ownRoot, listing{}
			f.made, f.next = st.created, r.seq // the marker itself is read again, and applied if its position is newer
			return nil
		}
		f.from.anew = err == nil && have.Epoch != "" && m.position.Epoch != have.Epoch
	}
	f.mu.Lock()
	f.stats.Listings++
	f.mu.Unlock()
	f.view, f.viewRoot = map[string]Sum{}, Root{}
	f.made, f.next = st.created, 1
	return nil
}

// take takes a message, in order.
func (f *Follower) take(ctx context.Context, r record) error {
	f.next = r.seq + 1
	switch {
	case r.key == keyMarker && r.gone, r.key == keyLease && r.gone:
	case r.key == keyLease:
		if l, err := parseLease(r); err == nil && l.Holder != "" {
			p, _ := catalog.ParsePosition(l.Position) // for the lag only
			f.hearWord(p)
		}
	case r.key == keyMarker:
		m, err := parseMarker(r.value)
		if err != nil {
			f.refuse(r.key, err)
			return nil
		}
		f.admit(r.key)
		m.seq = r.seq
		f.last, f.owing = m, true
		f.hearWord(m.position)
		return f.mark(ctx)
	case strings.HasPrefix(r.key, prefixPart):
		f.takePart(r)
	case strings.HasPrefix(r.key, prefixFile):
		f.takeFile(r)
	}
	return nil
}

// hearWord notes a word of the authority.
func (f *Follower) hearWord(p catalog.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heardAt = f.now()
	f.word.Store(int64(f.heardAt.Sub(f.started)))
	if p.Epoch != f.newest.Epoch || p.Generation > f.newest.Generation {
		f.newest = p
	}
}

func (f *Follower) takePart(r record) {
	key := strings.TrimPrefix(r.key, prefixPart)
	dot := strings.LastIndexByte(key, '.')
	if dot < 0 || r.gone {
		return
	}
	n, err := strconv.Atoi(key[dot+1:])
	of, chunk, bad := parsePart(r.value)
	if err != nil || bad != nil || n < 0 || n > maxContent {
		return // the file's own key is refused then: its content is not whole
	}
	p := f.parts[key[:dot]]
	if p == nil || p.of != of {
		p = &partial{of: of}
		f.parts[key[:dot]] = p
	}
	if n == len(p.chunks) && p.bytes+len(chunk) <= maxValue {
		p.chunks = append(p.chunks, chunk)
		p.bytes += len(chunk)
	}
}

// takeFile takes the new content of a file, or its removal.
func (f *Follower) takeFile(r record) {
	if r.gone {
		f.admit(r.key)
		// A removal names the encoded path alone.
		encoded := strings.TrimPrefix(r.key, prefixFile)
		delete(f.parts, encoded)
		if path, ok := decodePath(encoded); ok {
			f.remove(path)
			return
		}
		for path := range f.view { // an encoded path that is a hash is rare
			if encodePath(path) == encoded {
				f.remove(path)
				return
			}
		}
		return
	}
	e, err := parseEntry(r.key, r.value)
	var file catalog.TreeFile
	if err == nil {
		packed := e.packed
		if e.parts > 0 {
			p := f.parts[e.encoded]
			if p == nil || len(p.chunks) != e.parts || string(p.of[:]) != string(e.sum[:partSum]) {
				err = errors.New("parts of the file are missing")
			} else {
				packed = slices.Concat(p.chunks...)
			}
			delete(f.parts, e.encoded)
		}
		if err == nil {
			file, err = e.unpack(packed)
		}
	}
	if err != nil {
		f.refuse(r.key, err)
		return
	}
	f.admit(r.key)
	if old, found := f.view[file.Path]; found {
		f.viewRoot.Remove(old)
	}
	f.view[file.Path] = e.sum
	f.viewRoot.Add(e.sum)
	if own, found := f.own[file.Path]; found && own == e.sum && !f.from.anew {
		delete(f.held, file.Path)
	} else {
		f.held[file.Path] = &file
	}
}

func (f *Follower) remove(path string) {
	sum, found := f.view[path]
	if !found {
		return
	}
	f.viewRoot.Remove(sum)
	delete(f.view, path)
	if _, found := f.own[path]; found {
		f.held[path] = nil
	} else {
		delete(f.held, path)
	}
}

// refuse keeps what a message would replace, as a broken file keeps its last good content.
func (f *Follower) refuse(key string, err error) {
	if f.bad[key] == "" {
		f.o.Logger.Warn("a message of the bucket is refused; what it would replace goes on being served", "key", key, "error", err)
	}
	f.bad[key] = err.Error()
	f.showBad()
}

func (f *Follower) admit(key string) {
	if _, was := f.bad[key]; was {
		delete(f.bad, key)
		f.showBad()
	}
}

func (f *Follower) showBad() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = maps.Clone(f.bad)
}

// mark applies the generation that the last marker ends, if all of it is there.
func (f *Follower) mark(ctx context.Context) error {
	m, have := f.last, f.o.Replica.Position()
	f.stuck = nil
	if m.position.Epoch == have.Epoch && m.position.Generation < have.Generation && f.isWhole() {
		f.owing = false
		f.stuck = fmt.Errorf("the bucket is at generation %d, and this edge at %d already: waiting for the authority", m.position.Generation, have.Generation)
		return nil
	}
	if m.position.Epoch != have.Epoch && f.isWhole() && !f.from.anew {
		return errEpoch
	}
	if m.Files == 0 {
		f.owing = false
		f.stuck = errEmpty
		return nil
	}
	refused := len(f.bad) > 0
	if f.viewRoot.String() != m.Root && !refused {
		// The authority is in the middle of the next generation, and has replaced files of this one; or a message is lost.
		f.owing = false
		if f.tornAt.IsZero() {
			f.tornAt = f.now()
		}
		return nil
	}
	f.tornAt = time.Time{}
	change := catalog.TreeChange{Position: m.position}
	for path, file := range f.held {
		if file != nil {
			change.Put = append(change.Put, *file)
		} else {
			change.Removed = append(change.Removed, path)
		}
	}
	if f.from.start && !refused {
		for path := range f.own {
			if _, there := f.view[path]; !there && f.held[path] == nil {
				if _, removal := f.held[path]; !removal {
					change.Removed = append(change.Removed, path)
				}
			}
		}
	}
	slices.SortFunc(change.Put, func(a, b catalog.TreeFile) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(change.Removed)
	if change.Position != have || len(change.Put)+len(change.Removed) > 0 {
		if err := f.o.Replica.ApplyTree(ctx, change); err != nil {
			f.stuck = fmt.Errorf("apply generation %d: %w", m.position.Generation, err)
			return nil // it is owed
		}
		f.mu.Lock()
		f.stats.Generations++
		f.mu.Unlock()
	}
	for i := range change.Put {
		path := change.Put[i].Path
		if old, found := f.own[path]; found {
			f.ownRoot.Remove(old)
		}
		f.own[path] = f.view[path]
		f.ownRoot.Add(f.view[path])
	}
	for _, path := range change.Removed {
		if old, found := f.own[path]; found {
			f.ownRoot.Remove(old)
			delete(f.own, path)
		}
	}
	clear(f.held)
	if f.from.start && refused { // files that this edge has and the view lacks are of refused messages, or removed
		f.from.anew = false
	} else {
		f.from = listing{}
	}
	f.owing = false
	f.becomeWhole()
	f.mu.Lock()
	if f.refilled != nil {
		close(f.refilled)
		f.refilled = nil
	}
	f.mu.Unlock()
	wake(f.beats)
	return nil
}

// note keeps why the edge does not follow, and logs it when that changes.
func (f *Follower) note(err error) {
	f.mu.Lock()
	switch {
	case err == nil || f.netError == nil:
	case !f.nc.IsConnected():
		err = f.netError
	case errors.Is(f.netError, nats.ErrPermissionViolation): // requests that are not let through have no answer
		err = fmt.Errorf("%w: is %q the name that this key has in the files, and %q the name of the cluster?", f.netError, f.o.Edge, f.o.Cluster)
	}
	before := f.problem
	f.problem = err
	f.mu.Unlock()
	switch {
	case err == nil && before != nil:
		f.o.Logger.Info("the edge follows the cluster", "cluster", f.o.Cluster, "edge", f.o.Edge, "position", f.o.Replica.Position().String())
	case err != nil && (before == nil || before.Error() != err.Error()):
		f.o.Logger.Warn("the edge does not follow the cluster: it goes on with what it has", "cluster", f.o.Cluster, "edge", f.o.Edge, "error", err)
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
