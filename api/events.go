package api

import (
	"errors"
	"strconv"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver/catalog"
)

const (
	eventsPath        = "/api/platform/events"
	contentEvents     = "text/event-stream" // UTF-8 by definition
	headerLastEventID = "Last-Event-ID"
)

var (
	refuseStreams    = &refusal{Code: catalog.CodeUnavailable, Message: "this node has as many event streams open as it may"}
	refuseKeyStreams = &refusal{Code: catalog.CodeUnavailable, Message: "this key has as many event streams open on this node as a key may"}
	refuseStopping   = &refusal{Code: catalog.CodeUnavailable, Message: "the service is shutting down"}
)

// streamEvents answers GET /events (contract http.md 3.5) with Server-Sent Events, as the WHATWG's HTML standard
// describes them. The library is done with the connection then: a subscriber has it.
func (s *Server) streamEvents(r *request) error {
	after, resumes, err := lastEventID(&r.ctx.Request.Header)
	if err != nil {
		return err
	}
	if err := r.permit(); err != nil {
		return err
	}
	if err := s.streams.room(r.key.ID); err != nil {
		return err
	}
	h := &r.ctx.Response.Header
	h.SetContentType(contentEvents)
	h.Set("X-Accel-Buffering", "no") // nginx would keep events back until it has 4 KiB of them
	if r.ctx.IsHead() {
		headChunked(r.ctx)
		return nil
	}
	c := connOf(r.ctx)
	if c == nil {
		return errors.New("stream events: the connection is not one of this server's")
	}
	u := newSubscriber(s, c, r)
	if resumes {
		u.cursor = s.resolver.Events().After(after)
	} else {
		var revision uint64
		u.cursor, revision = s.resolver.Events().Newest()
		// An id without data is no event, but the client comes back with it, even if nothing happens until then.
		u.out.id(revision)
	}
	r.ctx.HijackSetNoResponse(true)
	r.ctx.Hijack(u.take)
	return nil
}

// maxEventIDDigits is the length of the largest revision.
const maxEventIDDigits = 20

// lastEventID reads the header with which a client resumes. Numbers that are too large are of no feed of ours: the
// answer to them is a reset, as it is to any other revision that is not known.
func lastEventID(h *fasthttp.RequestHeader) (after uint64, given bool, err error) {
	values := h.PeekAll(headerLastEventID)
	if len(values) > 1 {
		return 0, false, invalidField(headerLastEventID, "must be given once")
	}
	if len(values) == 0 || len(values[0]) == 0 {
		return 0, false, nil
	}
	for _, c := range values[0] {
		if c < '0' || c > '9' || len(values[0]) > maxEventIDDigits {
			return 0, false, invalidField(headerLastEventID, "must be the id of an event: a decimal number of up to 20 digits")
		}
	}
	after, _ = strconv.ParseUint(string(values[0]), 10, 64) // out of range it is the largest number
	return after, true, nil
}
