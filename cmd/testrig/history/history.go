// Package history checks what clients have seen of a cluster against what configsrc/cluster promises. It is for tests:
// they record every write and every answer of an edge, and Check finds what must not be there.
//
// A name is anything that has one content, such as a domain or a file. Three rules for a test that records:
//   - Every content is written once only, so that an answer tells which write it shows.
//   - One writer at a time writes to a name, and after a write with an unknown outcome nobody does: it may still happen.
//   - No write removes a name. Whatever exists once is never answered 404.
//
// An answer is at least as new as its position, and the position of an acknowledged write is at least its generation.
// So an answer may show more than its position says, never less.
package history

import (
	"fmt"
	"net/http"
	"sync"

	"fingerpost/resolver/catalog"
)

// An Outcome is what the writer of a Write knows.
type Outcome int

// The outcomes of a write.
const (
	Unknown Outcome = iota // no answer came, or none that tells
	Acknowledged
	Refused // with the promise that nothing was done
)

// A Write gives one or more names a content, in one generation.
type Write struct {
	Names   []string
	Content string
	Outcome Outcome
	// Position is that of the acknowledgement. Without an epoch the write is older than everything, as the files are that
	// a test begins with.
	Position catalog.Position
}

// An Answer is what an edge has answered about a name. Answers that are neither 200 nor 404 promise nothing.
type Answer struct {
	Edge     string
	Name     string
	Status   int
	Content  string // of a 200
	Position string // the header
	// Began and Ended are moments of one clock, such as History.Now. An answer comes after another one if it began after
	// that one ended.
	Began, Ended int64
	// Last: it was asked for when all writes had ended and the edge had had its time to catch up.
	Last bool
}

// A Kind is a kind of broken promise.
type Kind string

// The kinds.
const (
	NoPosition     Kind = "an answer without a position"
	BackInTime     Kind = "a position older than before on the same edge"
	StaleRead      Kind = "a content older than before on the same edge"
	HalfGeneration Kind = "one name of a write without the other"
	LostWrite      Kind = "an acknowledged write is missing"
	Forgotten      Kind = "404 for a name that exists"
	NeverWritten   Kind = "a content that nobody has written, or whose write was refused"
)

// A Violation is an answer that breaks a promise.
type Violation struct {
	Kind   Kind
	Answer Answer
	Text   string
}

// String is for the log of a test.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s answers %d %q for %s at %s (%d to %d): %s", v.Kind, v.Answer.Edge, v.Answer.Status,
		v.Answer.Content,
		v.Answer.Name, v.Answer.Position, v.Answer.Began, v.Answer.Ended, v.Text)
}

// A History records. The zero value is empty and ready. Safe for concurrent use.
type History struct {
	mu      sync.Mutex // guards the fields below
	clock   int64
	writes  []Write
	answers []Answer
}

// Now returns the next moment of the history's clock.
func (h *History) Now() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	return h.clock
}

// Begin records a write that begins, with an unknown outcome. End tells it, by the number that Begin returns.
func (h *History) Begin(content string, names ...string) (number int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, Write{Names: names, Content: content})
	return len(h.writes) - 1
}

// End records what came of a write.
func (h *History) End(number int, outcome Outcome, p catalog.Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes[number].Outcome, h.writes[number].Position = outcome, p
}

// Answered records an answer.
func (h *History) Answered(a Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = append(h.answers, a)
}

// Counts returns how many writes were acknowledged, and how many answers were 200 or 404.
func (h *History) Counts() (acknowledged, answered int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.writes {
		if h.writes[i].Outcome == Acknowledged {
			acknowledged++
		}
	}
	for i := range h.answers {
		if h.answers[i].counts() {
			answered++
		}
	}
	return acknowledged, answered
}

func (a *Answer) counts() bool { return a.Status == http.StatusOK || a.Status == http.StatusNotFound }

// Newest returns the newest position of an acknowledged write, and every name with one.
func (h *History) Newest() (p catalog.Position, names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	named := map[string]bool{}
	for i := range h.writes {
		w := &h.writes[i]
		if w.Outcome != Acknowledged || w.Position.Epoch == "" {
			continue
		}
		if w.Position.Epoch != p.Epoch || w.Position.Generation > p.Generation {
			p = w.Position
		}
		for _, name := range w.Names {
			if !named[name] {
				named[name] = true
				names = append(names, name)
			}
		}
	}
	return p, names
}

// Check checks what was recorded.
func (h *History) Check() []Violation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Check(h.writes, h.answers)
}
