package api

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"fingerpost/resolver"
)

// The fast path. A plain question for resolve is answered by the gate, before the HTTP library sees it: parsing a request
// into the library's form and writing an answer out of it takes longer than all that resolve does (see BenchmarkServeHit
// and BenchmarkServeHitByHandler). Whatever is not plain to see goes the whole way through the library and
// Server.resolve: other methods, queries and headers than the usual ones, bodies, pipelines, bad keys, answers that are no
// 200 or 304, and the first request of a connection, after which the library knows that it is in use. What the fast path answers, Server.resolve would answer with the same bytes; TestFastPathIsTheHandler and
// FuzzFastPath hold it to that.

// plainQuestion is how nearly every request for resolve begins.
const plainQuestion = "GET " + resolvePath + "?domain="

// headFields are what the fast path needs of a request's header. The slices belong to the head.
type headFields struct {
	key, etags, id []byte // the values of X-Platform-Key, If-None-Match and X-Request-Id; nil where there is none
	hosts          int8   // how many
	odd            bool   // something is not plain: the library has the say
}

// note takes up a header field. Names are compared as clients write them; another spelling is odd, and none the worse.
func (f *headFields) note(name, value []byte) {
	value = trimSpace(value)
	if !printable(value) {
		f.odd = true
		return
	}
	switch string(name) {
	case "Host", "host":
		f.hosts++
		f.odd = f.odd || !plainHost(value)
	case "X-PLATFORM-KEY", "X-Platform-Key", "x-platform-key":
		f.once(&f.key, value)
	case "If-None-Match", "if-none-match":
		f.once(&f.etags, value)
	case "X-Request-Id", "X-Request-ID", "x-request-id":
		f.once(&f.id, value)
	case "Connection", "connection":
		f.odd = f.odd || string(value) != "keep-alive"
	case "Accept", "accept", "Accept-Encoding", "accept-encoding", "Accept-Language", "accept-language",
		"User-Agent", "user-agent", "Traceparent", "traceparent", "Tracestate", "tracestate",
		"X-Forwarded-For", "x-forwarded-for", "X-Forwarded-Host", "x-forwarded-host",
		"X-Forwarded-Proto", "x-forwarded-proto", "X-Real-IP", "X-Real-Ip", "x-real-ip":
		// resolve does not depend on them
	default:
		f.odd = true
	}
}

func (f *headFields) once(field *[]byte, value []byte) {
	f.odd = f.odd || *field != nil || len(value) == 0
	*field = value
}

// printable reports whether b is ASCII without control characters. It may say no for what is.
func printable(b []byte) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		if (x|(x-0x20*ones)|(x+ones))&tops != 0 { // not ASCII, below a space, DEL
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}

// plainHost reports whether b is a name or an IPv4 address, and perhaps a port.
func plainHost(b []byte) bool {
	n := 0
	for n < len(b) && wordByte(b[n]) {
		n++
	}
	switch {
	case n == 0:
		return false
	case n == len(b):
		return true
	}
	port := b[n+1:]
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
	}
	return b[n] == ':' && len(port) > 0 && (len(port) < 5 || len(port) == 5 && string(port) <= "65535")
}

// plainDomain returns the query's domain, as it is spelled, where the request line is that of a plain question, else nil.
// A value with escapes or more parameters is no host name, so the resolver refuses it and the handler takes over.
func plainDomain(head []byte) []byte {
	if len(head) < len(plainQuestion) || string(head[:len(plainQuestion)]) != plainQuestion {
		return nil
	}
	value := head[len(plainQuestion):]
	end := bytes.IndexByte(value, ' ')
	if end < 0 || !bytes.HasPrefix(value[end:], []byte(" HTTP/1.1\r\n")) {
		return nil
	}
	return value[:end]
}

