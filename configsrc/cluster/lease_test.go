package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

const shortTTL = time.Second

// second is another authority for the cluster of r, on the same server.
func (r *rig) second(o AuthorityOptions) (*Authority, *tree) {
	x := newTree()
	o.Tree, o.TTL = x, shortTTL
	if o.Holder == "" {
		o.Holder = "there:/data"
	}
	o.Connection = ConnectionTo(r.supervisor)
	a := r.newAuthority(o)
	x.told = a.Committed
	return a, x
}

func TestSecondAuthorityIsRefused(t *testing.T) {
	r := newRig(t, "fra1")
	r.stop()
	r.startAuthority(AuthorityOptions{TTL: shortTTL})
	second, _ := r.second(AuthorityOptions{})
	err := second.Claim(t.Context())
	var held *HeldError
	if !errors.As(err, &held) || !strings.Contains(err.Error(), "here:"+r.dir) || !strings.Contains(err.Error(), "--take-over") {
		t.Errorf("the second authority got %v", err)
	}
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	r.reaches(r.edge("fra1"))
}

func TestLeaseThatWasGivenBackIsFree(t *testing.T) {
	r := newRig(t)
	r.stop()
	r.startAuthority(AuthorityOptions{TTL: time.Hour})
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	testrig.Eventually(t, "it is at work", func() bool { return r.authority.Status(nil).Published == r.tree.Position().String() })
	r.stop()
	ctx, cancel := context.WithTimeout(t.Context(), testrig.Patience)
	defer cancel()
	tookOver := 0
	for range 2 { // the second time the lease was its own
		second, _ := r.second(AuthorityOptions{TookOver: func() { tookOver++ }})
		if err := second.Claim(ctx); err != nil {
			t.Error(err)
		}
		run(t, second.Run)()
	}
	if tookOver != 1 {
		t.Errorf("it took over %d times", tookOver)
	}
}

// TestFenceStopsTheFormerAuthority lets an authority sleep through its lease. It must have stopped writing before its
// successor starts, and must publish nothing afterwards.
func TestFenceStopsTheFormerAuthority(t *testing.T) {
	r := newRig(t, "fra1")
	r.stop()
	former, tree := r.second(AuthorityOptions{Holder: "former:/data"})
	former.o.OwnServer = false
	awake, sleep := context.WithCancel(t.Context())
	if err := former.Claim(awake); err != nil {
		t.Fatal(err)
	}
	if err := former.MayWrite(); err != nil {
		t.Fatal(err)
	}
	tree.commit(map[string]string{"acme.hcl": "former"})
	if err := former.work(t.Context()); err != nil {
		t.Fatal(err)
	}
	sleep() // nothing renews its lease
	next, successor := r.second(AuthorityOptions{TakeOver: true})
	if err := next.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	var refused *catalog.Error
	if err := former.MayWrite(); !errors.As(err, &refused) || refused.Code != catalog.CodeUnavailable {
		t.Errorf("the former authority may still write: %v", err)
	}
	successor.commit(map[string]string{"acme.hcl": "successor"})
	run(t, next.Run)
	e := r.edge("fra1")
	testrig.Eventually(t, "the edge has the successor's tree", func() bool { return successor.same(e.tree) })

	tree.commit(map[string]string{"acme.hcl": "late"})
	if err := former.publish(t.Context(), former.takePending().files); !errors.Is(err, errFenced) {
		t.Errorf("the former authority published: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go former.hold(ctx) // it is awake again
	go func() { ended <- former.Run(ctx) }()
	testrig.Eventually(t, "it says that it is none any more", func() bool { return former.Status(nil).Lost })
	if err := former.MayWrite(); err == nil || !strings.Contains(err.Error(), "another node") {
		t.Errorf("it says %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	successor.commit(map[string]string{"acme.hcl": "last"})
	testrig.Eventually(t, "the edge has the successor's last tree", func() bool { return successor.same(e.tree) })
}

func TestRestartOnTheSameFolderNeedsNoWait(t *testing.T) {
	r := newRig(t)
	r.tree.commit(map[string]string{"acme.hcl": "one"})
	again := r.newAuthority(AuthorityOptions{TTL: time.Hour})
	r.tree.told = again.Committed
	if err := again.Claim(t.Context()); err != nil { // it would last an hour
		t.Fatal(err)
	}
}

func TestAuthorityStartsWithoutNATS(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	x := newTree()
	a := NewAuthority(AuthorityOptions{Cluster: "test", Connection: Connection{URLs: []string{"nats://127.0.0.1:1"}}, Tree: x, Logger: quiet(), Holder: "here"})
	if err := a.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.MayWrite(); err == nil {
		t.Error("it may write although it cannot have the lease")
	}
	run(t, a.Run)
	if s := a.Status(nil); s.Problem == "" || s.Connected {
		t.Errorf("its status is %+v", s)
	}
}
