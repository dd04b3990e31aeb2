package api

import (
	"strconv"
	"time"

	"fingerpost/api/gate"
	"fingerpost/api/gateway"
	"fingerpost/api/web"
	"fingerpost/resolver"
)

const meBegin = web.EnvelopeBegin + gateway.MeMessage + web.EnvelopeData

// answerMe is AnswerPlain for GET /api/auth/me: it answers for tokens that were verified before. What the query has
// besides a plain domain, other tokens and refusals are for the handler.
func (s *Server) answerMe(c *conn, q *gate.Question) (response []byte) {
	domain, plain := gateway.PlainDomain(&q.Check)
	if !plain {
		return nil
	}
	now, shown := q.At, s.resolver.Published()
	answer, err := s.resolver.Resolve(domain, resolver.Tokens)
	if err != nil {
		return nil
	}
	var user *gateway.Identity
	if answer.Code == "" {
		user = s.rooms.gateway.Known(answer, q.Check.Authorization, now)
	}
	if user == nil || !s.fast() {
		c.asked = asked{answer, shown, now}
		return nil
	}
	response = append(append(c.body[:0], "HTTP/1.1 200 OK\r\nDate: "...), web.SecondOf(now).Date[:]...)
	response = append(response, "\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: "...)
	response = strconv.AppendInt(response, int64(len(meBegin)+len(user.Data())+web.EnvelopeEnd), 10)
	response = append(response, "\r\nX-Request-Id: "...)
	response = s.ids.Append(response, q.ID, &c.ids)
	response = s.appendPosition(response, shown, now)
	response = append(response, "\r\nCache-Control: no-store\r\n"...)
	response = append(user.AppendMeLines(response, answer.Slug), "\r\n"...)
	response = append(append(response, meBegin...), user.Data()...)
	response = web.EndEnvelope(response, now)
	if cap(response) <= keptBody {
		c.body = response
	}
	s.metrics.told.observe(time.Since(now))
	return response
}
