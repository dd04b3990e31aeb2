package api

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/resolver"
)

// An ending says why a stream has ended. It goes to the metrics and the log.
type ending int32

const (
	endNot      ending = iota
	endClient          // the client hung up
	endSlow            // the client did not take what was sent
	endKey             // the key was revoked, has expired or may not read events any more
	endShutdown        // this server ends
	endFault           // a bug
	endings
)

var endingNames = [endings]string{"", "client", "slow", "key", "shutdown", "fault"}

const (
	// streamSendBuffer is what the system may hold for a client that does not read: it would take megabytes.
	streamSendBuffer = 64 << 10
	// maxStreamInput is what a client may send while it reads a stream; nothing of it is looked at.
	maxStreamInput = 4 << 10
	// lastWrite is the time for the end of a stream when the server stops.
	lastWrite = time.Second
	// leastUnacked is the least time after which a peer that does not acknowledge is given up.
	leastUnacked = 30 * time.Second
	// eventsAtOnce are taken from the feed at a time.
	eventsAtOnce = 64
)

// A subscriber is an open event stream. One goroutine waits for the end of the connection; another comes into being
// whenever there is something to send, and only one at a time does: what is not atomic is its alone, from start on.
type subscriber struct {
	server *Server
	conn   *conn
	out    eventWriter
	cursor resolver.Cursor
	key    *resolver.Key // as it was when it was looked at last
	timer  *time.Timer   // of the next comment, or of the key's end

	id, keyID string // of the request and its key
	begun     time.Time

	state  atomic.Int32 // resting, sending, …
	due    atomic.Bool  // the timer has fired
	ending atomic.Int32
	events atomic.Int64 // that were sent
}

// The states of a subscriber.
const (
	resting int32 = iota
	sending
	sendingAgain // and there is more since it began
	ended
)

// newSubscriber makes a subscriber for a request. It is none of the server's yet.
func newSubscriber(s *Server, c *conn, r *request) *subscriber {
	u := &subscriber{server: s, conn: c, key: r.key, keyID: r.key.ID, id: requestID(r.ctx), begun: r.ctx.Time()}
	u.out = newEventWriter(r.ctx, u.send)
	return u
}

// take is what the library calls when it hands the connection over.
func (u *subscriber) take(net.Conn) {
	c := u.conn
	c.hot = hotConn{lane: c.hot.lane} // memory of requests: there are none any more
	limits := &u.server.limits
	c.BeginStream(streamSendBuffer, max(3*limits.Heartbeat, leastUnacked)) // with the system's buffers a client that does not read costs more
	u.timer = time.AfterFunc(time.Hour, u.tick)
	// Streams that begin together, after a restart, shall not have their comments together.
	u.timer.Reset(u.pause(limits.Heartbeat/2 + rand.N(limits.Heartbeat/2+1)))
	u.server.streams.add(u)
	u.kick()
	go u.watch()
}

// pause is the time until the timer is to fire: after d, or when the key expires.
func (u *subscriber) pause(d time.Duration) time.Duration {
	if at := u.key.ExpiresAt; !at.IsZero() {
		d = max(min(d, time.Until(at)), time.Millisecond)
	}
	return d
}

func (u *subscriber) tick() {
	u.due.Store(true)
	u.kick()
}

// watch waits for the end of the connection, and cleans up.
func (u *subscriber) watch() {
	defer func() {
		u.end(endClient)
		u.timer.Stop()
		u.conn.Close()
		u.log()
		u.server.streams.remove(u) // the last: Shutdown waits for it
	}()
	var b [256]byte
	for got := 0; got < maxStreamInput; {
		n, err := u.conn.ReadStream(b[:])
		if got += n; err != nil {
			return
		}
	}
}

// end notes why the stream ends; the first reason counts.
func (u *subscriber) end(why ending) { u.ending.CompareAndSwap(int32(endNot), int32(why)) }

// stop ends the stream in good order, soon.
func (u *subscriber) stop(why ending) {
	u.end(why)
	u.conn.SetWriteDeadline(time.Now().Add(lastWrite)) // also of a write that is under way
	u.kick()
}

// kick makes the subscriber send what there is. It may be called from anywhere and does not block.
func (u *subscriber) kick() {
	for {
		switch u.state.Load() {
		case resting:
			if u.state.CompareAndSwap(resting, sending) {
				go u.run()
				return
			}
		case sending:
			if u.state.CompareAndSwap(sending, sendingAgain) {
				return
			}
		default:
			return
		}
	}
}

