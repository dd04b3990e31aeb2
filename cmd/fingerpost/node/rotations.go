package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// rotationRetry is the longest wait for the next look, and the wait after a write that was refused.
const rotationRetry = time.Minute

// A rotationKeeper drops the older secrets of webhooks out of the files when the overlap of their rotation has ended.
type rotationKeeper struct {
	live  *resolver.Resolver
	write ownWriter
	log   *slog.Logger
}

// runRotations ends rotations until ctx ends, on the node that writes.
func (n *service) runRotations(ctx context.Context) (ended chan struct{}) {
	return n.run(func() error {
		if !n.cluster.isEdge() && !n.o.Files.ReadOnly {
			(&rotationKeeper{n.resolver, n.newOwnWriter(), n.o.Logger}).run(ctx)
		}
		return nil
	})
}

// run works until ctx ends. A rotation begins with a change of the files, so it looks again after each.
func (k *rotationKeeper) run(ctx context.Context) {
	for {
		changed := k.live.Events().Changed()
		wait := k.endRotations(ctx, time.Now())
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-changed:
		}
		if timer.Stop(); ctx.Err() != nil {
			return
		}
	}
}

// endRotations ends the rotations that are over, and returns how long to wait for the next one.
func (k *rotationKeeper) endRotations(ctx context.Context, now time.Time) (wait time.Duration) {
	wait = rotationRetry
	ends, err := catalog.RotationEnds(k.live)
	if err != nil {
		return wait // the ledger says so by itself
	}
	for webhook, end := range ends {
		if left := end.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		if err := k.endRotation(ctx, webhook, end); err != nil && ctx.Err() == nil {
			k.log.Warn("the older secrets of a webhook stay for now", "webhook", webhook, "error", err)
		}
	}
	return wait
}

// endRotation drops the older secrets of a webhook, and then the note of their end: after a kill between the two there is
// nothing to drop. A rotation that has begun meanwhile has another end, and keeps both.
func (k *rotationKeeper) endRotation(ctx context.Context, webhook string, end time.Time) error {
	if err := k.write.permitted(); err != nil {
		return err
	}
	_, err := k.write.source.Write(ctx, &catalog.Edit{
		By:      catalog.Author{Door: catalog.DoorAPI, RequestID: catalog.NewUUID().String()},
		Message: "end the rotation of webhook " + webhook,
		Webhook: &catalog.WebhookEdit{Name: webhook, Seals: true,
			Permit: func() error { return k.stillEnds(webhook, end) },
			Change: func(w *catalog.Webhook) error {
				w.EndRotation()
				return nil
			}},
	})
	e := (*catalog.Error)(nil)
	switch {
	case errors.Is(err, errRotatedAgain):
		return nil
	case errors.As(err, &e) && e.Code == catalog.CodeNotFound: // the webhook is gone
	case err != nil:
		return err
	}
	return k.live.RemoveNamed(catalog.RotationEnd(webhook, end))
}

var errRotatedAgain = &catalog.Error{Code: catalog.CodeConflict, Message: "the webhook is rotated again"}

// stillEnds refuses the end of a rotation after which another one has begun.
func (k *rotationKeeper) stillEnds(webhook string, end time.Time) error {
	ends, err := catalog.RotationEnds(k.live)
	if err == nil && !ends[webhook].Equal(end) {
		return errRotatedAgain
	}
	return err
}
