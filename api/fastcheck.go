package api

import (
	"bytes"
	"net/http"
	"time"

	"fingerpost/api/gate"
	"fingerpost/api/gateway"
	"fingerpost/api/web"
	"fingerpost/resolver"
)

// answerCheck is AnswerPlain for a gateway listener: it answers the checks of requests that may pass, as package
// gateway does. Denials, and tokens that were not verified before, are for the handler.
func (s *Server) answerCheck(c *conn, q *gate.Question) (response []byte) {
	if c.outside || bytes.IndexByte(q.Check.Query, '#') >= 0 {
		return nil
	}
	now := q.At
	p := gateway.ReadParams(q.Check.Query)
	query, err := p.Query(http.StatusForbidden, nil)
	hasToken := q.Check.Authorized && query.Rule != gateway.Ignored
	if err != nil || query.Rule == gateway.Required && !hasToken {
		return nil
	}
	domain, ok := query.Host(q.Check.Original, gateway.FirstHost(q.Check.Forwarded), q.Check.Host)
	if !ok {
		return nil
	}
	answer, err := s.resolver.Resolve(domain, resolver.Gateway)
	if err != nil {
		return nil
	}
	var user *gateway.Identity
	if hasToken && answer.Code == "" {
		user = s.rooms.gateway.Known(answer, q.Check.Authorization, now)
	}
	if answer.Code != "" || hasToken && user == nil || !s.fast() {
		c.asked = asked{answer: answer, at: now}
		return nil
	}
	response = append(append(c.body[:0], "HTTP/1.1 200 OK\r\nDate: "...), web.SecondOf(now).Date[:]...)
	response = append(response, "\r\nContent-Length: 0\r\nX-Request-Id: "...)
	response = s.ids.Append(response, q.ID, &c.ids)
	response = append(append(append(response, "\r\nVary: "...), gateway.VaryCheck...), "\r\n"...)
	response = user.AppendLines(append(response, answer.Data...))
	if query.Rule != gateway.Ignored {
		response = append(response, "Cache-Control: no-store\r\n\r\n"...)
	} else {
		response = append(append(append(response, "ETag: "...), answer.ETag...), "\r\nCache-Control: "...)
		response = append(append(response, s.cacheControl...), "\r\n\r\n"...)
	}
	if cap(response) <= keptBody {
		c.body = response
	}
	s.metrics.checked[c.shard].observe(time.Since(now))
	return response
}
