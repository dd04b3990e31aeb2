package cluster

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// Claim takes the lease, and has it renewed until ctx or Run ends. Another authority that is alive is a *HeldError at
// once, or, with TakeOver, something to wait for. A server that cannot be reached is no error: Run goes on trying, and
// until then MayWrite says no.
func (a *Authority) Claim(ctx context.Context) error {
	if err := a.open(); err != nil {
		return err
	}
	if err := a.claim(ctx); err != nil {
		return err
	}
	ctx, a.stopHolding = context.WithCancel(ctx)
	a.holding.Go(func() { a.hold(ctx) })
	return nil
}

func (a *Authority) claim(ctx context.Context) error {
	// A live holder renews its lease several times within its time to live, so its life shows well before the end.
	tried := a.now()
	var first uint64
	for {
		err := a.know(ctx)
		var held *HeldError
		switch {
		case err == nil:
			a.noteProblem(nil)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &held):
			if first == 0 {
				first = a.lease.seq
				a.o.Logger.Info("another authority may be alive: watching its lease", "holder", held.Holder, "cluster", a.o.Cluster)
			}
			if a.lease.seq != first && !a.o.TakeOver {
				return held
			}
		case isForGood(err):
			return err
		case first == 0 && a.now().Sub(tried) > time.Second:
			a.noteProblem(err)
			return nil // serve without NATS
		}
		a.noteProblem(err)
		a.fresh = true
		if err := pause(ctx, min(a.o.TTL/(4*renewals), time.Second)); err != nil {
			return err
		}
	}
}

// isForGood reports whether only an operator can solve a problem.
func isForGood(err error) bool {
	return errors.Is(err, errForeign) || errors.Is(err, errPayload) || strings.Contains(err.Error(), "of a newer release")
}

// know reads the bucket, which it makes if there is none, and takes the lease.
func (a *Authority) know(ctx context.Context) error {
	if err := errors.Join(checkVersion(a.nc), checkPayload(a.nc)); err != nil {
		return err
	}
	a.connects = a.nc.Stats().Reconnects
	a.tail.forget()
	st, err := a.bucket.state(ctx)
	if errors.Is(err, errNoBucket) {
		if err = a.bucket.make(ctx); err == nil {
			st, err = a.bucket.state(ctx)
		}
	}
	if err == nil && !st.batches {
		err = a.bucket.allowBatches(ctx)
	}
	if err != nil {
		return err
	}
	a.sent, a.root, a.strays, a.marked = map[string]Sum{}, Root{}, nil, marker{}
	end := st.last
	var held watchedLease
	if _, err := a.bucket.read(ctx, 1, math.MaxUint64, func(r record) error {
		end = max(end, r.seq)
		if r.gone {
			return nil
		}
		a.meet(r, &held)
		return nil
	}); err != nil {
		return err
	}
	a.tail.found(end)
	if err := a.takeLease(ctx, held); err != nil {
		return err
	}
	a.fresh, a.compareAt = false, time.Time{}
	return nil
}

// meet takes a message of the bucket.
func (a *Authority) meet(r record, held *watchedLease) {
	switch {
	case r.key == keyLease:
		if l, err := parseLease(r); err == nil {
			held.lease = l
		}
	case r.key == keyMarker:
		a.marked, _ = parseMarker(r.value) // one that cannot be read is replaced
		a.marked.seq = r.seq
	case strings.HasPrefix(r.key, prefixFile):
		e, err := parseEntry(r.key, r.value)
		if err == nil {
			var f catalog.TreeFile
			if f, err = e.unpack(); err == nil {
				a.sent[f.Path] = e.sum
				a.root.Add(e.sum)
				return
			}
		}
		a.strays = append(a.strays, r.key) // damaged: it is put again, or removed
	default:
		a.strays = append(a.strays, r.key)
	}
}
