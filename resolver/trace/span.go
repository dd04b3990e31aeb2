package trace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
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
	if len(b) < v0 || b[2] != '-' || b[35] != '-' || b[52] != '-' {
		return ID{}, false
	}
	var version, flags [1]byte
	good := fromHex(version[:], b[:2]) && fromHex(id.Trace[:], b[3:35]) && fromHex(id.Span[:], b[36:52]) &&
		fromHex(flags[:], b[53:55])
	switch {
	case !good || version[0] == 0xff || id.Trace == [16]byte{} || id.Span == [8]byte{},
		len(b) > v0 && (version[0] == 0 || b[v0] != '-'): // a later version may have more fields
		return ID{}, false
	}
	id.Sampled = flags[0]&1 != 0
	return id, true
}

// fromHex decodes lower-case hex; traceparent allows no other.
func fromHex(dst, src []byte) bool {
	for _, c := range src {
		if c >= 'A' && c <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(dst, src)
	return err == nil
}

// Parent returns the id as a traceparent.
func (id ID) Parent() string {
	flags := "-00"
	if id.Sampled {
		flags = "-01"
	}
	return "00-" + id.TraceID() + "-" + id.SpanID() + flags
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

// A Span is a step of a traced request, from its start to End. All methods may be called on nil and from any goroutine.
type Span struct {
	id     ID
	parent [8]byte // zero: none
	link   ID      // what led to it, if that is no parent; zero: none
	to     *Exporter
	kind   Kind
	begun  time.Time

	mu         sync.Mutex // guards what follows, until the span has ended
	name       string
	attributes []attribute
	failure    string
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

// Begin begins the span of a request that came with a traceparent. It returns nil if e is nil or the request is not
// sampled.
func (e *Exporter) Begin(parent ID, kind Kind, name string, at time.Time) *Span {
	if e == nil || !parent.Sampled {
		return nil
	}
	return e.begin(parent, kind, name, at)
}

func (e *Exporter) begin(parent ID, kind Kind, name string, at time.Time) *Span {
	s := &Span{to: e, parent: parent.Span, kind: kind, name: name, begun: at}
	s.id = ID{Trace: parent.Trace, Sampled: true}
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
	return s.to.begin(s.id, Internal, name, at)
}

// Later begins work that s led to but did not wait for: the root of a trace of its own, with a link to s.
func (s *Span) Later(name string) *Span {
	if s == nil {
		return nil
	}
	var root ID
	_, _ = rand.Read(root.Trace[:])
	later := s.to.begin(root, Internal, name, time.Now())
	later.link = s.id
	return later
}

// Cause returns what Later needs of s, for a queue that keeps it long after s has ended.
func (s *Span) Cause() *Span {
	if s == nil {
		return nil
	}
	return &Span{id: s.id, to: s.to}
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

// Set adds an attribute.
func (s *Span) Set(key, value string) { s.add(func() attribute { return text(key, value) }) }

// SetInt adds an attribute that is a number.
func (s *Span) SetInt(key string, value int64) {
	s.add(func() attribute {
		number := value // the address of the parameter would cost an allocation where s is nil
		return attribute{key, attributeValue{Number: &number}}
	})
}

func (s *Span) add(make func() attribute) {
	s.change(func() { s.attributes = append(s.attributes, make()) })
}

// change runs f unless the span has ended.
func (s *Span) change(f func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.IsZero() {
		f()
	}
}

// Fail says that the step failed; text may be empty.
func (s *Span) Fail(text string) { s.change(func() { s.failed, s.failure = true, text }) }

// End ends the step and hands it to the exporter. Further calls do nothing.
func (s *Span) End() { s.EndAt(time.Now()) }

// EndWith ends the step as a failed one unless err is nil. The error's text is not sent: it may have what only the log
// may have.
func (s *Span) EndWith(err error) {
	if err != nil {
		s.Fail("")
	}
	s.End()
}

// EndAt is End for a step that ended at another time.
func (s *Span) EndAt(at time.Time) {
	s.change(func() {
		s.ended = at
		s.to.put(s)
	})
}
