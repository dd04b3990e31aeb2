package cluster

import "time"

// The states of an edge, between the messages that it has read and its own tree. A new bucket begins with empty; each
// marker that is read leads to one of the others.
const (
	// empty: no marker was read. The authority is filling the bucket, or has to do so again.
	empty = iota
	// current: the own tree is that of the last marker.
	current
	// torn: what was read is not what the last marker says. The authority is in the middle of the next generation and has
	// replaced files of this one; or a message is lost. The next marker mostly ends it. After tornFor the bucket is read
	// from its start; if it was, only the authority can put what lacks.
	torn
	// waiting: the last marker must not be applied. It is older than the own tree, or has no file. The next one may be.
	waiting
	// stuck: the replica has refused the generation of the last marker. Each step tries again.
	stuck
)

// A followState is the state of an edge.
type followState struct {
	at    int
	since time.Time
	why   error // nil: the edge follows
}

// enter changes the state. One that stays keeps its time.
func (f *Follower) enter(at int, why error) {
	if f.state.at != at {
		f.state.since = f.now()
	}
	f.state.at, f.state.why = at, why
}

// follows returns why the edge does not follow, errRepair if it has to read the bucket from its start.
func (f *Follower) follows() error {
	switch f.state.at {
	case empty:
		return errNoMarker
	case torn:
		switch long := f.now().Sub(f.state.since) > tornFor; {
		case long && !f.from.start:
			return errRepair
		case !long:
			return nil // the rest mostly comes at once
		}
	}
	return f.state.why
}
