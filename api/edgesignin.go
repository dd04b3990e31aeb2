package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/login"
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

// signInPath is where an edge asks its authority to sign a person in. The Pipe of the cluster alone has it.
const signInPath = "/cluster/sign-in"

// maxSignInCall is the most that an edge asks, in bytes: the query of a callback comes in a request's head.
const maxSignInCall = 128 << 10

// A signInCall is what an edge asks, in JSON: one of three.
type signInCall struct {
	Begin  *login.Start    `json:",omitempty"`
	Finish *login.Callback `json:",omitempty"`
	End    string          `json:",omitempty"` // the text of the key of a session that has ended
}

// A signInAnswer is what the authority says to a call, with the results of the desk.
type signInAnswer struct {
	Address, Cookie string        `json:",omitempty"`
	Person          *login.Person `json:",omitempty"`
	ReturnTo        string        `json:",omitempty"`
	Error           *login.Error  `json:",omitempty"`
}

// answerSignIn answers an edge. What an edge says about the browser is believed, and nothing about the person.
func (s *Server) answerSignIn(ctx *fasthttp.RequestCtx, c *conn) error {
	body, err := c.readBody(maxSignInCall, refuseSignInCall)
	if err != nil {
		return err
	}
	var call signInCall
	if json.Unmarshal(body, &call) != nil {
		return refuseSignInCall
	}
	var answer signInAnswer
	switch {
	case s.console == nil:
		err = &login.Error{Status: http.StatusNotFound, Message: "The authority of the cluster has no console."}
	case call.Begin != nil:
		answer.Address, answer.Cookie, err = s.console.BeginAtEdge(context.Background(), *call.Begin)
	case call.Finish != nil:
		answer.Person, answer.ReturnTo, err = s.console.FinishAtEdge(context.Background(), *call.Finish)
	default:
		s.console.EndAtEdge(call.End)
	}
	if failed, is := errors.AsType[*login.Error](err); is {
		answer.Error, err = failed, nil
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(&answer)
	if err != nil {
		return err
	}
	ctx.Response.Header.SetCanonical(web.HeaderCacheControl, web.CacheNever)
	ctx.SetContentType("application/json; charset=utf-8")
	ctx.SetBody(text)
	return nil
}

var refuseSignInCall = &catalog.Error{Code: catalog.CodeValidation,
	Message: "this is no call of an edge about a sign-in"}

// An edgeDesk is the desk of an edge: the authority signs people in. Safe for concurrent use.
type edgeDesk struct {
	edge      Edge
	logins    func() []catalog.Login
	publicURL string // of the edge
	log       *slog.Logger

	mu       sync.Mutex        // guards what follows
	problems map[string]string // why the last begin has failed, by the name of the login
}

// Buttons implements console.Desk.
func (d *edgeDesk) Buttons() (buttons []login.Button) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.logins() {
		buttons = append(buttons, login.Button{Name: l.Name, Label: cmp.Or(l.Label, l.Name), Problem: d.problems[l.Name]})
	}
	return buttons
}

// Begin implements console.Desk.
func (d *edgeDesk) Begin(ctx context.Context, s login.Start) (address, cookie string, err error) {
	if !slices.ContainsFunc(d.logins(), func(l catalog.Login) bool { return l.Name == s.Login }) {
		return "", "", &login.Error{Status: http.StatusNotFound, Message: "No login block has this name."}
	}
	if s.PublicURL = d.publicURL; s.PublicURL == "" {
		return "", "", login.NoPublicURL()
	}
	answer, failed := d.ask(ctx, s.Peer, &signInCall{Begin: &s})
	d.note(s.Login, failed)
	if failed != nil {
		return "", "", failed
	}
	return answer.Address, answer.Cookie, nil
}

// note keeps why a begin has failed, for the button.
func (d *edgeDesk) note(name string, failed *login.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if delete(d.problems, name); failed != nil {
		d.problems[name] = failed.Message
	}
}

// Finish implements console.Desk.
func (d *edgeDesk) Finish(ctx context.Context, c login.Callback) (p *login.Person, returnTo string, err error) {
	answer, failed := d.ask(ctx, c.Peer, &signInCall{Finish: &c})
	switch {
	case failed != nil:
		return nil, "", failed
	case answer.Person == nil:
		return nil, "", notTold
	}
	return answer.Person, answer.ReturnTo, nil
}

// endTime is how long the authority is told that a session has ended. It ends there by itself, too, after 8 hours.
const endTime = 10 * time.Second

// end tells the authority that a session has ended.
func (d *edgeDesk) end(key string) {
	if key == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	if _, failed := d.ask(ctx, netip.Addr{}, &signInCall{End: key}); failed != nil {
		d.log.Warn("the authority does not know that a session at this edge has ended", "error", failed.Message)
	}
}

// ask asks the authority. Peers take turns with the requests that go there.
func (d *edgeDesk) ask(ctx context.Context, peer netip.Addr, call *signInCall) (*signInAnswer, *login.Error) {
	body, err := json.Marshal(call)
	if err != nil {
		return nil, notTold
	}
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: authority\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n", signInPath, len(body))
	raw, err := d.edge.Forward(ctx, "sign-in "+gate.Network(peer).String(), append([]byte(head), body...))
	if err != nil {
		return nil, &login.Error{Status: http.StatusServiceUnavailable, Hint: "Begin again in a moment.",
			Message: "The authority of the cluster, which signs people in, does not answer."}
	}
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		return nil, notTold
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	answer := new(signInAnswer)
	switch {
	case err == nil && res.StatusCode == http.StatusNotFound:
		return nil, &login.Error{Status: http.StatusServiceUnavailable,
			Message: "The authority of the cluster signs nobody in at edges: it is of an older release."}
	case err != nil || res.StatusCode != http.StatusOK || json.Unmarshal(text, answer) != nil:
		return nil, notTold
	}
	return answer, answer.Error
}

var notTold = &login.Error{Status: http.StatusServiceUnavailable, Hint: "Begin again in a moment.",
	Message: "The authority of the cluster could not sign anybody in."}
