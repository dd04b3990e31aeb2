package trace

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// An ID names a span in its trace, as traceparent carries it.
type ID struct {
	Trace   [16]byte
	Span    [8]byte
	Sampled bool
}

// ParseParent reads a traceparent (W3C Trace Context). It reports false for a value that must be ignored: one of another
// form, of version ff, or with an id that is zero.
func ParseParent(b []byte) (id ID, ok bool) {
	const v0 = len("00-") + 32 + 1 + 16 + len("-00")
	if len(b) < v0 || b[2] != '-' || b[35] != '-' || b[52] != '-' || bytes.ContainsAny(b[:v0], "ABCDEF") {
		return ID{}, false
	}
	var version, flags [1]byte
	for _, part := range []struct{ to, hex []byte }{
		{version[:], b[:2]}, {id.Trace[:], b[3:35]}, {id.Span[:], b[36:52]}, {flags[:], b[53:v0]},
	} {
		if _, err := hex.Decode(part.to, part.hex); err != nil {
			return ID{}, false
		}
	}
	if version[0] == 0xff || id.Trace == [16]byte{} || id.Span == [8]byte{} ||
		len(b) > v0 && (version[0] == 0 || b[v0] != '-') { // a later version may have more fields
		return ID{}, false
	}
	id.Sampled = flags[0]&1 != 0
	return id, true
}

// Parent returns the id as a traceparent.
func (id ID) Parent() string {
	flags := 0
	if id.Sampled {
		flags = 1
	}
	return fmt.Sprintf("00-%x-%x-%02x", id.Trace, id.Span, flags)
}

// TraceID returns the trace's id in hex.
func (id ID) TraceID() string { return hex.EncodeToString(id.Trace[:]) }

// SpanID returns the span's id in hex.
func (id ID) SpanID() string { return hex.EncodeToString(id.Span[:]) }

// A Kind says which side of a call a span is.
type Kind uint8

// The kinds, with their numbers in OTLP.
const (
	Internal Kind = iota + 1
	Server
	Client
)

// A Span is a step of a traced request, from its start to End. All methods may be called on nil. Those that change the
// span are for the goroutine that works on the step, and do nothing once it has ended; Child, ChildAt, Later, Cause and
// ID are for any goroutine at any time.
type Span struct {
	id         ID
	cause      ID   // the parent, or what led to it
	linked     bool // cause is no parent
	to         *Exporter
	kind       Kind
	name       string
	begun      time.Time
	attributes []byte // as OTLP has them
	failed     bool
	ended      time.Time // zero: not yet
}

type contextKey struct{}

// Into returns a context with the span; ctx itself for a nil span.
func Into(ctx context.Context, s *Span) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, s)
}

// From returns the context's span, nil if there is none.
func From(ctx context.Context) *Span {
	s, _ := ctx.Value(contextKey{}).(*Span)
	return s
}

// Start begins a child of the context's span, and returns a context with it. Without a span in the context it returns
// ctx and nil.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	s := From(ctx).Child(name)
	return Into(ctx, s), s
}

// Begin begins a step that another process, or another span of this one, waits for. It returns nil if e is nil or the
// parent is not sampled.
func (e *Exporter) Begin(parent ID, kind Kind, name string, at time.Time) *Span {
	if e == nil || !parent.Sampled {
		return nil
	}
	s := &Span{to: e, id: parent, cause: parent, kind: kind, name: name, begun: at, attributes: make([]byte, 0, 512)}
	_, _ = rand.Read(s.id.Span[:]) // never fails
	return s
}

// Child begins a step of s.
func (s *Span) Child(name string) *Span { return s.ChildAt(name, time.Now()) }

// ChildAt is Child for a step that began at another time.
func (s *Span) ChildAt(name string, at time.Time) *Span {
	if s == nil {
		return nil
	}
	return s.to.Begin(s.id, Internal, name, at)
}

// Later begins work that s led to but did not wait for: the root of a trace of its own, with a link to s.
func (s *Span) Later(name string) *Span {
	later := s.Child(name)
	if later != nil {
		later.linked = true
		_, _ = rand.Read(later.id.Trace[:])
	}
	return later
}

// Cause returns what Later needs of s, for a queue that keeps it long after s has ended.
func (s *Span) Cause() *Span {
	if s == nil {
		return nil
	}
	return &Span{id: s.id, to: s.to, ended: s.begun}
}

// Calls says that the step is a call of another process.
func (s *Span) Calls() *Span {
	if s != nil {
		s.kind = Client
	}
	return s
}

// ID returns the span's id, the zero ID for nil.
func (s *Span) ID() ID {
	if s == nil {
		return ID{}
	}
	return s.id
}

// open reports whether the step goes on.
func (s *Span) open() bool { return s != nil && s.ended.IsZero() }

// Set adds an attribute.
func (s *Span) Set(key, value string) {
	if s.open() {
		s.attributes = appendAttribute(s.attributes, key, "stringValue", quote(value))
	}
}

// SetInt adds an attribute that is a number.
func (s *Span) SetInt(key string, value int64) {
	if s.open() {
		s.attributes = appendAttribute(s.attributes, key, "intValue", quote(strconv.FormatInt(value, 10)))
	}
}

// Fail says that the step failed. Why is for the log, which may have what a collector must not get.
func (s *Span) Fail() {
	if s.open() {
		s.failed = true
	}
}

// End ends the step and hands it to the exporter. Further calls do nothing.
func (s *Span) End() { s.EndAt(time.Now()) }

// EndWith ends the step, as a failed one unless err is nil.
func (s *Span) EndWith(err error) {
	if err != nil {
		s.Fail()
	}
	s.End()
}

// EndAt is End for a step that ended at another time.
func (s *Span) EndAt(at time.Time) {
	if s.open() {
		s.ended = at
		s.to.put(s)
	}
}
