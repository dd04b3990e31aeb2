package history

import (
	"slices"
	"strings"
)

// maxEdges bounds the lanes.
const maxEdges = 64

// A lane is the history of an edge.
type lane struct {
	name  string
	lag   [Points]float32 // seconds
	state [Points]state
	seen  int // the number of the last step with a value
}

// A state is what an edge was in a step.
type state uint8

const (
	absent state = iota // the edge was not known
	ready
	notReady
)

// drawLanes records what is known of the edges in the present step. For an edge beyond maxEdges the lane goes that has
// been without a value for longest; while all have one, the edge gets none.
func (r *Recorder) drawLanes(at int, edges []Edge) {
	for _, l := range r.lanes {
		l.lag[at], l.state[at] = 0, absent
	}
	for i := range edges {
		e := &edges[i]
		l := r.laneOf(e.Name)
		if l == nil {
			continue
		}
		l.lag[at], l.state[at], l.seen = float32(e.Lag.Seconds()), notReady, r.steps
		if e.Ready {
			l.state[at] = ready
		}
	}
}

// laneOf returns the lane of an edge, a new one if it has none, nil if there is no room.
func (r *Recorder) laneOf(name string) *lane {
	name = cut(name)
	for _, l := range r.lanes {
		if l.name == name {
			return l
		}
	}
	if len(r.lanes) >= maxEdges {
		oldest := slices.MinFunc(r.lanes, func(a, b *lane) int { return a.seen - b.seen })
		if oldest.seen >= r.steps-1 {
			return nil
		}
		r.lanes = slices.DeleteFunc(r.lanes, func(l *lane) bool { return l == oldest })
	}
	l := &lane{name: name}
	r.lanes = append(r.lanes, l)
	slices.SortFunc(r.lanes, func(a, b *lane) int { return strings.Compare(a.name, b.name) })
	return l
}

// forget drops what is older than the oldest step: lanes without a value, and marks.
func (r *Recorder) forget() {
	first := r.steps - Points
	r.lanes = slices.DeleteFunc(r.lanes, func(l *lane) bool { return l.seen < first })
	r.marks = slices.DeleteFunc(r.marks, func(m *mark) bool { return m.step < first })
}
