package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"fingerpost/resolver/catalog"
)

// work publishes what is pending. An error means that the bucket has to be read again.
func (a *Authority) work(ctx context.Context) error {
	// A server that was away may have lost messages in the middle of the stream, and end it where it did before.
	if a.fresh || a.connects != a.nc.Stats().Reconnects {
		if err := a.know(ctx); err != nil {
			return err
		}
	}
	if a.compareAt.IsZero() {
		if err := a.compare(ctx); err != nil {
			return err
		}
		a.noteProblem(nil)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.woken: // each renewal of the lease does so, too
	}
	if err := a.leaseProblem(); err != nil {
		return err
	}
	if a.tail.torn() {
		return errFenced
	}
	if a.now().After(a.compareAt) {
		a.fresh = true
		return nil
	}
	p := a.takePending()
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

// compareEvery is how often an authority compares the bucket with its tree, and an edge its store with the bucket.
const compareEvery = time.Hour

// compare publishes what differs between the tree and the bucket.
func (a *Authority) compare(ctx context.Context) error {
	a.takePending() // the tree has it
	before := a.o.Tree.Position()
	anew := a.marked.Position != "" && a.marked.position.Epoch != before.Epoch // the times of all objects may have changed
	gone := maps.Clone(a.sent)
	var differ []string
	if err := a.o.Tree.Tree(func(path string, content []byte) bool {
		delete(gone, path)
		if s, found := a.sent[path]; !found || anew || s != SumOf(path, content) {
			differ = append(differ, path)
		}
		return true
	}); err != nil {
		return fmt.Errorf("read the accepted tree: %w", err)
	}
	slices.Sort(differ)
	if err := a.publishTree(ctx, differ); err != nil {
		return err
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
	// A commit during the listing may be listed in part: publish its queued change before the marker.
	after := a.o.Tree.Position()
	for start := a.now(); after != before && a.newest() != after; {
		if a.now().Sub(start) > answerTime {
			return errors.New("the store's position moved, but no change was queued for the cluster")
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	p := a.takePending()
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
		a.reached = after
		a.mu.Unlock()
		return nil
	}
	return a.mark(ctx, after)
}

// publishTree puts files of the tree. While the server takes some, the next are read: an edge that starts on a new
// bucket waits for the last of them.
func (a *Authority) publishTree(ctx context.Context, paths []string) error {
	ctx, stop := context.WithCancel(ctx)
	parts := make(chan map[string]*catalog.TreeFile)
	go func() {
		defer close(parts)
		for part := range slices.Chunk(paths, maxBatch) {
			select {
			case parts <- a.load(part):
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() { // nothing reads the tree after the return
		stop()
		for range parts {
		}
	}()
	for part := range parts {
		if err := a.publish(ctx, part); err != nil {
			return err
		}
	}
	return ctx.Err()
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

// sweep removes keys that do not belong to a file: another program has put them there.
func (a *Authority) sweep(ctx context.Context) error {
	keep := map[string]bool{}
	for path := range a.sent {
		keep[prefixFile+encodePath(path)] = true
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
	var messages []message
	size := 0
	flush := func() error {
		err := a.put(ctx, messages)
		messages, size = messages[:0], 0
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f := files[path]
		old, had := a.sent[path]
		if f == nil && !had {
			continue
		}
		if had {
			a.root.Remove(old)
		}
		if f == nil {
			messages = append(messages, message{key: prefixFile + encodePath(path)})
			delete(a.sent, path)
		} else {
			m, sum := pack(f)
			size += len(m.value)
			messages = append(messages, m)
			a.root.Add(sum)
			a.sent[path] = sum
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
	a.reached = p
	a.mu.Unlock()
	return tell(a.nc, a.o.Cluster, a.tail.end())
}

// What goes out before an acknowledgement is awaited.
const (
	maxBatch      = 256
	maxBatchBytes = 4 << 20
	// minBatch is where an atomic batch pays: the server keeps it in files of its own first, which takes it 3 ms, and
	// syncs it once. Messages that go one by one are synced one by one, 0.2 ms each.
	minBatch = 16
)

// errNoAck: a server that cannot write does not say so (processJetStreamMsg in its stream.go), or not why.
var errNoAck = errors.New("the NATS server does not answer a publish: is its disk full? Its log tells")

// put publishes messages in order, on the condition that nobody else has published since.
func (a *Authority) put(ctx context.Context, messages []message) error {
	for part := range slices.Chunk(messages, maxBatch) {
		atOnce := 1
		if len(part) >= minBatch {
			atOnce = len(part)
		}
		for unit := range slices.Chunk(part, atOnce) {
			if err := a.putBehind(ctx, unit); err != nil {
				return err
			}
		}
	}
	return nil
}

// putBehind publishes one message, or a batch, at the end of the stream. It waits for the answer to the one before it:
// if it were sent with the sequence that the other is expected to have, and somebody else had published one message, it
// would fit behind that. If the lease was renewed meanwhile, the same is published behind the lease.
func (a *Authority) putBehind(ctx context.Context, unit []message) error {
	for {
		end := a.tail.end()
		err := a.putBatch(ctx, unit, end)
		if !errors.Is(err, errFenced) {
			return err
		}
		a.renewing.Lock() // the answer to a renewal may be on its way
		renewed := a.tail.end() != end
		a.renewing.Unlock()
		if !renewed {
			return err
		}
	}
}

// send publishes a message, the last one of a batch or one that stands alone, and waits at most d for the answer.
func (b *bucket) send(ctx context.Context, msg *nats.Msg, d time.Duration, opts ...jetstream.PublishOpt) (seq uint64,
	err error) {
	connected, stop := whileConnected(ctx, b.nc)
	defer stop()
	wait, cancel := context.WithTimeout(connected, d)
	defer cancel()
	ack, err := b.js.PublishMsg(wait, msg, opts...)
	if err != nil {
		return 0, publishError(orCause(connected, err))
	}
	return ack.Sequence, nil
}

// Headers of an atomic batch (ADR-50 of NATS), for which the client library has no names.
const (
	headerBatch       = "Nats-Batch-Id"
	headerBatchSeq    = "Nats-Batch-Sequence"
	headerBatchCommit = "Nats-Batch-Commit"
	// codeIncomplete is the error of a batch of which the server lacks messages, such as for want of room on its disk.
	codeIncomplete jetstream.ErrorCode = 10176
)

// putBatch publishes one message, or several as an atomic batch, all of them or none, if the stream ends at end. Only
// the last one is answered.
func (a *Authority) putBatch(ctx context.Context, messages []message, end uint64) error {
	id, n := rand.Text(), len(messages)
	for i, m := range messages {
		msg := a.bucket.msg(m)
		if i == 0 {
			msg.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(end, 10))
		}
		if n > 1 {
			msg.Header.Set(headerBatch, id)
			msg.Header.Set(headerBatchSeq, strconv.Itoa(i+1))
		}
		if i < n-1 {
			if err := a.nc.PublishMsg(msg); err != nil {
				return fmt.Errorf("publish: %w", err)
			}
			continue
		}
		if n > 1 {
			msg.Header.Set(headerBatchCommit, "1")
		}
		seq, err := a.bucket.send(ctx, msg, 2*answerTime)
		if err != nil {
			return err
		}
		a.tail.add(seq, uint64(n))
	}
	return nil
}

// publishError is what an answer to a publish, or its absence, means.
func publishError(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return errFenced
	case errors.As(err, &api) && api.ErrorCode == codeIncomplete, errors.Is(err, context.DeadlineExceeded):
		return errNoAck
	}
	return fmt.Errorf("publish: %w", err)
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
