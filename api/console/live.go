package console

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/chart"
	"fingerpost/api/ops/history"
	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

// A liveView is the state of this node at a moment.
type liveView struct {
	Whole     bool
	Now       Figures
	Rate      string // requests a second
	HitRatio  string
	P50, P99  string
	Status    configsrc.Status
	Waiting   int64
	Attempts  int64
	Edges     []edgeRow
	NoEdges   string // why the state of the edges is not known; "": it is
	Clustered bool
	Git       *GitState
	Hour      *chart.Hour // nil: not shown
}

// live shows the figures of this moment; the page's stream keeps them so.
func (c *Console) live(w http.ResponseWriter, r *http.Request, s *session) error {
	return c.render(w, r, s, http.StatusOK, "live", "Live", c.liveNow(r.Context(), s, nil, 0))
}

// liveNow makes the figures, with rates since the figures of before.
func (c *Console) liveNow(ctx context.Context, s *session, before *Figures, since time.Duration) *liveView {
	v := &liveView{Whole: s.Key().Everything && c.o.Figures != nil}
	if !v.Whole {
		return v
	}
	v.Now, v.Hour = c.o.Figures(), c.lastHour(s)
	if c.o.Config != nil {
		v.Status = c.o.Config.Status()
	}
	if c.o.Mail != nil {
		counts := c.o.Mail.Counts()
		v.Waiting, v.Attempts = counts.Waiting, counts.Attempts
	}
	was := Figures{}
	if before != nil {
		was = *before
		v.Rate = chart.Rate.Text(float64(v.Now.Resolves-was.Resolves) / since.Seconds())
	}
	if hits, misses := v.Now.Hits-was.Hits, v.Now.Misses-was.Misses; hits+misses > 0 {
		v.HitRatio = chart.Share.Text(float64(hits) / float64(hits+misses))
	}
	took := func(share float64) string {
		return chart.Seconds.Text(history.Quantile(was.Durations, v.Now.Durations, v.Now.Resolves-was.Resolves, share))
	}
	v.P50, v.P99 = took(0.5), took(0.99)
	if c.o.GitState != nil {
		git := c.o.GitState()
		v.Git = &git
	}
	if c.o.Cluster {
		edges, err := c.api(s).Edges(ctx)
		if v.Clustered = true; err != nil {
			v.NoEdges = reason(err)
		}
		v.Edges = edgeRows(edges, v.Hour)
	}
	return v
}

// How often live pages are brought up to date. What needs a person is asked from the API, and from git behind it.
const (
	liveEvery = 2 * time.Second
	nowEvery  = 5 * time.Second
)

// stream sends the figures and charts as they change, and each change of the configuration, until the browser goes, the
// session ends or the console closes. The browser's slowness is its own: what it does not read in time it does not get.
func (c *Console) stream(w http.ResponseWriter, r *http.Request, s *session) {
	last, at := (*Figures)(nil), time.Now()
	shown := shown{parts: map[string]string{}}
	c.keepLive(w, s, liveEvery, c.feed, func(ctx context.Context) []byte {
		v := c.liveNow(ctx, s, last, max(time.Since(at), time.Millisecond))
		if v.Whole {
			last, at = &v.Now, time.Now()
		}
		return c.news(&shown, v)
	})
}

// nowStream sends what needs a person as it changes, like stream.
func (c *Console) nowStream(w http.ResponseWriter, _ *http.Request, s *session) {
	shown := shown{parts: map[string]string{}}
	known := sinces{}
	none := func(context.Context, *session) <-chan change { return nil }
	c.keepLive(w, s, nowEvery, none, func(ctx context.Context) []byte {
		v := c.nowOf(ctx, s, known)
		var out bytes.Buffer
		c.changed(&out, &shown, "needs", "now", v)
		c.changed(&out, &shown, "nowcharts", "now", v.Charts)
		return out.Bytes()
	})
}

