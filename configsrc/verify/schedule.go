package verify

import (
	"container/heap"
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
	next      int64 // when it is checked, Unix nanoseconds
	at        int   // place in its queue; -1: it is being checked
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

// A queue is a heap of the subjects of one class, by their time.
type queue []*subject

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].next < q[j].next }

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	s := x.(*subject)
	s.at = len(*q)
	*q = append(*q, s)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	s.at = -1
	return s
}

// A schedule is all subjects, when each is due, and how many are in which state. The zero schedule is that of files
// without a verification block.
type schedule struct {
	on       bool
	policy   dcv.Policy
	subjects map[string]*subject // by name
	queues   [classes]queue
	counts   counts
	trouble  map[*subject]struct{} // failing and lost
	turn     int
}

func newSchedule(policy dcv.Policy) schedule {
	return schedule{on: true, policy: policy, subjects: map[string]*subject{}, trouble: map[*subject]struct{}{}}
}

// add takes up a subject that was not there; waiting: it waits for its time, else it is being checked.
func (c *schedule) add(s *subject, waiting bool) {
	c.subjects[s.name] = s
	c.count(s, 1)
	if s.at = -1; waiting {
		heap.Push(&c.queues[s.class], s)
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
		heap.Remove(&c.queues[s.class], s.at)
	}
}

// change changes a subject, and puts it in its new place.
func (c *schedule) change(s *subject, waiting bool, change func()) {
	c.takeOut(s)
	c.count(s, -1)
	change()
	c.count(s, 1)
	if waiting {
		heap.Push(&c.queues[s.class], s)
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

// take removes the next subject that is due, nil if none is.
func (c *schedule) take(now time.Time) *subject {
	c.turn++
	for i := range c.queues {
		if c.turn%everyNth == 0 {
			i = classes - 1 - i
		}
		if q := &c.queues[i]; len(*q) > 0 && (*q)[0].next <= now.UnixNano() {
			return heap.Pop(q).(*subject)
		}
	}
	return nil
}

// due returns when the next subject is due; false: none waits.
func (c *schedule) due() (t time.Time, waits bool) {
	first := int64(0)
	for _, q := range c.queues {
		if len(q) > 0 && (!waits || q[0].next < first) {
			first, waits = q[0].next, true
		}
	}
	return time.Unix(0, first), waits
}
