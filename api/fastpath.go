package api

import (
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"fingerpost/api/gate"
	"fingerpost/api/web"
	"fingerpost/resolver"
)

// The fast path. The gate hands a plain resolve request to AnswerPlain, a plain question about a token, and on a gateway
// listener a plain check (fastcheck.go), before the HTTP library sees it: parsing the request into the library's form and writing the answer out of it takes longer than the resolve itself (see
// BenchmarkServeHit and BenchmarkServeHitByHandler).
//
// All other requests go through the library and Server.resolve: other methods, queries and headers, bodies, pipelined
// requests, sampled requests while there is a collector, bad keys, answers other than 200 and 304, and the first request
// of a connection, which tells the library that the connection is in use. Server.resolve answers the same bytes;
// TestFastPathIsTheHandler and FuzzFastPath compare them.

// fast reports whether the fast path may be used now.
func (s *Server) fast() bool {
	return !s.o.NoFastPath && !s.o.AccessLogResolve && s.ready.refusal() == nil && !s.gate.Stopping()
}

// AnswerPlain implements gate.Resolver. If it leaves the request to the library, the handler finds the resolver's
// answer in the connection.
func (s *Server) AnswerPlain(gc *gate.Conn, q *gate.Question) (response []byte) {
	c, ok := gc.State.(*conn)
	if !ok || !s.fast() || q.Sampled && s.o.Trace != nil {
		return nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			s.o.Logger.Error("fast path panicked, the handler takes over", "cause", cause, "stack", string(debug.Stack()))
			response = nil
		}
	}()
	switch {
	case c.services == Gateway:
		return s.answerCheck(c, q)
	case q.Key == nil:
		return s.answerMe(c, q)
	}
	now := q.At
	key, failure := s.keys.verify(q.Key, now)
	if failure != keyGood || key.Allow&resolvePermissions == 0 {
		return nil
	}
	shown := s.resolver.Published()
	answer, err := s.resolver.Resolve(q.Domain, resolver.Nested)
	if err != nil {
		return nil
	}
	if web.RefusedAnswer(key, answer) != nil || !s.fast() {
		c.asked = asked{answer, shown, now}
		return nil
	}
	counts := &s.metrics.resolved[c.shard]
	if q.ETags != nil && web.MatchesETag(q.ETags, answer.ETag) {
		response = s.appendPlainHead(c.body[:0], c, q, answer, shown, http.StatusNotModified, now)
		counts.notModified.observe(time.Since(now))
	} else {
		response = s.appendPlainHead(c.body[:0], c, q, answer, shown, http.StatusOK, now)
		response = append(append(response, resolveBegin...), answer.Data...)
		response = web.EndEnvelope(response, now)
		counts.ok.observe(time.Since(now))
	}
	if cap(response) <= keptBody {
		c.body = response
	}
	return response
}

// appendPlainHead appends the head of a 200 or 304, with the fields in the library's order.
func (s *Server) appendPlainHead(dst []byte, c *conn, q *gate.Question, answer *resolver.Answer,
	shown *resolver.Published, status int, now time.Time) []byte {
	date := web.SecondOf(now).Date[:]
	if status == http.StatusOK {
		dst = append(append(dst, "HTTP/1.1 200 OK\r\nDate: "...), date...)
		dst = append(dst, "\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(resolveBegin)+len(answer.Data)+web.EnvelopeEnd), 10)
	} else {
		dst = append(append(dst, "HTTP/1.1 304 Not Modified\r\nDate: "...), date...)
	}
	dst = append(dst, "\r\nX-Request-Id: "...)
	dst = s.ids.Append(dst, q.ID, &c.ids)
	dst = append(dst, "\r\nVary: "+web.VaryPlatformText+"\r\nETag: "...)
	dst = append(dst, answer.ETag...)
	dst = append(dst, "\r\nCache-Control: "...)
	dst = append(dst, s.cacheControl...)
	dst = s.appendPosition(dst, shown, now)
	return append(dst, "\r\n\r\n"...)
}
