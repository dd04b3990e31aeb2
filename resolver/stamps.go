package resolver

import (
	"sync"
	"sync/atomic"

	"fingerpost/resolver/store"
)

// nameShards is the number of counters that the exact names share. Two names on one counter cost only a needless store
// read after a change. A power of two.
const nameShards = 4096

// stamps are counters that move when what they stand for has changed.
//
// The rule: a change (1) raises begun, (2) is committed to the store, (3) raises the stamps of what it touched, (4)
// sets epoch to begun, and (5) is acknowledged. Who builds an answer reads epoch, then the stamps, then the store.
// Changes come one at a time, under Resolver.applying.
//
// Claim: an answer that fresh accepts reflects every change acknowledged before fresh was called. Let C be one that
// touches the answer, and E the epoch that fresh reads first. C was acknowledged, so (3) and (4) of C came before, and
// E >= C's number.
//   - Where fresh compares stamps and finds them equal: the stamp that C raised has its value from after (3), and the
//     builder saw that same value, so it read the store after (3), hence after (2): the answer has C.
//   - Where fresh trusts answer.epoch == E: that value was stored by the builder or by an earlier fresh, each of which
//     had read it as the epoch before it read the stamps. So at that time (3) of C was done, and the first case
//     applies.
//
// An answer built while C is under way may have read C's data under old stamps. It is then found stale once, and built
// again: never the other way round.
type stamps struct {
	begun, epoch atomic.Uint64
	wildcards    atomic.Uint64 // the set of wildcard records, or one of them
	defaults     atomic.Uint64
	names        [nameShards]atomic.Uint64
	projects     projectStamps
}

// seen is the set of stamps that a builder read. It reads the epoch first.
type seen struct {
	epoch, name, wildcards, defaults uint64
	project                          *projectStamp // nil until the project is known
	projectAt                        uint64
}

func (s *stamps) see(hash uint64) (v seen) {
	v.epoch = s.epoch.Load()
	v.name = s.names[hash%nameShards].Load()
	v.wildcards = s.wildcards.Load()
	v.defaults = s.defaults.Load()
	return v
}

func (s *stamps) seeProject(v *seen, id int64) {
	v.project, v.projectAt = s.projects.get(id)
}

// quiet reports whether no change is under way, given the epoch that the caller has read.
func (s *stamps) quiet(epoch uint64) bool { return s.begun.Load() == epoch }

func (s *stamps) begin() { s.begun.Add(1) }
func (s *stamps) end()   { s.epoch.Store(s.begun.Load()) }

// raise moves the stamps of what e touched. hash is the hash of an exact name.
func (s *stamps) raise(e *store.Effect, hash func(string) uint64) {
	if e.Many { // also faster
		s.raiseAll()
		return
	}
	for i := range e.Projects {
		s.projects.raise(e.Projects[i].ID)
	}
	wildcards := false
	for i := range e.Domains {
		if name := e.Domains[i].Name; name[0] == '*' {
			wildcards = true
		} else {
			s.names[hash(name)%nameShards].Add(1)
		}
	}
	if wildcards {
		s.wildcards.Add(1)
	}
	if e.Defaults {
		s.defaults.Add(1)
	}
}

// raiseAll makes every answer stale: each depends on its name.
func (s *stamps) raiseAll() {
	for i := range s.names {
		s.names[i].Add(1)
	}
}

// A projectStamp counts the changes of one project's record.
type projectStamp struct {
	n atomic.Uint64
	// holders is the number of cached answers that hold it. It may be off for a moment, or by an answer that ristretto
	// loses without a callback: that costs memory or a needless store read, see sweep.
	holders atomic.Int64
}

// projectStamps finds the stamp of a project that some answer depends on.
type projectStamps struct {
	mu      sync.Mutex // guards the fields below
	m       map[int64]*projectStamp
	sweepAt int // the size of m at which the stamps that no answer holds are dropped
}

const minSweep = 1024

// get returns the project's stamp, creating it if needed, and its value. Both are read under the lock, so a dropped
// stamp has had a lower value.
func (p *projectStamps) get(id int64) (*projectStamp, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.m[id]
	if s == nil {
		if len(p.m) >= p.sweepAt {
			p.sweep()
		}
		s = new(projectStamp)
		p.m[id] = s
	}
	return s, s.n.Load()
}

// sweep keeps m within twice the number of stamps in use. A stamp is raised before it is dropped: no later change would
// reach an answer that still depends on it, so that answer becomes stale now.
func (p *projectStamps) sweep() {
	if p.m == nil {
		p.m = make(map[int64]*projectStamp)
	}
	for id, s := range p.m {
		if s.holders.Load() <= 0 {
			s.n.Add(1)
			delete(p.m, id)
		}
	}
	p.sweepAt = max(2*len(p.m), minSweep)
}

// raise moves a project's stamp. A stamp without holders does not need it: a new stamp's creator reads the store later.
func (p *projectStamps) raise(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.m[id]; s != nil {
		s.n.Add(1)
	}
}

func (p *projectStamps) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.m)
}
