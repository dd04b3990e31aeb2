package tenant

import (
	"sync"
	"sync/atomic"
	"time"
)

// An entry is the last answer about a name. Hits read host, tenant and err, which stay, and the atomic fields without a
// lock; Cache.mu guards the rest, and changes of era.
type entry struct {
	host   string
	tenant *Tenant       // nil for a negative answer
	err    error         // of a negative answer
	era    atomic.Uint64 // validity.era when the question was asked; 0: to be confirmed
	used   atomic.Bool   // since the list last passed it

	stale *Tenant // tenant with Stale set, made when it is first needed
	asOf  time.Time
	aside bool // an event has dropped it: it is kept for the time that the server is away

	newer, older *entry // in the list of its kind
}

// use notes a lookup. It writes only when needed: cores that read the same entry would wait for each other.
func (e *entry) use() {
	if !e.used.Load() {
		e.used.Store(true)
	}
}

// entries are the answers by name, with a list for each kind. Cache.mu guards everything but of.
type entries struct {
	byHost   sync.Map // of *entry by string
	positive list
	negative list
}

func newEntries(maxPositive, maxNegative int) *entries {
	s := &entries{}
	s.positive.begin(maxPositive)
	s.negative.begin(maxNegative)
	return s
}

func (s *entries) list(e *entry) *list {
	if e.tenant != nil {
		return &s.positive
	}
	return &s.negative
}

// of returns the entry of a host, nil if there is none. It needs no lock.
func (s *entries) of(host string) *entry {
	e, _ := s.byHost.Load(host)
	found, _ := e.(*entry)
	return found
}

// put stores e in place of what was known of its host. Another entry of its kind goes if the list is full.
func (s *entries) put(e *entry) {
	if old := s.of(e.host); old != nil {
		s.drop(old)
	}
	l := s.list(e)
	if l.len >= l.max {
		s.drop(l.victim())
	}
	s.byHost.Store(e.host, e)
	l.push(e)
	l.len++
}

func (s *entries) drop(e *entry) {
	s.byHost.Delete(e.host)
	unlink(e)
	s.list(e).len--
}

// A list is a ring of entries in the order in which they came or were passed (CLOCK): root.newer is the next to pass.
type list struct {
	root     entry
	len, max int
}

func (l *list) begin(most int) { l.root.newer, l.root.older, l.max = &l.root, &l.root, most }

func (l *list) push(e *entry) {
	e.newer, e.older = &l.root, l.root.older
	e.older.newer, l.root.older = e, e
}

// victim returns the entry to drop: the first that was not used since it was last passed.
func (l *list) victim() *entry {
	for range l.len { // not for ever: lookups go on meanwhile
		e := l.root.newer
		if !e.used.Swap(false) {
			break
		}
		unlink(e)
		l.push(e)
	}
	return l.root.newer
}

func unlink(e *entry) { e.newer.older, e.older.newer = e.older, e.newer }
