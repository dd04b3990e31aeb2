package verify

import (
	"slices"

	"fingerpost/configsrc/verify/dcv"
)

// The names of the axes, as metrics and filters have them.
const (
	AxisOwnership   = "ownership"
	AxisPointing    = "pointing"
	AxisCertificate = "certificate"
)

// axes are the axes with their states; a standing has an index into each list.
var axes = [...]struct {
	name   string
	states []string
}{
	{AxisOwnership, []string{dcv.Trusted, dcv.Pending, dcv.Proven, dcv.Failing, dcv.Lost}},
	{AxisPointing, []string{dcv.Unknown, dcv.Here, dcv.Elsewhere, dcv.Nowhere, dcv.Spreading}},
	{AxisCertificate, []string{dcv.Unknown, dcv.Good, dcv.Expiring, dcv.Wrong, dcv.NoCertificate}},
}

// A standing is a state of each axis.
type standing [len(axes)]uint8

// standingOf finds the states by their names; one that was never decided is the first one.
func standingOf(state *dcv.State) (s standing) {
	for i, name := range []string{state.Ownership.State, state.Pointing.State, state.Certificate.State} {
		s[i] = uint8(max(slices.Index(axes[i].states, name), 0))
	}
	return s
}

func (s *standing) state(axis int) string { return axes[axis].states[s[axis]] }

// trouble reports whether the ownership is failing or lost.
func (s *standing) trouble() bool {
	state := s.state(0)
	return state == dcv.Failing || state == dcv.Lost
}

// settled reports whether the ownership needs no proof now.
func (s *standing) settled() bool {
	state := s.state(0)
	return state == dcv.Trusted || state == dcv.Proven
}

func (s *standing) ready() bool {
	return s.settled() && s.state(1) == dcv.Here && s.state(2) == dcv.Good
}

// counts are the numbers of domains in each state.
type counts struct {
	states [len(axes)][8]int
	ready  int
	all    int
}

func (c *counts) add(s *standing, n int) {
	for axis := range axes {
		c.states[axis][s[axis]] += n
	}
	c.all += n
	if s.ready() {
		c.ready += n
	}
}
