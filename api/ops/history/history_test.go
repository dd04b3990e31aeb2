package history_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"fingerpost/api/ops/history"
)

// A clock is what the tests tell a Recorder the time by.
type clock struct {
	*history.Recorder
	now    time.Time
	sample history.Sample
}

func newClock() *clock {
	c := &clock{Recorder: history.New(), now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	c.Record(c.now, c.sample)
	return c
}

// pass lets time pass, and records what has been counted until then.
func (c *clock) pass(d time.Duration) {
	c.now = c.now.Add(d)
	c.Record(c.now, c.sample)
}

// calls counts calls of resolve that took so long.
func (c *clock) calls(n uint64, took time.Duration) {
	old := c.sample.Durations
	c.sample.Durations = nil
	for i, most := range []time.Duration{2 * time.Microsecond, 5 * time.Microsecond, 10 * time.Microsecond, time.Millisecond} {
		b := history.Bucket{Most: most}
		if old != nil {
			b.Count = old[i].Count
		}
		if took <= most {
			b.Count += n
		}
		c.sample.Durations = append(c.sample.Durations, b)
	}
	c.sample.Resolves += n
}

func expect(t *testing.T, v *history.View, name string, want ...float64) {
	t.Helper()
	got := v.Of(name)
	same := slices.EqualFunc(got, want, func(a, b float64) bool {
		return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-6*math.Abs(b)
	})
	if !same {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}

var gap = math.NaN()

func TestFiguresAreThoseOfTheStep(t *testing.T) {
	c := newClock()
	if v := c.View(); v.Steps != 0 || !v.End.IsZero() || len(v.Of(history.Resolves)) != 0 {
		t.Errorf("a history begins with %+v", v)
	}
	c.calls(90, 4*time.Microsecond)
	c.calls(10, 100*time.Microsecond)
	c.sample.Hits, c.sample.Misses = 75, 25
	c.sample.Mail = &history.Mail{Sent: 3, Failed: 1}
	c.sample.Subscribers = 2
	c.pass(history.Step)
	c.pass(history.Step)
	v := c.View()
	expect(t, v, history.Resolves, 10, 0)
	expect(t, v, history.P50, 3.6666667e-6, gap) // 50 of the 90 calls between 2 and 5 µs
	expect(t, v, history.P99, 9.01e-4, gap)      // 9 of the 10 calls between 10 µs and 1 ms
	expect(t, v, history.HitRatio, 0.75, gap)
	expect(t, v, history.MailsSent, 3, 0)
	expect(t, v, history.MailsFailed, 1, 0)
	expect(t, v, history.Subscribers, 2, 2)
	expect(t, v, history.AuthorityAge, gap, gap)
	if !v.End.Equal(c.now) {
		t.Errorf("it ends at %v, want %v", v.End, c.now)
	}
}

// The estimate of a quantile is in the bucket of the true value: at most a factor of 5 away with these bounds, 100 for
// the last one.
func TestQuantilesStayInTheirBucket(t *testing.T) {
	c := newClock()
	for _, took := range []time.Duration{time.Microsecond, 3 * time.Microsecond, 7 * time.Microsecond, 900 * time.Microsecond} {
		c.calls(7, took)
		c.pass(history.Step)
	}
	c.calls(7, time.Second) // longer than the last bound
	c.pass(history.Step)
	p50, p99 := c.View().Of(history.P50), c.View().Of(history.P99)
	bounds := []float64{0, 2e-6, 5e-6, 1e-5, 1e-3}
	for i := range 4 {
		if p50[i] <= bounds[i] || p99[i] > bounds[i+1]*1.000001 || p50[i] > p99[i] {
			t.Errorf("step %d: p50 %g, p99 %g, not between %g and %g", i, p50[i], p99[i], bounds[i], bounds[i+1])
		}
	}
	if math.Abs(p99[4]-1e-3) > 1e-9 {
		t.Errorf("above the last bound: %g", p99[4])
	}
}

func TestMissedStepsAreGaps(t *testing.T) {
	c := newClock()
	c.calls(100, time.Microsecond)
	c.pass(history.Step)
	c.calls(400, time.Microsecond)
	c.pass(4 * history.Step)
	expect(t, c.View(), history.Resolves, 10, gap, gap, gap, 10)
	c.pass(-time.Hour) // the clock was set back
	c.calls(50, time.Microsecond)
	c.pass(history.Step)
	expect(t, c.View(), history.Resolves, 10, gap, gap, gap, 10, 5)
	c.pass(1000 * time.Hour)
	if v := c.View(); len(v.Of(history.Resolves)) != history.Points {
		t.Errorf("%d steps after a long sleep", len(v.Of(history.Resolves)))
	}
}

func TestTheHourMovesOn(t *testing.T) {
	c := newClock()
	for i := range history.Points + 5 {
		c.sample.Subscribers = i
		c.Note(history.Generation{Number: uint64(i), Time: c.now})
		c.pass(history.Step)
	}
	v := c.View()
	subscribers := v.Of(history.Subscribers)
	if len(subscribers) != history.Points || subscribers[0] != 5 || subscribers[history.Points-1] != history.Points+4 {
		t.Errorf("%d values, from %v to %v", len(subscribers), subscribers[0], subscribers[len(subscribers)-1])
	}
	if len(v.Marks) != history.Points || v.Marks[0].Generation != 5 {
		t.Errorf("%d marks from generation %d", len(v.Marks), v.Marks[0].Generation)
	}
}
