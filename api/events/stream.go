package events

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const (
	// maxInput is how many bytes a client may send while it reads a stream. They are dropped.
	maxInput = 4 << 10
	// lastWrite is the time that a client has to take the end of its stream once the server stops.
	lastWrite = time.Second
	// eventsAtOnce is how many events are taken from the feed at a time.
	eventsAtOnce = 64
	// maxAhead is how long a stream waits for a position that another node has reached.
	maxAhead = 2 * time.Second
)

// Errors of a stream that ends in good order, and that of a client that talks.
var (
	errKey     = errors.New("the key may no longer read events")
	errStopped = errors.New("the server stops")
	errInput   = errors.New("the client sends too much")
)

// A stream is an open event stream. All but wake and hurry belongs to its goroutine.
type stream struct {
	streams   *Streams
	conn      streamConn
	requestID string
	begun     time.Time // when the request came
	out       writer
	cursor    resolver.Cursor
	upToDate  bool             // what was missed is sent, and the position after it
	awaited   catalog.Position // the position to resume from, while until is not zero
	until     time.Time        // when the stream no longer waits for it
	key       *resolver.Key    // as it is declared now
	comment   time.Time        // when the next comment is due
	input     int              // bytes that the client has sent
	drop      [64]byte         // where they go
	sent      int64            // events
}

// newStream makes the stream of a request, which it does not hold. The client resumes at a position, or starts at the
// newest.
func newStream(s *Streams, r *web.Request, at resumption) *stream {
	st := &stream{streams: s, conn: streamConn{r.Conn}, requestID: web.RequestID(r.Ctx), begun: r.Ctx.Time(), key: r.Key}
	st.out = newWriter(streamHead(r.Ctx), r.Ctx.Request.Header.IsHTTP11(), st.write)
	// Clients that come back together after a restart must not get their comments together.
	st.comment = time.Now().Add(s.Heartbeat/2 + rand.N(s.Heartbeat/2+1))
	if at.given {
		var ahead bool
		if st.cursor, ahead = s.feed.After(at.Position); ahead && at.awaited {
			st.awaited, st.until = at.Position, time.Now().Add(maxAhead)
		}
		return st
	}
	st.cursor, _ = s.feed.Newest()
	return st
}

// resume reports whether the stream need not wait for its position any more. A node that has not reached it in time
// begins with a Reset.
func (s *stream) resume() (ready bool, err error) {
	if s.until.IsZero() {
		return true, nil
	}
	cursor, ahead := s.streams.feed.After(s.awaited)
	if ahead && time.Now().Before(s.until) {
		return false, nil
	}
	s.cursor, s.until = cursor, time.Time{}
	_, err = s.renewKey() // the cursor does not have what happened to the keys while the stream waited
	return true, err
}

// wake ends the stream's wait. Any goroutine may call it.
func (s *stream) wake() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) }

// hurry gives a write, also one that is under way, the time that is left once the server stops. Any goroutine may call
// it.
func (s *stream) hurry() {
	_ = s.conn.SetWriteDeadline(time.Now().Add(min(s.streams.Write, lastWrite)))
}

// serve runs the stream until it ends, and closes its connection.
func (s *stream) serve() {
	why := EndFault
	defer func() {
		if cause := recover(); cause != nil {
			s.streams.Logger.Error("event stream panicked", "request_id", s.requestID, "cause", cause, "stack",
				string(debug.Stack()))
		}
		s.conn.cut()
		s.log(why)
		s.streams.remove(s, why) // last: Wait waits for it
	}()
	err := s.run()
	why = s.reason(err)
	if (errors.Is(err, errKey) || errors.Is(err, errStopped)) && s.out.end() == nil {
		s.conn.end() // cut alone could overtake the end of the stream
	}
}

