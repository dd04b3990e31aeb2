package cluster

import "sync"

// A tail is where the stream ends as far as this authority knows it, which is the condition of its next publish. The
// lease is renewed while files are published, so answers may come in another order than that of the stream. Methods are
// safe for concurrent use.
type tail struct {
	mu    sync.Mutex      // guards the fields below
	seq   uint64          // this message and all before it are known
	ahead map[uint64]bool // the authority's own messages behind a message that is not known yet
}

// end returns the sequence of the last message that is known with all before it.
func (t *tail) end() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seq
}

// add takes the sequences of n messages, of which last is the last, which the server has acknowledged.
func (t *tail) add(last, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ahead == nil {
		t.ahead = map[uint64]bool{}
	}
	for seq := last - n + 1; seq <= last; seq++ {
		t.ahead[seq] = true
	}
	t.join()
}

// forget begins anew: the stream is read next.
func (t *tail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq = 0
	clear(t.ahead)
}

// found says that the stream was read up to seq. Messages that were acknowledged meanwhile may follow.
func (t *tail) found(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq = seq
	for own := range t.ahead {
		if own <= seq {
			delete(t.ahead, own)
		}
	}
	t.join()
}

// join moves the end behind own messages that follow it. The caller holds mu.
func (t *tail) join() {
	for t.ahead[t.seq+1] {
		t.seq++
		delete(t.ahead, t.seq)
	}
}

// torn reports whether the stream holds a message that is not the authority's. Call it while no publish of files is
// under way.
func (t *tail) torn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ahead) > 0
}
