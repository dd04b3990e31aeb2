package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
)

// callTime is how long a call of the API may take: a write waits for its turn, and a test of SMTP settings for a
// server.
const callTime = 30 * time.Second

// api returns a client of the API with the session's key, which acts in the name of its person. It sees projects as
// the proposal has them that the person works in.
func (c *Console) api(s *session) *client.Client { return c.client(s, s.Proposal()) }

// client is like api for one proposal, or with "" for what is live.
func (c *Console) client(s *session, proposal string) *client.Client {
	calls := c.o.API
	if c.byAuthority(s) {
		calls = watchedCalls{c, s}
	}
	return client.New(client.Options{URL: "http://console", Key: s.text, Timeout: callTime, Transport: calls,
		Service: "console", Actor: s.actor, Proposal: proposal, Once: true})
}

// A failure is an answer of the API that is no success, or the console's own refusal. Its Message is for people.
type failure = client.Error

// failureOf returns why a call has failed.
func failureOf(err error) *failure {
	if f, is := errors.AsType[*failure](err); is {
		return f
	}
	return &failure{Status: http.StatusServiceUnavailable,
		Message: "The service does not answer: it is stopping, or overloaded. Nothing is known of what was asked."}
}

// reason is the message of a failed call with what is wrong with each field, as a sentence.
func reason(err error) string {
	f := failureOf(err)
	all := f.Message
	for _, d := range f.Details {
		all += "; " + d.Field + " " + d.Message
	}
	return say.AsSentence(all)
}

// link appends a query to a path; pairs without a value, or with the id 0, are left out.
func link(path string, pairs ...any) string {
	if q := query(pairs...).Encode(); q != "" {
		return path + "?" + q
	}
	return path
}

// pages is the link of the pages of a list, without the number at its end.
func pages(list string, pairs ...any) string {
	return Prefix + list + "?" + query(pairs...).Encode() + "&page="
}

func query(pairs ...any) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if value := say.Text(pairs[i+1]); value != "" && pairs[i+1] != int64(0) {
			q.Set(say.Text(pairs[i]), value)
		}
	}
	return q
}

// number returns a number of a form or query, or def.
func number(text string, def int) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	return def
}

// idOf returns an id of a form or query, 0 if it is none.
func idOf(text string) int64 {
	id, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0
	}
	return int64(id)
}
