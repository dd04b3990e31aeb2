package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"fingerpost/resolver/catalog"
)

// A lease says which authority may write. It is one key of the bucket, renewed by compare-and-set. Nobody reads a clock
// of another machine: the lease has run out for an observer once its revision has not moved for the time to live.
type lease struct {
	Holder   string `json:"holder"`           // AuthorityOptions.Holder; "": it was given back
	Former   string `json:"former,omitempty"` // who has given it back
	Instance string `json:"instance"`         // random, of the process
	Version  string `json:"version"`          // of fingerpost
	TTL      string `json:"ttl"`              // a Go duration
	Position string `json:"position"`         // of the authority, for the edges' lag

	seq uint64
}

// Times of the lease.
const (
	DefaultTTL = 10 * time.Second
	renewals   = 5 // within the time to live
	// A third of the time to live before the end of its lease, an authority stops writing: a write that has begun must
	// have ended when a successor starts.
	marginOf = 3
)

func parseLease(r record) (l lease, err error) {
	if err := json.Unmarshal(r.value, &l); err != nil {
		return l, fmt.Errorf("the lease cannot be read: %w", err)
	}
	l.seq = r.seq
	return l, nil
}

// ttl is the time to live that the holder promised, or the own one where it is longer.
func (l *lease) ttl(own time.Duration) time.Duration {
	d, _ := time.ParseDuration(l.TTL)
	return max(d, own)
}

// A HeldError says that another authority holds the lease.
type HeldError struct {
	Cluster, Holder, Version string
	Lost                     bool // this authority had it
}

// Error names the holder and what would be right.
func (e *HeldError) Error() string {
	if e.Lost {
		return fmt.Sprintf("cluster %s has another authority now, %s in its log (version %s): this one writes no more; end "+
			"one of the two", e.Cluster, e.Holder, e.Version)
	}
	return fmt.Sprintf("cluster %s has an authority already, %s in its log (version %s): end it, or start this one with "+
		"--take-over, which waits until that one has been silent for its lease", e.Cluster, e.Holder, e.Version)
}

// errFenced says that somebody else has published into the bucket.
var errFenced = errors.New("somebody else has written into the bucket")

// A watchedLease is a lease with when its revision was first seen, by the clock of this process.
type watchedLease struct {
	lease
	since time.Time
}

// see takes a lease that was read now.
func (w *watchedLease) see(l lease, now time.Time) {
	if w.since.IsZero() || l.seq != w.seq {
		w.since = now
	}
	w.lease = l
}

// free reports whether an authority may take the lease: it was given back, it is its own, or an earlier process on the
// same data folder held it, which the lock of that folder shows to be gone.
func (w *watchedLease) free(now time.Time, holder, instance string, ttl time.Duration) bool {
	return w.seq == 0 || w.Holder == "" || w.Instance == instance || w.Holder == holder || now.Sub(w.since) > w.ttl(ttl)
}

// hold renews the lease until ctx ends.
func (a *Authority) hold(ctx context.Context) {
	tick := time.NewTicker(a.o.TTL / renewals)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := a.renew(ctx); err != nil && ctx.Err() == nil {
			a.mu.Lock()
			a.lapsing = err
			a.mu.Unlock()
		}
		wake(a.woken)
	}
}

// leaseProblem returns why the last renewal has failed, once.
func (a *Authority) leaseProblem() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.lapsing
	a.lapsing = nil
	return err
}

// renew renews the lease if this authority holds it. Its condition is that of the lease alone: what is published into
// the stream at the same time does not matter.
func (a *Authority) renew(ctx context.Context) error {
	a.renewing.Lock()
	defer a.renewing.Unlock()
	if a.lease.Instance != a.instance {
		return nil
	}
	return a.putLease(ctx, jetstream.WithExpectLastSequencePerSubject(a.lease.seq))
}

// takeLease takes the lease if it is free and nobody has published since the bucket was read. held is what was read.
func (a *Authority) takeLease(ctx context.Context, held watchedLease) error {
	a.renewing.Lock()
	defer a.renewing.Unlock()
	if held.seq != 0 && held.Instance != a.instance {
		had := a.lease.Instance == a.instance
		a.lease.see(held.lease, a.now())
		if !a.lease.free(a.now(), a.o.Holder, a.instance, a.o.TTL) || had && held.Holder != "" {
			return &HeldError{Cluster: a.o.Cluster, Holder: held.Holder, Version: held.Version, Lost: had}
		}
	}
	former := cmp.Or(held.Holder, held.Former)
	if err := a.putLease(ctx, jetstream.WithExpectLastSequence(a.tail.end())); err != nil {
		return err
	}
	_ = a.leaseProblem()
	if former != "" && former != a.o.Holder && a.o.TookOver != nil {
		a.o.TookOver()
	}
	return nil
}

// putLease writes the lease on a condition. An answer that comes when the lease has ended is not waited for. The caller
// holds renewing.
func (a *Authority) putLease(ctx context.Context, condition jetstream.PublishOpt) error {
	began, lasts := a.now(), a.o.TTL-a.o.TTL/marginOf
	value, err := json.Marshal(lease{Holder: a.o.Holder, Instance: a.instance, Version: a.o.Version, TTL: a.o.TTL.String(),
		Position: a.o.Tree.Position().String()})
	if err != nil {
		return err
	}
	seq, err := a.leaseBucket.send(ctx, a.leaseBucket.msg(message{keyLease, value}), lasts, condition)
	if err != nil {
		return err
	}
	a.tail.add(seq, 1)
	a.lease.see(lease{Holder: a.o.Holder, Instance: a.instance, seq: seq}, began)
	a.mu.Lock()
	a.leaseEnds = began.Add(lasts)
	a.mu.Unlock()
	return tell(a.leaseBucket.nc, a.o.Cluster, seq)
}

// giveBack ends the lease, so that another authority can start at once.
func (a *Authority) giveBack() {
	if a.stopHolding != nil {
		a.stopHolding()
		a.holding.Wait()
	}
	a.mu.Lock()
	a.leaseEnds = time.Time{}
	a.mu.Unlock()
	if a.fresh || !a.nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	value, _ := json.Marshal(lease{Former: a.o.Holder, Instance: a.instance, Version: a.o.Version})
	_ = a.put(ctx, []message{{keyLease, value}}) // otherwise it runs out
}

// MayWrite returns nil while this node may write: an UNAVAILABLE *catalog.Error once it has lost its lease, or cannot
// know whether it has it.
func (a *Authority) MayWrite() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var held *HeldError
	switch {
	case errors.As(a.problem, &held):
		return &catalog.Error{Code: catalog.CodeUnavailable,
			Message: "another node is the authority of this cluster now; writes go there"}
	case !a.o.OwnServer && !a.now().Before(a.leaseEnds):
		if old := (*VersionError)(nil); errors.As(a.problem, &old) {
			return &catalog.Error{Code: catalog.CodeUnavailable, Message: "writes are refused: " + old.Error()}
		}
		return &catalog.Error{Code: catalog.CodeUnavailable,
			Message: "the lease of this cluster's authority cannot be renewed: writes are refused until NATS can be reached"}
	}
	return nil
}
