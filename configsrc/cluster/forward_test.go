package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/cluster/natsd"
	"fingerpost/resolver/share"
)

func TestForwarding(t *testing.T) {
	r := newRig(t, "fra1")
	r.stop()
	release := make(chan struct{})
	large := bytes.Repeat([]byte("answer "), 3<<20)
	r.startAuthority(AuthorityOptions{Answer: func(ctx context.Context, request []byte) ([]byte, error) {
		switch string(request) {
		case "large":
			return large, nil
		case "never":
			<-release
			return nil, errors.New("no answer")
		}
		return append([]byte("got "), request...), nil
	}})
	defer close(release)
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	e := r.edge("fra1")
	r.reaches(e)
	got, at, err := e.Forward(t.Context(), "acme", []byte("hello"))
	if err != nil || at != r.tree.Position() || string(got) != "got hello" {
		t.Errorf("the answer is %q, %v", got, err)
	}
	if got, _, err = e.Forward(t.Context(), "acme", []byte("large")); err != nil || !bytes.Equal(got, large) {
		t.Errorf("the large answer has %d bytes, %v", len(got), err)
	}
	if _, _, err := e.Forward(t.Context(), "acme", make([]byte, natsd.MaxPayload)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a request of %d bytes: %v", natsd.MaxPayload, err)
	}

	none := make(chan error, 1)
	go func() {
		_, _, err := e.Forward(t.Context(), "acme", []byte("never"))
		none <- err
	}()
	testrig.Eventually(t, "the request has arrived", func() bool { return r.authority.Stats().Forwarded == 3 })
	p := r.supervisor.PID()
	kill(t, p)
	if err := <-none; !errors.Is(err, ErrNoAnswer) {
		t.Errorf("a request without an answer: %v", err)
	}
	r.reaches(e)
	r.stop()
	if _, _, err := e.Forward(t.Context(), "acme", []byte("hello")); !errors.Is(err, ErrAway) {
		t.Errorf("without an authority: %v", err)
	}
}

// A key with many slow requests leaves places of the edge to other keys.
func TestPlacesOfKeys(t *testing.T) {
	r := newRig(t, "fra1")
	r.stop()
	release := make(chan struct{})
	r.startAuthority(AuthorityOptions{Answer: func(ctx context.Context, request []byte) ([]byte, error) {
		if string(request) == "slow" {
			<-release
		}
		return request, nil
	}})
	r.tree.commit(oneFile(0))
	fra := r.edge("fra1")
	r.reaches(fra)
	answers := make(chan error, 3*forwardsOfEdge)
	for range cap(answers) {
		go func() {
			_, _, err := fra.Forward(t.Context(), "greedy", []byte("slow"))
			answers <- err
		}()
	}
	testrig.Eventually(t, "the others wait", func() bool {
		w := fra.forwarding.Waiting()
		return len(w) == 1 && w[0].Count == cap(answers)-forwardsOfEdge*3/4
	})
	if got, _, err := fra.Forward(t.Context(), "next", []byte("hello")); err != nil || string(got) != "hello" {
		t.Errorf("the other key gets %q, %v", got, err)
	}
	close(release)
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// An edge that has all its places in use waits for one of them, and takes none of another edge. One that does not wait,
// as a changed program would not, is told that the authority is away.
func TestPlacesOfEdges(t *testing.T) {
	r := newRig(t, "fra1", "ams1")
	r.stop()
	release := make(chan struct{})
	r.startAuthority(AuthorityOptions{Answer: func(ctx context.Context, request []byte) ([]byte, error) {
		if string(request) == "slow" {
			<-release
		}
		return request, nil
	}})
	r.tree.commit(oneFile(0))
	fra, ams := r.edge("fra1"), r.edge("ams1")
	r.reaches(fra)
	r.reaches(ams)
	answers := make(chan error, 2*forwardsOfEdge)
	for i := range 2 * forwardsOfEdge {
		go func() {
			_, _, err := fra.Forward(t.Context(), fmt.Sprint("key ", i%4), []byte("slow"))
			answers <- err
		}()
	}
	testrig.Eventually(t, "all places are taken", func() bool { return r.authority.Stats().Forwarded == forwardsOfEdge })
	if got, _, err := ams.Forward(t.Context(), "acme", []byte("hello")); err != nil || string(got) != "hello" {
		t.Errorf("the other edge gets %q, %v", got, err)
	}
	greedy := &Follower{o: fra.o, nc: fra.nc, forwarding: share.New(1)}
	if _, _, err := greedy.Forward(t.Context(), "acme", []byte("more")); !errors.Is(err, ErrAway) {
		t.Errorf("one more than the places: %v", err)
	}
	close(release)
	for range 2 * forwardsOfEdge {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}
