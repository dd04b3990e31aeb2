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
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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
	Holder     string // machine and data folder of this node, for people and for the lease
	Version    string // of fingerpost
	// OwnServer: the server belongs to this process, so no other authority can take the lease while it is down, and
	// writes go on.
	OwnServer bool
	// TakeOver waits for the lease of another authority to run out. Otherwise Claim refuses if that one is alive.
	TakeOver bool
	// TTL of the lease. 0: DefaultTTL.
	TTL time.Duration
	// Answer answers a request that an edge forwards, see Follower.Forward. Nil: none are taken.
	Answer Answer
	// now replaces time.Now in tests.
	now func() time.Time
}

// An Authority publishes the accepted tree. Call Committed with every change, from the start; Claim, then Run. The other
// methods are safe for concurrent use.
type Authority struct {
	o         AuthorityOptions
	now       func() time.Time
	instance  string
	nc        *nats.Conn
	bucket    *bucket
	woken     chan struct{} // there are pending changes
	edges     edges
	answering chan struct{} // holds a value per forwarded request

	// The fields below belong to Claim and Run.
	lease     watchedLease
	sent      map[string]sentFile // what the bucket has, by path
	root      Root                // of sent
	strays    []string            // keys of the bucket that are no file's
	seq       uint64              // of the stream's last message
	marked    marker              // the bucket's last marker
	fresh     bool                // the bucket is not known
	compareAt time.Time

	mu        sync.Mutex // guards the fields below
	pending   pending
	committed catalog.Position // of the newest change
	leaseEnds time.Time        // when this node stops writing unless the lease is renewed
	problem   error            // why nothing is published; nil: it is
	netError  error            // the newest of the connection
	published catalog.Position // the bucket's
	stats     AuthorityStats
}

// AuthorityStats count what an Authority has done since the start.
type AuthorityStats struct {
	Generations uint64 // published
	Files       uint64 // put or removed
	Compared    uint64 // whole comparisons of the bucket with the tree
	Forwarded   uint64 // requests of edges
}

// A sentFile is what the bucket has for a path.
type sentFile struct {
	sum   Sum
	parts int
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
	a := &Authority{o: o, now: o.now, instance: hex.EncodeToString(id[:]), woken: make(chan struct{}, 1), answering: make(chan struct{}, forwards), fresh: true}
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
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

// take returns the pending changes and forgets them.
func (a *Authority) take() pending {
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
	c.inbox = "_INBOX_fingerpost_authority"
	c.failed = func(err error) {
		a.mu.Lock()
		a.netError = err
		a.mu.Unlock()
	}
	c.up = func() {
		select {
		case a.woken <- struct{}{}:
		default:
		}
	}
	nc, err := c.connect()
	if err != nil {
		return err
	}
	b, err := newBucket(nc, a.o.Cluster)
	if err != nil {
		nc.Close()
		return err
	}
	a.mu.Lock()
	a.nc, a.bucket = nc, b
	a.mu.Unlock()
	return a.listen()
}

// Claim takes the lease. Another authority that is alive is a *HeldError at once, or, with TakeOver, something to wait
// for. A server that cannot be reached is no error: Run goes on trying, and until then MayWrite says no.
func (a *Authority) Claim(ctx context.Context) error {
	if err := a.open(); err != nil {
		return err
	}
	// A live holder renews its lease several times within its time to live, so its life shows well before the end.
	tried := a.now()
	var first uint64
	for {
		err := a.know(ctx)
		var held *HeldError
		switch {
		case err == nil:
			a.note(nil)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &held):
			if first == 0 {
				first = a.lease.seq
				a.o.Logger.Info("another authority may be alive: watching its lease", "holder", held.Holder, "cluster", a.o.Cluster)
			}
			if a.lease.seq != first && !a.o.TakeOver {
				return held
			}
		case isForGood(err):
			return err
		case first == 0 && a.now().Sub(tried) > time.Second:
			a.note(err)
			return nil // serve without NATS
		}
		a.note(err)
		a.fresh = true
		if err := pause(ctx, a.o.TTL/(4*renewals)); err != nil {
			return err
		}
	}
}

