package cluster

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// A Status is what a node of a cluster says of itself. It is safe to show.
type Status struct {
	Role      string    `json:"role"` // "authority" or "edge"
	Cluster   string    `json:"cluster"`
	Connected bool      `json:"connected"`
	Server    string    `json:"server,omitempty"` // URL and version
	Position  string    `json:"position"`
	Problem   string    `json:"problem,omitempty"` // why the cluster is not up to date
	Refused   []Refused `json:"refused,omitempty"` // messages that cannot be read; at most maxRefused

	// Of an authority.
	Edges     []EdgeStatus `json:"edges,omitempty"`
	Published string       `json:"published,omitempty"` // the position that the bucket has
	Lost      bool         `json:"lost,omitempty"`      // another authority has the lease

	// Of an edge.
	Edge       string    `json:"edge,omitempty"`
	Newest     string    `json:"newest,omitempty"` // the authority's position, as far as it is known
	LastWord   time.Time `json:"lastWord,omitzero"`
	AgeSeconds float64   `json:"ageSeconds"` // since LastWord
	Whole      bool      `json:"whole"`      // it has a whole tree
}

// A Refused is a message that an edge refuses.
type Refused struct {
	Key     string `json:"key"`
	Problem string `json:"problem"`
}

const maxRefused = 100

// Status returns the state of the authority. declared are the names of edges in the files.
func (a *Authority) Status(declared []string) Status {
	position := a.o.Tree.Position()
	s := Status{Role: "authority", Cluster: a.o.Cluster, Position: position.String(), Whole: true,
		Edges: a.edges.status(declared, position)}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.Connected, s.Server = a.server()
	if a.problem != nil {
		var held *HeldError
		s.Problem, s.Lost = a.problem.Error(), errors.As(a.problem, &held)
	}
	if a.reached.Epoch != "" {
		s.Published = a.reached.String()
	}
	return s
}

// server says where the node is connected to. The caller holds mu.
func (a *Authority) server() (connected bool, server string) {
	if a.nc == nil || !a.nc.IsConnected() {
		return false, ""
	}
	return true, strings.TrimSpace(a.nc.ConnectedUrlRedacted() + " " + a.nc.ConnectedServerVersion())
}

// Stats returns the counts since the start.
func (a *Authority) Stats() AuthorityStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// Status returns the state of the edge.
func (f *Follower) Status() Status {
	s := Status{Role: "edge", Cluster: f.o.Cluster, Edge: f.o.Edge, Position: f.o.Replica.Position().String(),
		AgeSeconds: f.Age(f.now()).Seconds()}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nc != nil && f.nc.IsConnected() {
		s.Connected, s.Server = true, strings.TrimSpace(f.nc.ConnectedUrlRedacted()+" "+f.nc.ConnectedServerVersion())
	}
	if f.problem != nil {
		s.Problem = f.problem.Error()
	} else if f.open() {
		s.Problem = openServer
	}
	for key, problem := range f.refused {
		s.Refused = append(s.Refused, Refused{key, problem})
	}
	slices.SortFunc(s.Refused, func(a, b Refused) int { return strings.Compare(a.Key, b.Key) })
	s.Refused = s.Refused[:min(len(s.Refused), maxRefused)]
	if f.newest.Epoch != "" {
		s.Newest = f.newest.String()
	}
	s.LastWord, s.Whole = f.heardAt, f.whole
	return s
}

// openServer is the problem of an edge whose NATS server asks nobody who he is.
const openServer = "the NATS server has no users: anybody who reaches it can be this edge, and read the files"

// open reports whether the edge is connected to such a server.
func (f *Follower) open() bool { return f.nc != nil && f.nc.IsConnected() && !f.nc.AuthRequired() }

// Problem is what keeps the edge from following, nil if nothing does.
func (f *Follower) Problem() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem
}

// Age returns the time from when the authority was last heard, or from the start if it was not heard yet, until now,
// which every answer has read already. It takes no lock.
func (f *Follower) Age(now time.Time) time.Duration {
	return max(0, now.Sub(f.started)-time.Duration(f.lastContact.Load()))
}

// Whole reports whether the edge has a whole tree.
func (f *Follower) Whole() bool { return f.isWhole() }

// Stats returns the counts since the start.
func (f *Follower) Stats() FollowerStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}
