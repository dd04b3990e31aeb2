package main

// A fault is a way in which an answer can be wrong.
type fault uint8

const (
	faultNone       fault = iota
	faultStatus           // another status than expected
	faultContent          // about another project, or truncated
	faultTorn             // composed of two states
	faultStale            // older than an answer that had arrived before the question was sent
	faultConnection       // no answer: refused, closed, not HTTP
	faultKinds
)

var faultNames = [faultKinds]string{"none", "status", "content", "torn", "stale", "connection"}

// A question is what a connection waits to have answered.
type question struct {
	name     uint32 // number of the name, see corpus.appendHost
	revision int32  // revisions: the answer must not be older
}

// An asker chooses the questions and judges the answers. One load calls it from one goroutine.
type asker interface {
	ask(q *question, dst []byte) []byte // appends the domain
	judge(q *question, a answer) fault
}

// scheduled asks known names in the order of a schedule, in a loop.
type scheduled struct {
	corpus   *corpus
	schedule []uint32
	at       int
}

func (s *scheduled) ask(q *question, dst []byte) []byte {
	q.name = s.schedule[s.at]
	if s.at++; s.at == len(s.schedule) {
		s.at = 0
	}
	return s.corpus.appendHost(dst, int(q.name))
}

func (s *scheduled) judge(q *question, a answer) fault {
	switch {
	case a.status != 200:
		return faultStatus
	case !hasSlug(a.body, s.corpus.slugs[s.project(q)]):
		return faultContent
	}
	return faultNone
}

// project is the number of the project that the question is about.
func (s *scheduled) project(q *question) int { return int(q.name) / s.corpus.perProject() }

// revisions is scheduled, and checks each project's revision: none may go back.
type revisions struct {
	scheduled
	seen []int32 // per project: the newest revision in an answer so far
}

func newRevisions(c *corpus, schedule []uint32) *revisions {
	return &revisions{scheduled: scheduled{corpus: c, schedule: schedule}, seen: make([]int32, c.Projects)}
}

func (r *revisions) ask(q *question, dst []byte) []byte {
	dst = r.scheduled.ask(q, dst)
	q.revision = r.seen[r.project(q)]
	return dst
}

func (r *revisions) judge(q *question, a answer) fault {
	if f := r.scheduled.judge(q, a); f != faultNone {
		return f
	}
	revision, ok := revisionOf(a.body)
	if !ok {
		return faultTorn
	}
	if int32(revision) < q.revision {
		return faultStale
	}
	r.seen[r.project(q)] = max(r.seen[r.project(q)], int32(revision))
	return faultNone
}
