package tenant

import "time"

// An entry is the last answer about a name.
type entry struct {
	host   string
	tenant *Tenant // nil for a negative answer
	stale  *Tenant // tenant with Stale set, made when it is first needed
	err    error   // of a negative answer
	asOf   time.Time
	era    uint64 // Cache.era when the question was asked
	aside  bool   // an event has dropped it: it is kept for the time that the server is away

	newer, older *entry // in the list of its kind
}

// entries are the answers by name, with a list for each kind in the order of use. Guarded by Cache.mu.
type entries struct {
	byHost   map[string]*entry
	positive list
	negative list
}

func newEntries(maxPositive, maxNegative int) *entries {
	s := &entries{byHost: map[string]*entry{}}
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

// used makes e the most recently used of its kind.
func (s *entries) used(e *entry) {
	if l := s.list(e); l.root.older != e {
		unlink(e)
		l.push(e)
	}
}

// put stores e in place of what was known of its host. What is least recently used goes where there is no room.
func (s *entries) put(e *entry) {
	if old := s.byHost[e.host]; old != nil {
		s.drop(old)
	}
	l := s.list(e)
	s.byHost[e.host] = e
	l.push(e)
	for l.len++; l.len > l.max; {
		s.drop(l.root.newer)
	}
}

func (s *entries) drop(e *entry) {
	delete(s.byHost, e.host)
	unlink(e)
	s.list(e).len--
}

// A list is a ring of entries: root.older is the most recently used one, root.newer the least recently used.
type list struct {
	root     entry
	len, max int
}

func (l *list) begin(most int) { l.root.newer, l.root.older, l.max = &l.root, &l.root, most }

func (l *list) push(e *entry) {
	e.newer, e.older = &l.root, l.root.older
	e.older.newer, l.root.older = e, e
}

func unlink(e *entry) { e.newer.older, e.older.newer = e.older, e.newer }