// isForGood reports whether only an operator can solve a problem.
func isForGood(err error) bool {
	return errors.Is(err, errForeign) || strings.Contains(err.Error(), "of a newer release")
}

// Run publishes until ctx ends, and gives the lease back then. It returns no other error: what fails is tried again, and
// Status has it.
func (a *Authority) Run(ctx context.Context) error {
	if err := a.open(); err != nil {
		a.note(err)
		return err
	}
	backoff := 100 * time.Millisecond
	for ctx.Err() == nil {
		err := a.work(ctx)
		var held *HeldError
		if errors.As(err, &held) && held.Lost {
			a.note(err)
			a.o.Logger.Error("the lease is lost: writes are refused until the service is started again", "holder", held.Holder)
			<-ctx.Done()
			break
		}
		if err == nil {
			backoff = 100 * time.Millisecond
			continue
		}
		a.fresh = true
		if ctx.Err() == nil {
			a.note(err)
			_ = pause(ctx, backoff)
			backoff = min(2*backoff, 2*time.Second)
		}
	}
	a.giveBack()
	a.nc.Close()
	return nil
}

// note keeps why nothing is published, and logs it when that changes.
func (a *Authority) note(err error) {
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
		a.o.Logger.Warn("changes do not reach the cluster: they are published when the cause is gone", "cluster", a.o.Cluster, "error", err)
	}
}

// work publishes what is pending, and renews the lease. An error means that the bucket has to be read again.
func (a *Authority) work(ctx context.Context) error {
	if a.fresh {
		if err := a.know(ctx); err != nil {
			return err
		}
	}
	if a.compareAt.IsZero() {
		if err := a.compare(ctx); err != nil {
			return err
		}
		a.note(nil)
	}
	renew := time.NewTimer(a.o.TTL / renewals)
	defer renew.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-renew.C:
		if st, err := a.bucket.state(ctx); err != nil || st.last != a.seq {
			return cmpErr(err, errFenced)
		}
		if a.now().After(a.compareAt) {
			return a.compare(ctx)
		}
		return a.renew(ctx)
	case <-a.woken:
	}
	p := a.take()
	if !p.any {
		return nil
	}
	if p.overflow {
		return a.compare(ctx)
	}
	if err := a.publish(ctx, p.files); err != nil {
		return err
	}
	return a.mark(ctx, p.position)
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// know reads the bucket, which it makes if there is none, and takes the lease.
func (a *Authority) know(ctx context.Context) error {
	if err := checkVersion(a.nc); err != nil {
		return err
	}
	st, err := a.bucket.state(ctx)
	if errors.Is(err, errNoBucket) {
		if err = a.bucket.make(ctx); err == nil {
			st, err = a.bucket.state(ctx)
		}
	}
	if err != nil {
		return err
	}
	a.sent, a.root, a.strays, a.marked, a.seq = map[string]sentFile{}, Root{}, nil, marker{}, st.last
	var held watchedLease
	if _, err := a.bucket.read(ctx, 1, func(r record) error {
		a.seq = max(a.seq, r.seq)
		if r.gone {
			return nil
		}
		a.meet(r, &held)
		return nil
	}); err != nil {
		return err
	}
	if held.seq != 0 {
		had := a.lease.Instance == a.instance && a.lease.seq != 0
		a.lease.see(held.lease, a.now())
		if !a.lease.free(a.now(), a.o.Holder, a.instance, a.o.TTL) || had && held.Instance != a.instance && held.Holder != "" {
			return &HeldError{Cluster: a.o.Cluster, Holder: held.Holder, Version: held.Version, Lost: had}
		}
	}
	if err := a.renew(ctx); err != nil {
		return err
	}
	a.fresh, a.compareAt = false, time.Time{}
	return nil
}

