package history

import (
	"context"
	"math"
	"sync"
	"time"
)

// The bounds of what is kept: Points steps of Step, an hour.
const (
	Step   = 10 * time.Second
	Points = 360
)

// The names of the figures, in the order of View.Values.
const (
	Resolves     = "resolves_per_second"
	P50          = "resolve_p50_seconds"
	P99          = "resolve_p99_seconds"
	HitRatio     = "cache_hit_ratio"
	Writes       = "writes"
	MailsSent    = "mails_sent"
	MailsFailed  = "mails_failed"
	Subscribers  = "feed_subscribers"
	AuthorityAge = "authority_age_seconds"
)

var names = [...]string{Resolves, P50, P99, HitRatio, Writes, MailsSent, MailsFailed, Subscribers, AuthorityAge}

// A Sample is what a node knows at a moment. Counters count since its start.
type Sample struct {
	Resolves, Hits, Misses uint64
	Durations              []Bucket // of resolve, ascending
	Mail                   *Mail    // nil: this node sends none
	Subscribers            int      // open streams of the change feed
	Edges                  []Edge   // of an authority
	// AuthorityAge is, on an edge, the time since the authority was last heard. Nil: this node is no edge.
	AuthorityAge *time.Duration
}

// Mail counts the ends of mails.
type Mail struct{ Sent, Failed uint64 }

// A Bucket counts the calls that took at most so long, those of the buckets below it included.
type Bucket struct {
	Most  time.Duration
	Count uint64
}

// An Edge is what an authority knows of an edge.
type Edge struct {
	Name  string
	Lag   time.Duration // since the oldest generation that it has not confirmed; 0: it has all
	Ready bool
}

// A Recorder keeps the history of a node. Its methods may be called from any goroutine.
type Recorder struct {
	mu     sync.Mutex // guards the fields below
	last   Sample
	at     time.Time // of last; zero: there is none yet
	steps  int       // that have been recorded
	writes int       // generations since the last step
	noted  int       // generations since the start
	values [len(names)][Points]float32
	lanes  []*lane
	marks  []*mark // the oldest first, at most one a step
}

// New returns a Recorder that has recorded nothing.
func New() *Recorder { return new(Recorder) }

// Run records what read returns every Step, until ctx ends.
func (r *Recorder) Run(ctx context.Context, read func() Sample) {
	tick := time.NewTicker(Step)
	defer tick.Stop()
	r.Record(time.Now(), read())
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.Record(time.Now(), read())
		}
	}
}

// Record takes the sample of a moment, and keeps what it refers to. The first one is what later ones are compared with.
// Steps that were missed, as on a machine that slept, are gaps.
func (r *Recorder) Record(now time.Time, s Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	elapsed, edges := now.Sub(r.at), s.Edges
	s.Edges = nil // not kept: any number of them
	if r.at.IsZero() || elapsed <= 0 {
		r.last, r.at, r.writes = s, now, 0
		return
	}
	missed := int(math.Round(min(elapsed.Seconds()/Step.Seconds(), Points))) - 1
	for range missed {
		r.step(nil, nil)
	}
	r.step(r.figures(&s, elapsed), edges)
	r.last, r.at, r.writes = s, now, 0
	r.forget()
}

// step appends one value to each figure, a gap where there is none, and one to the lane of each edge.
func (r *Recorder) step(figures map[string]float64, edges []Edge) {
	at := r.steps % Points
	for i, name := range names {
		r.values[i][at] = float32(math.NaN())
		if v, has := figures[name]; has {
			r.values[i][at] = float32(v)
		}
	}
	r.drawLanes(at, edges)
	r.steps++
}

// figures are the values since the last sample.
func (r *Recorder) figures(s *Sample, elapsed time.Duration) map[string]float64 {
	was := &r.last
	calls := since(was.Resolves, s.Resolves)
	f := map[string]float64{
		Resolves: float64(calls) / elapsed.Seconds(), Writes: float64(r.writes), Subscribers: float64(s.Subscribers),
		P50: Quantile(was.Durations, s.Durations, calls, 0.5), P99: Quantile(was.Durations, s.Durations, calls, 0.99),
	}
	if hits, misses := since(was.Hits, s.Hits), since(was.Misses, s.Misses); hits+misses > 0 {
		f[HitRatio] = float64(hits) / float64(hits+misses)
	}
	if s.Mail != nil {
		before := Mail{}
		if was.Mail != nil {
			before = *was.Mail
		}
		f[MailsSent] = float64(since(before.Sent, s.Mail.Sent))
		f[MailsFailed] = float64(since(before.Failed, s.Mail.Failed))
	}
	if s.AuthorityAge != nil {
		f[AuthorityAge] = s.AuthorityAge.Seconds()
	}
	return f
}

// since is how far a counter has come. Counters of several cores are not read at one moment, so one may seem to go back.
func since(was, is uint64) uint64 {
	if is < was {
		return 0
	}
	return is - was
}

// Quantile estimates, in seconds, how long a share of the calls between two moments took at most, by the buckets of both
// moments and the number of calls between them. It is NaN without calls.
func Quantile(was, is []Bucket, calls uint64, share float64) float64 {
	if calls == 0 || len(is) == 0 {
		return math.NaN()
	}
	rank := share * float64(calls)
	low, below := 0.0, 0.0
	for i := range is {
		n := float64(is[i].Count)
		if i < len(was) {
			n = float64(since(was[i].Count, is[i].Count))
		}
		high := is[i].Most.Seconds()
		if n >= rank && n > below {
			return low + (high-low)*max(rank-below, 0)/(n-below)
		}
		low, below = high, max(n, below)
	}
	return low // longer than the last bound
}
