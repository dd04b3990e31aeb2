package background

import (
	"context"
	"time"
)

// Share is the part of a core that paced work takes: 1/Share.
const Share = 200

// A Pace spreads work over time: after each piece it rests long enough that the work takes 1/Share of a core, so that
// work that never ends takes no noticeable part from requests.
type Pace struct {
	ctx    context.Context // ends the rests
	rests  bool
	began  time.Time
	piece  time.Time     // when the present piece began
	rested time.Duration // so far
}

// NewPace begins work, which rests if rests is set.
func NewPace(ctx context.Context, rests bool) *Pace {
	now := time.Now()
	return &Pace{ctx: ctx, rests: rests, began: now, piece: now}
}

// Worked returns the time since the beginning, without the rests.
func (p *Pace) Worked() time.Duration { return time.Since(p.began) - p.rested }

// Rest ends a piece of work. A piece of over 5 ms was itself delayed, so a rest is 1 s at most.
func (p *Pace) Rest() {
	if !p.rests {
		return
	}
	ended := time.Now()
	timer := time.NewTimer(min((Share-1)*ended.Sub(p.piece), time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
	p.piece = time.Now()
	p.rested += p.piece.Sub(ended)
}