// keepLive sends a page's news now and then, and the changes of a feed, until the browser goes, the session ends or the
// console closes.
func (c *Console) keepLive(w http.ResponseWriter, s *session, every time.Duration,
	feed func(context.Context, *session) <-chan change, news func(context.Context) []byte) {
	if !c.sessions.beginStream(s) {
		http.Error(w, "too many live pages are open; close some", http.StatusServiceUnavailable)
		return
	}
	defer c.sessions.endStream(s)
	flush := http.NewResponseController(w)
	ctx, cancel := context.WithCancel(c.stopped)
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	events := feed(ctx, s)
	tick := time.NewTicker(every)
	defer tick.Stop()
	was := s.Key()
	for {
		text := news(ctx)
		if len(text) == 0 {
			text = []byte(":\n\n") // writing tells whether the browser is still there
		}
		if _, err := w.Write(text); err != nil || flush.Flush() != nil {
			return
		}
	wait:
		for {
			select {
			case <-ctx.Done():
				return
			case e, open := <-events:
				if !open {
					events = nil
					continue
				}
				if !c.sendPart(w, "change", "live", "change", e) || flush.Flush() != nil {
					return
				}
			case <-tick.C:
				break wait
			}
		}
		// A key that covers more or less than before needs another page.
		if k, good := c.o.Keys.Check(s.text); !good || !k.May(catalog.MayRead) || k.Everything != was.Everything ||
			k.Reach != nil && (k.Allow != was.Allow || k.everywhere() != was.everywhere()) ||
			c.sessions.with(s.secret) == nil {
			fmt.Fprint(w, "event: ended\ndata: \n\n")
			_ = flush.Flush()
			return
		}
	}
}

// shown is what a live page shows.
type shown struct {
	steps int               // of the charts
	parts map[string]string // the last event of each part that is sent when it changes
}

// news returns the events that bring a live page up to date.
func (c *Console) news(shown *shown, v *liveView) []byte {
	var out bytes.Buffer
	for _, part := range []string{"figures", "state", "edges"} {
		if !v.Whole && part != "figures" {
			break
		}
		c.changed(&out, shown, part, "live", v)
	}
	if v.Hour != nil && v.Hour.Steps != shown.steps {
		out.Write(c.chartEvents(v.Hour))
		shown.steps = v.Hour.Steps
	}
	return out.Bytes()
}

// changed appends the event of a part, which has its name, if it is not what the page shows.
func (c *Console) changed(out *bytes.Buffer, shown *shown, part, page string, data any) {
	var event bytes.Buffer
	c.writePart(&event, part, page, part, data)
	if event.String() != shown.parts[part] {
		shown.parts[part] = event.String()
		out.Write(event.Bytes())
	}
}

// sendPart writes an event whose data is a part of a page.
func (c *Console) sendPart(w http.ResponseWriter, event, page, part string, data any) bool {
	var message bytes.Buffer
	if !c.writePart(&message, event, page, part, data) {
		return false
	}
	_, err := w.Write(message.Bytes())
	return err == nil
}

// writePart appends an event whose data is a part of a page.
func (c *Console) writePart(message *bytes.Buffer, event, page, part string, data any) bool {
	var out bytes.Buffer
	if err := c.pages()[page].ExecuteTemplate(&out, part, data); err != nil {
		c.o.Logger.Error("console page", "page", page, "error", err)
		return false
	}
	fmt.Fprintf(message, "event: %s\n", event)
	for l := range bytes.Lines(out.Bytes()) {
		fmt.Fprintf(message, "data: %s\n", bytes.TrimRight(l, "\r\n"))
	}
	message.WriteByte('\n')
	return true
}

// A change is an event of the change feed.
type change struct {
	client.Event
	At time.Time
}

// feed reads the API's change feed with the session's key. The channel is closed when the feed ends.
func (c *Console) feed(ctx context.Context, s *session) <-chan change {
	out := make(chan change)
	go func() {
		defer close(out)
		_ = c.api(s).Events(ctx, func(e client.Event) error { // its end ends what the page shows of it, no more
			select {
			case out <- change{e, time.Now()}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return out
}