// run sends until there is no more.
func (u *subscriber) run() {
	defer func() {
		if cause := recover(); cause != nil {
			u.server.log.Error("event stream panicked", "request_id", u.id, "cause", cause, "stack", string(debug.Stack()))
			u.end(endFault)
			u.state.Store(ended)
			u.conn.Abort()
		}
	}()
	for {
		if err := u.flush(); err != nil {
			u.state.Store(ended)
			u.failed(err)
			return
		}
		if u.state.CompareAndSwap(sending, resting) {
			return
		}
		u.state.Store(sending)
	}
}

// errEnded ends a stream that was ended in good order.
var errEnded = errors.New("the stream has ended")

// failed closes the connection. A stream that was ended in good order is closed so, too: a reset could overtake its end.
func (u *subscriber) failed(err error) {
	if errors.Is(err, errEnded) {
		u.conn.Linger()
		u.conn.Wake() // wakes watch
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		u.end(endSlow)
	} else {
		u.end(endClient)
	}
	u.conn.Abort()
}

// textBuffers are lent to those who send: most subscribers have nothing to.
var textBuffers = sync.Pool{New: func() any { return new([]byte) }}

// flush sends what there is.
func (u *subscriber) flush() error {
	lent := textBuffers.Get().(*[]byte)
	u.out.text = append((*lent)[:0], u.out.text...)
	defer func() {
		*lent, u.out.text = u.out.text, nil
		textBuffers.Put(lent)
	}()
	if u.out.head != nil { // the key was checked before the cursor was there
		u.renewKey()
	}
	if len(u.out.text) == 0 {
		u.out.text = u.out.begin(u.out.text)
	}
	stopping := ending(u.ending.Load()) // looked at before the events: what came before it is told
	if stopping != endKey {
		if err := u.takeEvents(); err != nil {
			return err
		}
	}
	if u.due.Swap(false) {
		if at := u.key.ExpiresAt; !at.IsZero() && !time.Now().Before(at) {
			u.end(endKey)
		}
		u.out.comment()
		u.timer.Reset(u.pause(u.server.limits.Heartbeat))
	}
	if stopping == endNot && ending(u.ending.Load()) != endKey {
		return u.out.flush()
	}
	if err := u.out.end(); err != nil {
		return err
	}
	return errEnded
}

// takeEvents passes on what the feed has for the key, until it has no more or the key is good no more.
func (u *subscriber) takeEvents() error {
	var room [eventsAtOnce]*resolver.Event
	for {
		events := u.cursor.Next(room[:0], eventsAtOnce)
		for _, e := range events {
			if e.Kind == resolver.KeysChanged || e.Kind == resolver.Reset {
				same := u.renewKey()
				if ending(u.ending.Load()) == endKey {
					return nil
				}
				if e.Kind == resolver.KeysChanged {
					if same {
						continue
					}
					e = resolver.NewReset(e.Revision) // other projects are within reach than were
				}
			}
			if !e.Concerns(u.key) {
				continue
			}
			if err := u.out.event(e); err != nil {
				return err
			}
			u.events.Add(1)
		}
		if len(events) < eventsAtOnce {
			return nil
		}
	}
}

// renewKey looks the key up as it is now. It reports whether the key reaches what it did before, and notes the end of
// the stream where it is good no more.
func (u *subscriber) renewKey() (same bool) {
	was := u.key
	now := u.server.resolver.Keys().Lookup([]byte(was.ID))
	if now == nil || now.Hash != was.Hash || now.Allow&resolvePermissions == 0 {
		u.end(endKey)
		return false
	}
	u.key = now
	if !now.ExpiresAt.Equal(was.ExpiresAt) {
		u.timer.Reset(u.pause(u.server.limits.Heartbeat))
	}
	return now.Allow == was.Allow && now.SameReach(was)
}

// send writes to the connection, within the write timeout.
func (u *subscriber) send(b []byte) error {
	most := u.server.limits.Write
	if u.ending.Load() != int32(endNot) {
		most = min(most, lastWrite)
	}
	if err := u.conn.SetWriteDeadline(time.Now().Add(most)); err != nil {
		return err
	}
	_, err := u.conn.WriteStream(b)
	return err
}

// log writes the access log's line, which other requests have when they are answered.
func (u *subscriber) log() {
	u.server.log.LogAttrs(context.Background(), slog.LevelInfo, "request",
		slog.String("method", http.MethodGet), slog.String("path", eventsPath), slog.Int("status", http.StatusOK),
		slog.Float64("duration_ms", float64(time.Since(u.begun).Microseconds())/1000),
		slog.String("request_id", u.id), slog.String("key", u.keyID),
		slog.Int64("events", u.events.Load()), slog.String("ended", endingNames[u.ending.Load()]))
}
