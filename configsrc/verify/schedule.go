package verify

import (
	"time"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

// A subject is what stays in memory of a domain.
type subject struct {
	project   catalog.UUID
	projectID int64
	id        int64
	name      string
	verified  string
	next      time.Duration // when it is checked, on the Service's own clock
	at        int           // place in its queue; -1: it is being checked
	standing  standing
	class     uint8
}

// A noteKey names a note: a domain that moves to another project, or whose project is recreated, has another one.
type noteKey struct {
	project catalog.UUID
	domain  string
}

func (s *subject) key() noteKey { return noteKey{s.project, s.name} }

// The classes of subjects: of those that are due, a lower one is checked first.
const (
	classPending = iota // somebody waits for it: the file says so
	classOpen           // not proven for another reason
	classSettled        // proven or trusted
	classes
)

// A schedule is all subjects, when each is due, and how many are in which state. The zero schedule is that of files
// without a verification block.
type schedule struct {
	on       bool
	policy   dcv.Policy
	subjects map[string]*subject // by name
	backlogs [classes]backlog
	counts   counts
	trouble  map[*subject]struct{} // failing and lost
	overran  map[catalog.UUID]int  // the latest checks of a project in a row that ran into their limit
	turn     int
}

func newSchedule(policy dcv.Policy) schedule {
	return schedule{on: true, policy: policy, subjects: map[string]*subject{}, trouble: map[*subject]struct{}{},
		overran: map[catalog.UUID]int{}}
}

// add takes up a subject that was not there; waiting: it waits for its time, else it is being checked.
func (c *schedule) add(s *subject, waiting bool) {
	c.subjects[s.name] = s
	c.count(s, 1)
	if s.at = -1; waiting {
		c.backlogs[s.class].add(s)
	}
}

func (c *schedule) remove(s *subject) {
	c.takeOut(s)
	c.count(s, -1)
	delete(c.subjects, s.name)
}

// takeOut removes a subject from its queue.
func (c *schedule) takeOut(s *subject) {
	if s.at >= 0 {
		c.backlogs[s.class].remove(s)
	}
}

// change changes a subject, and puts it in its new place.
func (c *schedule) change(s *subject, waiting bool, change func()) {
	c.takeOut(s)
	c.count(s, -1)
	change()
	c.count(s, 1)
	if waiting {
		c.backlogs[s.class].add(s)
	}
}

func (c *schedule) count(s *subject, n int) {
	c.counts.add(&s.standing, n)
	delete(c.trouble, s)
	if n > 0 && s.standing.trouble() {
		c.trouble[s] = struct{}{}
	}
}

// everyNth is how often the classes are asked in the reverse order, so that a backlog of one starves no other.
const everyNth = 8

// advance gives what has become due by now its turns; afterwards next is later than now.
func (c *schedule) advance(now time.Duration) {
	for i := range c.backlogs {
		c.backlogs[i].advance(now)
	}
}

// take removes the next subject that is due, nil if none is. may says whether a project may have one more check, and is
// told whether another one has due subjects; the subject is of the project for which it says so. Call advance before.
func (c *schedule) take(now time.Duration, may func(p catalog.UUID, others bool) bool) *subject {
	ask := func(p catalog.UUID) bool { return may(p, c.othersDue(p)) }
	c.turn++
	for i := range c.backlogs {
		if c.turn%everyNth == 0 {
			i = classes - 1 - i
		}
		if s := c.backlogs[i].take(now, ask); s != nil {
			return s
		}
	}
	return nil
}

// othersDue reports whether a project other than this one has due subjects.
func (c *schedule) othersDue(p catalog.UUID) bool {
	for i := range c.backlogs {
		if c.backlogs[i].othersDue(p) {
			return true
		}
	}
	return false
}

// next returns when the next subject becomes due that is not due yet; false: none does.
func (c *schedule) next() (at time.Duration, waits bool) {
	for i := range c.backlogs {
		if q := c.backlogs[i].later; len(q) > 0 && (!waits || q[0].first().next < at) {
			at, waits = q[0].first().next, true
		}
	}
	return at, waits
}

// eachDue calls f with the due subjects that wait for their check.
func (c *schedule) eachDue(now time.Duration, f func(s *subject)) {
	for i := range c.backlogs {
		for _, l := range c.backlogs[i].lines {
			l.queue.eachDue(0, now, f)
		}
	}
}

// slowLimit is how many checks in a row run into their limit before a project's are made hourly.
const slowLimit = 2

// slow notes how a check of a project has ended, and reports whether the project's are made hourly: its servers are so
// slow that each check takes a place for as long as it may.
func (c *schedule) slow(p catalog.UUID, limited bool) bool {
	if !c.on || !limited {
		delete(c.overran, p)
		return false
	}
	c.overran[p] = min(c.overran[p]+1, slowLimit)
	return c.overran[p] == slowLimit
}
