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
// gateway does. Tokens and denials are for the handler.
func (s *Server) answerCheck(c *conn, q *gate.Question) (response []byte) {
	if c.outside || bytes.IndexByte(q.Check.Query, '#') >= 0 {
		return nil
	}
	now := q.At
	p := gateway.ReadParams(q.Check.Query)
	query, err := p.Query(http.StatusForbidden, nil)
	if err != nil || query.Rule == gateway.Required || query.Rule == gateway.Optional && q.Check.Authorized {
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
	if answer.Code != "" || !s.fast() {
		c.asked = asked{answer: answer, at: now}
		return nil
	}
	response = append(append(c.body[:0], "HTTP/1.1 200 OK\r\nDate: "...), web.SecondOf(now).Date[:]...)
	response = append(response, "\r\nContent-Length: 0\r\nX-Request-Id: "...)
	response = s.ids.Append(response, q.ID, &c.ids)
	response = append(append(append(response, "\r\nVary: "...), gateway.VaryCheck...), "\r\n"...)
	response = append(append(response, answer.Data...), "X-Auth: none\r\n"...)
	if query.Rule == gateway.Optional {
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