// takeFastPath answers the message that has come in, which is a whole head without a body, if that can be done here. An
// error is the connection's.
func (c *conn) takeFastPath(head []byte) (answered bool, err error) {
	f := &c.in.scan.fields
	if c.server == nil || !c.times.served || f.odd || f.hosts != 1 || f.key == nil {
		return false, nil
	}
	domain := plainDomain(head)
	if len(domain) == 0 || !c.server.fast() || !c.life.beginAnswer() {
		return false, nil
	}
	if response := c.server.plainAnswer(c, f, domain); response != nil {
		c.times.endMessage()
		_, err = c.Write(response)
		answered = true
	}
	switch {
	case c.life.endAnswer():
	case !answered:
		c.life.revive() // the library closes it when it has answered
	default:
		c.close()
		if err == nil {
			err = io.EOF
		}
	}
	return answered, err
}

// fast reports whether nothing stands against the fast path at the moment.
func (s *Server) fast() bool {
	return !s.noFastPath && !s.accessLogResolve && !s.loading.Load() && !s.admitted.stopping.Load()
}

// plainAnswer makes the whole response to a question for domain, nil where it has to go through the library; the handler
// then finds the resolver's answer in c. The response is c's memory.
func (s *Server) plainAnswer(c *conn, f *headFields, domain []byte) (response []byte) {
	defer func() {
		if cause := recover(); cause != nil {
			s.log.Error("fast path panicked, the handler takes over", "cause", cause, "stack", string(debug.Stack()))
			response = nil
		}
	}()
	now := time.Now()
	key, failure := s.keys.verify(f.key, now)
	if failure != keyGood || key.Allow&resolvePermissions == 0 {
		return nil
	}
	answer, err := s.resolver.Resolve(domain, resolver.Nested)
	if err != nil {
		return nil
	}
	if refusedAnswer(key, answer) != nil || !s.fast() {
		c.hot.asked = asked{answer, now}
		return nil
	}
	lane := &s.metrics.resolved[c.hot.lane]
	if f.etags != nil && matchesETag(f.etags, answer.ETag) {
		response = s.appendPlainHead(c.hot.body[:0], c, f, answer, http.StatusNotModified, now)
		lane.notModified.observe(time.Since(now))
	} else {
		response = s.appendPlainHead(c.hot.body[:0], c, f, answer, http.StatusOK, now)
		response = s.appendResolved(response, answer, now)
		lane.ok.observe(time.Since(now))
	}
	if cap(response) <= keptBody {
		c.hot.body = response
	}
	return response
}

// appendPlainHead appends the head of a 200 or 304, with the fields in the library's order.
func (s *Server) appendPlainHead(dst []byte, c *conn, f *headFields, answer *resolver.Answer, status int, now time.Time) []byte {
	if status == http.StatusOK {
		dst = append(dst, "HTTP/1.1 200 OK\r\nDate: "...)
		dst = s.clock.appendDate(dst, now)
		dst = append(dst, "\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(resolveBegin)+len(answer.Data)+envelopeEnd), 10)
	} else {
		dst = append(dst, "HTTP/1.1 304 Not Modified\r\nDate: "...)
		dst = s.clock.appendDate(dst, now)
	}
	dst = append(dst, "\r\nX-Request-Id: "...)
	dst = s.ids.append(dst, f.id, c)
	dst = append(dst, "\r\nVary: "+headerVaryPlatform+"\r\nETag: "...)
	dst = append(dst, answer.ETag...)
	dst = append(dst, "\r\nCache-Control: "...)
	dst = append(dst, s.cacheControl...)
	dst = append(dst, "\r\nX-Config-Generation: "...)
	dst = strconv.AppendUint(dst, s.resolver.Generation(), 10)
	return append(dst, "\r\n\r\n"...)
}

// appendResolved appends the body of a 200.
func (s *Server) appendResolved(dst []byte, answer *resolver.Answer, now time.Time) []byte {
	return s.endEnvelope(append(append(dst, resolveBegin...), answer.Data...), now)
}