// meet takes a message of the bucket.
func (a *Authority) meet(r record, held *watchedLease) {
	switch {
	case r.key == keyLease:
		if l, err := parseLease(r); err == nil {
			held.lease = l
		}
	case r.key == keyMarker:
		a.marked, _ = parseMarker(r.value) // one that cannot be read is replaced
		a.marked.seq = r.seq
	case strings.HasPrefix(r.key, prefixFile):
		e, err := parseEntry(r.key, r.value)
		if err == nil && e.parts == 0 {
			var f catalog.TreeFile
			if f, err = e.unpack(e.packed); err == nil {
				a.sent[f.Path] = sentFile{e.sum, 0}
				a.root.Add(e.sum)
				return
			}
		}
		a.strays = append(a.strays, r.key) // in parts or damaged: it is put again, or removed
	default:
		a.strays = append(a.strays, r.key)
	}
}

// renew renews the lease, or takes it.
func (a *Authority) renew(ctx context.Context) error {
	began := a.now()
	value, err := json.Marshal(lease{Holder: a.o.Holder, Instance: a.instance, Version: a.o.Version, TTL: a.o.TTL.String(), Position: a.o.Tree.Position().String()})
	if err != nil {
		return err
	}
	if err := a.put(ctx, []message{{keyLease, value}}); err != nil {
		return err
	}
	a.lease.see(lease{Holder: a.o.Holder, Instance: a.instance, seq: a.seq}, began)
	a.mu.Lock()
	a.leaseEnds = began.Add(a.o.TTL - a.o.TTL/marginOf)
	a.mu.Unlock()
	return a.tell()
}

// giveBack ends the lease, so that another authority can start at once.
func (a *Authority) giveBack() {
	a.mu.Lock()
	a.leaseEnds = time.Time{}
	a.mu.Unlock()
	if a.fresh || !a.nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	value, _ := json.Marshal(lease{Instance: a.instance, Version: a.o.Version})
	_ = a.put(ctx, []message{{keyLease, value}}) // otherwise it runs out
}

// tell tells the edges that there is news.
func (a *Authority) tell() error {
	return a.nc.Publish(newsSubject(a.o.Cluster), strconv.AppendUint(nil, a.seq, 10))
}

// compareEvery is how often an authority compares the bucket with its tree, and an edge its store with the bucket.
const compareEvery = time.Hour

