package main

import "time"

// switching is scheduled while every n-th project goes from one revision to another, up or down. It counts old answers
// after new ones: of the same project (stale), and of any project after another was seen in the new state (mixed).
type switching struct {
	scheduled
	from, to int
	every    int    // the projects whose number is a multiple of it are switched; the others stay at their first revision
	began    []bool // per project: seen in the new state
	any      bool   // some project was seen in the new state
	mixed    int
	firstNew time.Time
	mixedFor time.Duration // from the first new answer to the last old one
}

func newSwitching(c *corpus, schedule []uint32, from, to, every int) *switching {
	return &switching{scheduled: scheduled{corpus: c, schedule: schedule}, from: from, to: to, every: every,
		began: make([]bool, c.Projects)}
}

func (s *switching) ask(q *question, dst []byte) []byte {
	dst = s.scheduled.ask(q, dst)
	q.seenNew, q.anyNew = s.began[s.project(q)], s.any
	return dst
}

func (s *switching) judge(q *question, a answer) fault {
	if f := s.scheduled.judge(q, a); f != faultNone {
		return f
	}
	revision, ok := revisionOf(a.body)
	switch {
	case !ok:
		return faultTorn
	case s.project(q)%s.every != 0:
		if revision != branchRevisions["first"] {
			return faultContent
		}
		return faultNone
	case s.from == s.to && revision == s.to:
		return faultNone
	case revision == s.to:
		if !s.any {
			s.any, s.firstNew = true, time.Now()
		}
		s.began[s.project(q)] = true
		return faultNone
	case revision != s.from:
		return faultContent
	case q.seenNew:
		return faultStale
	case q.anyNew:
		s.mixed++
		s.mixedFor = time.Since(s.firstNew)
	}
	return faultNone
}
