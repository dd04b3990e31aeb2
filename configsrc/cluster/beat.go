package cluster

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"

	"fingerpost/resolver/catalog"
)

// Times of the heartbeats of edges.
const (
	beatEvery  = 2 * time.Second
	beatAtMost = 100 * time.Millisecond // between two, when generations follow each other
	silentFor  = 10 * time.Second       // then an edge counts as away
	forgotten  = 24 * time.Hour
)

// A beat is what an edge says of itself.
type beat struct {
	Instance string `json:"instance"` // random, of the process
	Version  string `json:"version"`
	Position string `json:"position"`
	Ready    bool   `json:"ready"`
	Problem  string `json:"problem,omitempty"`
}

// An EdgeStatus is what the authority knows of an edge.
type EdgeStatus struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Position   string `json:"position"`
	Generation uint64 `json:"generation"`
	Current    bool   `json:"current"` // it has the newest generation
	// since the commit of the oldest generation that it has not confirmed; 0 if it is current
	LagMS     float64 `json:"lagMs"`
	BeatAgeMS float64 `json:"beatAgeMs"`
	Ready     bool    `json:"ready"`   // it has a whole tree, and a heartbeat of the last seconds says so
	Problem   string  `json:"problem"` // in its own words, or that two processes use its name
}

// edges are the edges that have been heard. Safe for concurrent use.
type edges struct {
	now func() time.Time

	mu      sync.Mutex // guards the fields below
	known   map[string]*heardEdge
	current catalog.Position
	commits []commit // the newest ones, in order
}

type commit struct {
	generation uint64
	at         time.Time
}

type heardEdge struct {
	beat
	position catalog.Position
	behind   time.Time // when the oldest generation was committed that it has not confirmed; zero: there is none
	at       time.Time
	former   string    // the process that used the name before
	rivalAt  time.Time // when one was heard again after another had used the name
}

const keptCommits = 1024

// committed notes when a generation was made, for the lag of edges.
func (e *edges) committed(p catalog.Position) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.Epoch != e.current.Epoch {
		e.commits = e.commits[:0]
	}
	e.current = p
	if len(e.commits) >= 2*keptCommits {
		e.commits = append(e.commits[:0], e.commits[keptCommits:]...)
	}
	now := e.now()
	e.commits = append(e.commits, commit{p.Generation, now})
	for _, h := range e.known {
		if h.behind.IsZero() {
			h.behind = now
		}
	}
}

// The longest texts of a heartbeat that are kept, in characters: they stand in the status, and an edge may say anything.
const (
	mostWord    = 64
	mostProblem = 300
)

// cut returns the beginning of a text, without characters that break a line or turn it around.
func cut(text string, most int) string {
	var out []rune
	for _, c := range text {
		if len(out) == most {
			return string(out) + "…"
		}
		if catalog.BreaksLine(c) || !unicode.IsPrint(c) {
			c = ' '
		}
		out = append(out, c)
	}
	return string(out)
}

// mostEdges bounds the names that are known: a client of a NATS server without permissions can make them up.
const mostEdges = 1024

// hear takes a heartbeat. What cannot be read is dropped, and so is a name that no edge can have: names are labels of
// metrics, which have to be UTF-8.
func (e *edges) hear(name string, data []byte) {
	var b beat
	if catalog.CheckEdgeName(name) != "" || json.Unmarshal(data, &b) != nil {
		return
	}
	b.Instance, b.Version, b.Problem = cut(b.Instance, mostWord), cut(b.Version, mostWord), cut(b.Problem, mostProblem)
	position, err := catalog.ParsePosition(b.Position)
	if err != nil {
		b.Position = "" // an edge without a tree has none
	}
	now := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known == nil {
		e.known = map[string]*heardEdge{}
	}
	for other, h := range e.known {
		if now.Sub(h.at) > forgotten {
			delete(e.known, other)
		}
	}
	old := e.known[name]
	if old == nil && len(e.known) >= mostEdges {
		return
	}
	h := &heardEdge{beat: b, position: position, at: now}
	switch {
	case position == e.current || len(e.commits) == 0:
	case old != nil && position == old.position:
		h.behind = old.behind // commits may have forgotten a cut that was long
	default:
		h.behind = e.after(position, now)
	}
	if old != nil {
		h.former, h.rivalAt = old.former, old.rivalAt
		if b.Instance != old.Instance {
			if b.Instance == old.former { // a process that was started again is new
				h.rivalAt = now
			}
			h.former = old.Instance
		}
	}
	e.known[name] = h
}

// status lists the edges that were heard, and those of declared that were not, by name. newest is the authority's
// position.
func (e *edges) status(declared []string, newest catalog.Position) (list []EdgeStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for name, h := range e.known {
		s := EdgeStatus{
			Name: name, Version: h.Version, Position: h.Position, Generation: h.position.Generation,
			Current: h.position == newest, BeatAgeMS: ms(now.Sub(h.at)), Problem: h.Problem,
			Ready: h.Ready && now.Sub(h.at) < silentFor,
		}
		if !s.Current && !h.behind.IsZero() {
			s.LagMS = ms(now.Sub(h.behind))
		}
		if now.Sub(h.rivalAt) < 2*beatEvery {
			s.Problem = "two processes use the key of this edge: give each its own, with \"fingerpost edges keygen\""
		}
		list = append(list, s)
	}
	for _, name := range declared {
		if e.known[name] == nil {
			list = append(list, EdgeStatus{Name: name, Problem: "it has not been heard since this authority started"})
		}
	}
	slices.SortFunc(list, func(a, b EdgeStatus) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// after returns when the first generation after p was committed, as far as that is known. The caller holds mu.
func (e *edges) after(p catalog.Position, now time.Time) time.Time {
	for _, c := range e.commits {
		if p.Epoch != e.current.Epoch || c.generation > p.Generation {
			return c.at
		}
	}
	return now
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// listen hears heartbeats and takes forwarded requests.
func (a *Authority) listen() error {
	prefix := beatSubject(a.o.Cluster, "")
	if _, err := a.nc.Subscribe(prefix+"*", func(m *nats.Msg) {
		a.edges.hear(strings.TrimPrefix(m.Subject, prefix), m.Data)
	}); err != nil {
		return err
	}
	if a.o.Answer == nil {
		return nil
	}
	_, err := a.nc.Subscribe(forwardSubject(a.o.Cluster, "*"), a.takeRequest)
	return err
}