// compare publishes what differs between the tree and the bucket.
func (a *Authority) compare(ctx context.Context) error {
	a.take() // the tree has it
	before := a.o.Tree.Position()
	anew := a.marked.Position != "" && a.marked.position.Epoch != before.Epoch // the times of all objects may have changed
	gone := maps.Clone(a.sent)
	var differ []string
	if err := a.o.Tree.Tree(func(path string, content []byte) bool {
		delete(gone, path)
		if s, found := a.sent[path]; !found || anew || s.sum != SumOf(path, content) {
			differ = append(differ, path)
		}
		return true
	}); err != nil {
		return fmt.Errorf("read the accepted tree: %w", err)
	}
	slices.Sort(differ)
	for files := range slices.Chunk(differ, maxBatch) {
		if err := a.publish(ctx, a.load(files)); err != nil {
			return err
		}
		if a.now().Sub(a.lease.since) > a.o.TTL/renewals {
			if err := a.renew(ctx); err != nil {
				return err
			}
		}
	}
	removed := map[string]*catalog.TreeFile{}
	for path := range gone {
		removed[path] = nil
	}
	if err := a.publish(ctx, removed); err != nil {
		return err
	}
	if err := a.sweep(ctx); err != nil {
		return err
	}
	// Commits since then are in the files already, or pending: what was read must not be marked before the rest of its
	// generation.
	after := a.o.Tree.Position()
	for start := a.now(); after != before && a.newest() != after; {
		if a.now().Sub(start) > answerTime {
			return errors.New("the tree has changed without a word to the cluster")
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	p := a.take()
	if p.overflow {
		return a.compare(ctx)
	}
	if p.any {
		if err := a.publish(ctx, p.files); err != nil {
			return err
		}
		after = p.position
	}
	a.compareAt = a.now().Add(compareEvery)
	a.mu.Lock()
	a.stats.Compared++
	a.mu.Unlock()
	if a.marked.position == after && a.marked.Root == a.root.String() && len(differ)+len(gone) == 0 {
		a.mu.Lock()
		a.published = after
		a.mu.Unlock()
		return nil
	}
	return a.mark(ctx, after)
}

func (a *Authority) newest() catalog.Position {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.committed
}

// load reads files from the tree. One that is gone by now is left out: its removal is pending.
func (a *Authority) load(paths []string) map[string]*catalog.TreeFile {
	files := map[string]*catalog.TreeFile{}
	for _, path := range paths {
		if f, err := a.o.Tree.TreeFile(path); err == nil {
			files[path] = &f
		}
	}
	return files
}

// sweep removes keys that are no file's: remains of parts, and what somebody else has put there.
func (a *Authority) sweep(ctx context.Context) error {
	keep := map[string]bool{}
	for path, s := range a.sent {
		encoded := encodePath(path)
		keep[prefixFile+encoded] = true
		for i := range s.parts {
			keep[partKey(encoded, i)] = true
		}
	}
	var messages []message
	for _, key := range a.strays {
		if !keep[key] {
			messages = append(messages, message{key: key})
		}
	}
	a.strays = nil
	return a.put(ctx, messages)
}

// publish puts or removes files.
func (a *Authority) publish(ctx context.Context, files map[string]*catalog.TreeFile) error {
	limit := min(int(a.nc.MaxPayload()), maxValue) - 1024 // for the subject and the headers
	var messages []message
	size := 0
	flush := func() error {
		err := a.put(ctx, messages)
		messages, size = messages[:0], 0
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f, encoded := files[path], encodePath(path)
		old, had := a.sent[path]
		parts := 0
		if f == nil {
			if !had {
				continue
			}
			messages = append(messages, message{key: prefixFile + encoded})
			a.root.Remove(old.sum)
			delete(a.sent, path)
		} else {
			packed, sum, n := pack(f, limit)
			for _, m := range packed {
				size += len(m.value)
			}
			messages = append(messages, packed...)
			if had {
				a.root.Remove(old.sum)
			}
			a.root.Add(sum)
			a.sent[path], parts = sentFile{sum, n}, n
		}
		for i := parts; i < old.parts; i++ {
			messages = append(messages, message{key: partKey(encoded, i)})
		}
		if len(messages) >= maxBatch || size > maxBatchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	a.mu.Lock()
	a.stats.Files += uint64(len(files))
	a.mu.Unlock()
	return flush()
}

// mark ends a generation, and tells the edges.
func (a *Authority) mark(ctx context.Context, p catalog.Position) error {
	a.marked = marker{Position: p.String(), Files: len(a.sent), Root: a.root.String(), position: p}
	value, err := json.Marshal(a.marked)
	if err != nil {
		return err
	}
	if err := a.put(ctx, []message{{keyMarker, value}}); err != nil {
		return err
	}
	a.mu.Lock()
	a.stats.Generations++
	a.published = p
	a.mu.Unlock()
	return a.tell()
}

// What goes out before the acknowledgements are awaited.
const (
	maxBatch      = 256
	maxBatchBytes = 4 << 20
)

// put publishes messages in order, each on the condition that nobody else has published since.
func (a *Authority) put(ctx context.Context, messages []message) error {
	acks := make([]jetstream.PubAckFuture, 0, len(messages))
	for _, m := range messages {
		msg := nats.NewMsg(a.bucket.prefix + m.key)
		if msg.Data = m.value; m.value == nil {
			msg.Header.Set("KV-Operation", "DEL")
		}
		ack, err := a.bucket.js.PublishMsgAsync(msg, jetstream.WithExpectLastSequence(a.seq+uint64(len(acks))))
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		acks = append(acks, ack)
	}
	for _, ack := range acks {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * answerTime):
			return errors.New("publish: the server does not answer")
		case got := <-ack.Ok():
			a.seq = got.Sequence
		case err := <-ack.Err():
			var api *jetstream.APIError
			if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
				return errFenced
			}
			return fmt.Errorf("publish: %w", err)
		}
	}
	return nil
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
