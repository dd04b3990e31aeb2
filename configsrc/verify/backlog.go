package verify

import (
	"container/heap"
	"slices"
	"time"

	"fingerpost/resolver/catalog"
)

// A backlog is the subjects of one class that wait for their time or for their turn. Projects with due subjects have their
// turns in rounds, so that one with thousands keeps no other waiting.
type backlog struct {
	lines map[catalog.UUID]*line
	later lines   // those without a due subject, by the time of their first
	due   []*line // those with one, the next turn first; one may be empty by now
}

// A line is the subjects of one project.
type line struct {
	project catalog.UUID
	queue   queue
	at      int // place in later; -1: it is in due
}

func (l *line) first() *subject { return l.queue[0] }

func (b *backlog) add(s *subject) {
	l := b.lines[s.project]
	if l == nil {
		if b.lines == nil {
			b.lines = map[catalog.UUID]*line{}
		}
		l = &line{project: s.project}
		b.lines[s.project] = l
		heap.Push(&l.queue, s)
		heap.Push(&b.later, l)
		return
	}
	heap.Push(&l.queue, s)
	b.settle(l)
}

func (b *backlog) remove(s *subject) {
	l := b.lines[s.project]
	heap.Remove(&l.queue, s.at)
	b.settle(l)
}

// settle puts a line whose queue has changed into its new place in later. A line in due stays until take meets it.
func (b *backlog) settle(l *line) {
	switch {
	case l.at < 0:
	case len(l.queue) == 0:
		heap.Remove(&b.later, l.at)
		delete(b.lines, l.project)
	default:
		heap.Fix(&b.later, l.at)
	}
}

// advance gives the projects whose first subject has become due a turn, after those that have one.
func (b *backlog) advance(now time.Duration) {
	for len(b.later) > 0 && b.later[0].first().next <= now {
		b.due = append(b.due, heap.Pop(&b.later).(*line))
	}
}

// take removes the first due subject of the next project that may have a check, nil if there is none.
func (b *backlog) take(now time.Duration, may func(catalog.UUID) bool) (s *subject) {
	for i := 0; i < len(b.due); {
		l := b.due[i]
		isDue := len(l.queue) > 0 && l.first().next <= now
		if isDue && !may(l.project) {
			i++
			continue
		}
		b.due = slices.Delete(b.due, i, i+1)
		if isDue {
			s = heap.Pop(&l.queue).(*subject)
		}
		switch {
		case len(l.queue) == 0:
			delete(b.lines, l.project)
		case l.first().next <= now:
			b.due = append(b.due, l)
		default:
			heap.Push(&b.later, l)
		}
		if s != nil {
			return s
		}
	}
	return nil
}

// othersDue reports whether a project other than this one has due subjects.
func (b *backlog) othersDue(p catalog.UUID) bool {
	return slices.ContainsFunc(b.due, func(l *line) bool { return l.project != p && len(l.queue) > 0 })
}

// lines is a heap of lines by the time of their first subject.
type lines []*line

// Len implements heap.Interface.
func (h lines) Len() int { return len(h) }

// Less implements heap.Interface.
func (h lines) Less(i, j int) bool { return h[i].first().next < h[j].first().next }

// Swap implements heap.Interface.
func (h lines) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *lines) Push(x any) {
	l := x.(*line)
	l.at = len(*h)
	*h = append(*h, l)
}

// Pop implements heap.Interface.
func (h *lines) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	l.at = -1
	return l
}

// A queue is a heap of subjects by their time.
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

// eachDue calls f with the due subjects at and below a place in the heap.
func (q queue) eachDue(at int, now time.Duration, f func(s *subject)) {
	if at >= len(q) || q[at].next > now {
		return
	}
	f(q[at])
	q.eachDue(2*at+1, now, f)
	q.eachDue(2*at+2, now, f)
}
