package gitrepo

import (
	"slices"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
)

// maxResults bounds how many writes are kept for Wait.
const maxResults = 10_000

// A pendingWrite is a write on its way into a commit.
type pendingWrite struct {
	catalog.FileWrite
	commit  string        // "" until it is made
	made    chan struct{} // closed with commit
	pushed  chan struct{} // closed once the remote has it, or it was set aside
	overrul string        // branch of a write that was set aside
	at      time.Time     // when it was queued; zero: by an earlier process
}

// since returns a moment at which the write was not made yet, or hardly.
func (w *pendingWrite) since() time.Time {
	if w.at.IsZero() { // ids count up from the start of their process, in microseconds
		return time.UnixMicro(w.ID)
	}
	return w.at
}

// A queue has the writes that are on their way into a commit, and to the remote. Its methods may be called from any
// goroutine.
type queue struct {
	mu       sync.Mutex // guards what follows
	lastID   int64
	pending  []*pendingWrite // made, without a commit, the oldest first
	unpushed []*pendingWrite // with a commit that the remote may lack, the oldest first
	results  map[int64]*pendingWrite
	order    []int64 // of results
}

// startAt makes the next id larger than id.
func (q *queue) startAt(id int64) { q.lastID, q.results = id, map[int64]*pendingWrite{} }

func (q *queue) nextID() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lastID++
	return q.lastID
}

// add queues a write for a commit.
func (q *queue) add(w *catalog.FileWrite) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.remember(w)
	p.at = time.Now()
	q.pending = append(q.pending, p)
}

// addEarlier queues writes of an earlier process, in the order of their ids, before those of this one.
func (q *queue) addEarlier(writes []*catalog.FileWrite) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var earlier []*pendingWrite
	for _, w := range writes {
		earlier = append(earlier, q.remember(w))
	}
	q.pending = append(earlier, q.pending...)
}

// remember lets result find a write. The caller holds mu.
func (q *queue) remember(w *catalog.FileWrite) *pendingWrite {
	p := &pendingWrite{FileWrite: *w, made: make(chan struct{}), pushed: make(chan struct{})}
	q.results[p.ID] = p
	if q.order = append(q.order, p.ID); len(q.order) > maxResults {
		delete(q.results, q.order[0])
		q.order = q.order[1:]
	}
	return p
}

// waiting returns the writes without a commit.
func (q *queue) waiting() []*pendingWrite {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.pending)
}

// write returns a write, nil if it is not known.
func (q *queue) write(id int64) *pendingWrite {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.results[id]
}

// result returns what has become of a write by now.
func (q *queue) result(w *pendingWrite) Result {
	q.mu.Lock()
	defer q.mu.Unlock()
	result := Result{Commit: w.commit, Overruled: w.overrul}
	select {
	case <-w.pushed:
		result.Pushed = w.overrul == ""
	default:
	}
	return result
}

// committed says that the branch has a commit with the writes, and whether it is to be pushed.
func (q *queue) committed(writes []*pendingWrite, commit string, push bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range writes {
		w.commit = commit
		close(w.made)
	}
	if push {
		q.unpushed = append(q.unpushed, writes...)
	}
	q.pending = slices.DeleteFunc(q.pending, func(w *pendingWrite) bool { return slices.Contains(writes, w) })
}

// takeUnpushed removes and returns the writes that a push brings to the remote. putBack undoes it.
func (q *queue) takeUnpushed() []*pendingWrite {
	q.mu.Lock()
	defer q.mu.Unlock()
	writes := q.unpushed
	q.unpushed = nil
	return writes
}

func (q *queue) putBack(writes []*pendingWrite) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unpushed = append(writes, q.unpushed...)
}

// rebased follows commits that were made again, the new ones by the old ones, and those that were set aside.
func (q *queue) rebased(moved map[string]string, aside []Overruled) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var rest []*pendingWrite
	for _, w := range q.unpushed {
		if i := slices.IndexFunc(aside, func(o Overruled) bool { return o.Commit == w.commit }); i >= 0 {
			w.overrul = aside[i].Branch
			close(w.pushed)
			continue
		}
		if to := moved[w.commit]; to != "" {
			w.commit = to
		}
		rest = append(rest, w)
	}
	q.unpushed = rest
}
