package configsrc

import (
	"context"
	"time"
)

// paceShare is the part of a core that paced work takes: 1/paceShare.
const paceShare = 200

// A pacer spreads work that never ends over time: after each piece it rests long enough that the work takes 1/paceShare
// of a core, which requests do not notice.
type pacer struct {
	ctx    context.Context // ends the rests
	rests  bool
	began  time.Time
	piece  time.Time     // when the present piece began
	rested time.Duration // so far
}

// newPacer begins work, which rests if rests is set.
func newPacer(ctx context.Context, rests bool) *pacer {
	now := time.Now()
	return &pacer{ctx: ctx, rests: rests, began: now, piece: now}
}

// worked returns the time since the beginning, without the rests.
func (p *pacer) worked() time.Duration { return time.Since(p.began) - p.rested }

// rest ends a piece of work. A piece of over 5 ms was itself delayed, so a rest is 1 s at most.
func (p *pacer) rest() {
	if !p.rests {
		return
	}
	ended := time.Now()
	timer := time.NewTimer(min((paceShare-1)*ended.Sub(p.piece), time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
	p.piece = time.Now()
	p.rested += p.piece.Sub(ended)
}
