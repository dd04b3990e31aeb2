package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// An Answer answers a request of an edge, which is an HTTP request in its wire form, as is the answer. It may be called
// by many goroutines. Its error is answered in no other way than by silence, so it is for requests that may have had an
// effect.
type Answer func(ctx context.Context, request []byte) (answer []byte, err error)

var (
	// ErrAway says that the authority cannot be reached. It has not got the request.
	ErrAway = errors.New("the authority of the cluster cannot be reached")
	// ErrNoAnswer says that the authority has got the request, or may have, and has not answered: nobody knows what came
	// of it.
	ErrNoAnswer = errors.New("the authority of the cluster has not answered: it may have done what was asked")
	// ErrTooLarge says that the request is larger than the NATS server's largest message.
	ErrTooLarge = errors.New("the request is larger than the largest message of the NATS server (max_payload)")
)

// ForwardTime is how long the authority may take to answer a forwarded request.
const ForwardTime = 20 * time.Second

// Headers of the messages of an answer.
const (
	headerMore     = "Fingerpost-More"     // there are more messages
	headerPosition = "Fingerpost-Position" // of the authority once it had answered; in the last message
)

// headerTraceparent, of the message of a request, names the edge's span. The request itself then has no such field.
const headerTraceparent = "traceparent"

// traced returns a request with the traceparent of its message. One that is not well formed is ignored, as elsewhere; so
// the value cannot add anything else to the request.
func traced(request []byte, traceparent string) []byte {
	id, ok := trace.ParseParent([]byte(traceparent))
	line, rest, found := bytes.Cut(request, []byte("\r\n"))
	if !ok || !found {
		return request
	}
	return slices.Concat(line, []byte("\r\n"+headerTraceparent+": "+id.Parent()+"\r\n"), rest)
}

// An authority answers so many forwarded requests at a time, and so many of one edge: an edge that floods it leaves
// places for the others. The requests of an edge wait there for one of its places.
const forwards, forwardsOfEdge = 128, 16

// Forward sends a request to the authority once, and returns its answer. An edge that has reached the position at has
// what the request has changed. Requests wait for the edge's places in rounds by tenant, the key that sends them. Errors
// are ErrAway, ErrNoAnswer and ErrTooLarge.
func (f *Follower) Forward(ctx context.Context, tenant string, request []byte) (answer []byte, at catalog.Position, err error) {
	if !f.nc.IsConnected() {
		return nil, at, ErrAway
	}
	subject := forwardSubject(f.o.Cluster, f.o.Edge)
	if len(request) > int(f.nc.MaxPayload())-len(subject)-256 {
		return nil, at, ErrTooLarge
	}
	ctx, cancel := context.WithTimeout(ctx, ForwardTime)
	defer cancel()
	release, err := f.forwarding.Take(ctx, tenant)
	if err != nil {
		return nil, at, ErrAway
	}
	defer release()
	inbox := f.nc.NewInbox()
	sub, err := f.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, at, ErrAway
	}
	defer sub.Unsubscribe()
	header := nats.Header{}
	if span := trace.From(ctx); span != nil {
		header.Set(headerTraceparent, span.ID().Parent())
	}
	if err := f.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: inbox, Data: request, Header: header}); err != nil {
		return nil, at, ErrAway
	}
	f.mu.Lock()
	f.stats.Forwarded++
	f.mu.Unlock()
	ctx, stop := whileConnected(ctx, f.nc)
	defer stop()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if errors.Is(err, nats.ErrNoResponders) {
			return nil, at, ErrAway // nobody listens, or all places are taken: nobody has begun with it
		}
		if err != nil {
			return nil, at, ErrNoAnswer
		}
		if answer = append(answer, m.Data...); m.Header.Get(headerMore) == "" {
			at, _ = catalog.ParsePosition(m.Header.Get(headerPosition)) // one that cannot be read is not waited for
			return answer, at, nil
		}
	}
}

// carriedReply is the prefix of the reply subjects that the server makes for a request from another account. No client
// may name one.
const carriedReply = "_R_."

// isOwnInbox reports whether the reply subject of a request leads to the inbox of its edge.
func (a *Authority) isOwnInbox(reply, edge string) bool {
	if strings.HasPrefix(reply, carriedReply) {
		return true
	}
	a.sameAccount.Do(func() {
		a.o.Logger.Warn("an edge is in the NATS account of the authority: its key can delete every stream there; "+
			"give each edge an account of its own, see configsrc/cluster/README.md", "edge", edge)
	})
	return strings.HasPrefix(reply, inboxOf(edge)+".")
}

// takeRequest answers a request of an edge.
func (a *Authority) takeRequest(m *nats.Msg) {
	edge := strings.TrimPrefix(m.Subject, forwardSubject(a.o.Cluster, ""))
	if !a.isOwnInbox(m.Reply, edge) {
		a.o.Logger.Warn("a request of an edge is left alone: its reply subject is not the inbox of the edge", "edge", edge,
			"reply", m.Reply)
		return
	}
	got := time.Now()
	if !a.takePlace(edge) { // as with an authority that is away: the edge says 503
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": []string{"503"}}})
		return
	}
	go func() {
		defer a.leavePlace(edge)
		ctx, cancel := context.WithDeadline(context.Background(), got.Add(ForwardTime))
		defer cancel()
		answer, err := a.o.Answer(ctx, traced(m.Data, m.Header.Get(headerTraceparent)))
		if err != nil {
			a.o.Logger.Warn("a request of an edge is left without an answer", "subject", m.Subject, "error", err)
			return
		}
		if err := respond(m, answer, a.o.Tree.Position(), int(a.nc.MaxPayload())-512); err != nil {
			a.o.Logger.Warn("the answer does not reach the edge", "subject", m.Subject, "error", err)
		}
	}()
}

// takePlace reports whether a request of an edge may be answered now. leavePlace must follow.
func (a *Authority) takePlace(edge string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answeringAll == forwards || a.answering[edge] == forwardsOfEdge {
		return false
	}
	a.answeringAll++
	a.answering[edge]++
	a.stats.Forwarded++
	return true
}

func (a *Authority) leavePlace(edge string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answeringAll--
	if a.answering[edge]--; a.answering[edge] == 0 {
		delete(a.answering, edge)
	}
}

// respond sends an answer in messages of at most limit bytes.
func respond(m *nats.Msg, answer []byte, at catalog.Position, limit int) error {
	for {
		part := &nats.Msg{Header: nats.Header{}, Data: answer[:min(limit, len(answer))]}
		answer = answer[len(part.Data):]
		if len(answer) > 0 {
			part.Header.Set(headerMore, "1")
		} else {
			part.Header.Set(headerPosition, at.String())
		}
		if err := m.RespondMsg(part); err != nil {
			return fmt.Errorf("respond: %w", err)
		}
		if len(answer) == 0 {
			return nil
		}
	}
}