// run sends and waits until the stream ends. Its error is the reason.
func (s *stream) run() error {
	if _, err := s.renewKey(); err != nil { // it may have changed since the request was checked
		return err
	}
	for {
		// Set the deadline before reading the feed: a wake that comes from here on ends the wait below.
		if err := s.conn.SetReadDeadline(s.due()); err != nil {
			return err
		}
		stopping := s.streams.stopping() // before reading the feed: events from before Stop are delivered
		ready, err := s.resume()
		if err == nil && ready {
			err = s.sendEvents()
		}
		if err != nil {
			return err
		}
		now := time.Now()
		if at := s.key.ExpiresAt; !at.IsZero() && !now.Before(at) {
			return errKey
		}
		if ready { // a client must not take a stream for open before it knows what it has missed
			if !now.Before(s.comment) {
				s.out.comment()
				s.comment = now.Add(s.streams.Heartbeat)
			}
			if err := s.out.flush(); err != nil {
				return err
			}
			s.out.text = nil // idle streams hold no buffer
		}
		if stopping {
			s.out.retry(leastAway, mostAway)
			return errStopped
		}
		if err := s.wait(); err != nil {
			return err
		}
	}
}

// due is when the stream has something to do even if nothing happens.
func (s *stream) due() time.Time {
	due := s.comment
	if !s.until.IsZero() {
		due = s.until
	}
	if at := s.key.ExpiresAt; !at.IsZero() && at.Before(due) {
		due = at
	}
	return due
}

// wait returns nil when the stream is woken or due, and an error when the client has gone.
func (s *stream) wait() error {
	for s.input < maxInput {
		n, err := s.conn.Read(s.drop[:])
		s.input += n
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
	}
	return errInput
}

// sendEvents writes what the feed has for the key, until the feed has no more or the key is no longer good. The first
// time it ends with the position alone: an id without data is not an event, but it tells the client that it has missed
// nothing else, and the client sends it back.
func (s *stream) sendEvents() error {
	var room [eventsAtOnce]*resolver.Event
	for {
		events := s.cursor.Next(room[:0], eventsAtOnce)
		for _, e := range events {
			if e.Kind == resolver.KeysChanged || e.Kind == resolver.Reset {
				same, err := s.renewKey()
				switch {
				case err != nil:
					return err
				case e.Kind == resolver.KeysChanged && same:
					continue
				case e.Kind == resolver.KeysChanged:
					reset := resolver.NewReset(e.Revision) // the key reaches other projects than before
					reset.Epoch = e.Epoch
					e = reset
				}
			}
			if !e.Concerns(s.key) {
				continue
			}
			if err := s.out.event(e); err != nil {
				return err
			}
			s.sent++
		}
		if len(events) == eventsAtOnce {
			continue
		}
		if !s.upToDate {
			var at catalog.Position
			if at, s.upToDate = s.cursor.AtEnd(); !s.upToDate {
				continue
			}
			s.out.id(at)
		}
		return nil
	}
}

// renewKey replaces the key with the one that is declared now. same reports whether that one reaches the same projects.
func (s *stream) renewKey() (same bool, err error) {
	was := s.key
	now := s.streams.Live.Keys().Renewed(was)
	if now == nil || now.Allow&mayRead == 0 {
		return false, errKey
	}
	s.key = now
	return now.Allow == was.Allow && now.SameReach(was), nil
}

// write writes all of b in the time that the client has for it.
func (s *stream) write(b []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(s.streams.Write)); err != nil {
		return err
	}
	if s.streams.stopping() { // Stop's own call of hurry may have come before the line above
		s.hurry()
	}
	_, err := s.conn.Write(b)
	return err
}

// log writes the line of the access log for a stream that has ended.
func (s *stream) log(why Ending) {
	s.streams.Logger.LogAttrs(context.Background(), slog.LevelInfo, "request",
		slog.String("method", http.MethodGet), slog.String("path", path), slog.Int("status", http.StatusOK),
		slog.Float64("duration_ms", float64(time.Since(s.begun).Microseconds())/1000),
		slog.String("request_id", s.requestID), slog.String("key", s.key.ID),
		slog.Int64("events", s.sent), slog.String("ended", string(why)))
}

// reason is the ending that an error of run stands for.
func (s *stream) reason(err error) Ending {
	switch {
	case errors.Is(err, errKey):
		return EndKey
	case s.streams.stopping():
		return EndShutdown
	case errors.Is(err, os.ErrDeadlineExceeded):
		return EndSlow
	}
	return EndClient
}
