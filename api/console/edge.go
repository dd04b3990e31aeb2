package console

import (
	"context"
	"crypto/subtle"
	"net/http"
	"time"

	"fingerpost/api/login"
	"fingerpost/resolver/catalog"
)

// At an edge of a cluster, people sign in by the authority: it asks the provider, has the client secret, and judges the
// rules. It makes the key of the session, too, which the edge sends with each forwarded request, like the keys of the
// files. So an edge cannot make up a person, and holds what lets a person in as long as that person's session lasts.

var noSignIn = &login.Error{Status: http.StatusNotFound, Message: "The authority of the cluster signs nobody in."}

// BeginAtEdge begins a flow of a browser at an edge; c is the console of the authority. The error is a *login.Error.
func (c *Console) BeginAtEdge(ctx context.Context, s login.Start) (address, cookie string, err error) {
	if c.o.SignIn.Desk == nil {
		return "", "", noSignIn
	}
	if _, wrong := catalog.ParsePublicURL(s.PublicURL); wrong != "" || len(s.PublicURL) > maxEdgeURL {
		return "", "", &login.Error{Status: http.StatusServiceUnavailable,
			Message: "The --public-url of the edge is not one: the provider could not send browsers back."}
	}
	return c.o.SignIn.Desk.Begin(ctx, s)
}

// maxEdgeURL bounds what a flow keeps of an edge, in bytes.
const maxEdgeURL = 300

// FinishAtEdge ends a flow of a browser at an edge. The session is one of c, which lists it, bounds it, and may end it.
// The person has no KeyText if no rule of the login lets the person read. The error is a *login.Error.
func (c *Console) FinishAtEdge(ctx context.Context, back login.Callback) (p *login.Person, returnTo string, err error) {
	if c.o.SignIn.Desk == nil {
		return nil, "", noSignIn
	}
	if p, returnTo, err = c.o.SignIn.Desk.Finish(ctx, back); err != nil {
		return nil, "", err
	}
	s, err := c.admit(p, place{edge: true})
	if s == nil || err != nil {
		return p, returnTo, err
	}
	admitted := *p
	admitted.KeyText = s.text
	return &admitted, returnTo, nil
}

// EndAtEdge ends the session at an edge whose key has a text, if there is one.
func (c *Console) EndAtEdge(text string) {
	for _, s := range c.sessions.list("") {
		if s.edge && subtle.ConstantTimeCompare([]byte(s.text), []byte(text)) == 1 {
			c.sessions.end(s)
		}
	}
}

// byAuthority reports whether the authority of the cluster has made the session's key.
func (c *Console) byAuthority(s *session) bool { return c.o.Edge && s.person != nil }

// confirmEvery is how often an edge asks the authority whether a session that is in use goes on. Requests that are
// forwarded anyway tell it at once.
const confirmEvery = time.Minute

// askAuthority asks the authority about a session; its answer ends the session, see watchedCalls. No page waits for it.
func (c *Console) askAuthority(s *session) {
	_, _ = c.client(s, "").AuditPage(context.Background(), query("limit", "1"))
}

// watchedCalls are the calls of the API of a session at an edge. The session ends when the authority refuses its key:
// it has ended the session, or was restarted.
type watchedCalls struct {
	c *Console
	s *session
}

// RoundTrip implements http.RoundTripper.
func (w watchedCalls) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := w.c.o.API.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusUnauthorized {
		w.c.sessions.endBecause(w.s, "authority")
	}
	return res, err
}
