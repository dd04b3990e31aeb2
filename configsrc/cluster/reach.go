package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Reached is what a NATS server says of itself.
type Reached struct {
	Server string    // URL and version
	Bucket bool      // the cluster's bucket is there
	Time   time.Time // by its clock; zero without a bucket
}

// Reach connects as the authority of a cluster does, or as an edge of it, and asks for the bucket. Nothing changes there.
// An authority makes a bucket that is missing; to an edge that is an error.
func (c Connection) Reach(ctx context.Context, cluster, edge string) (r Reached, err error) {
	problems, up := make(chan error, 16), make(chan struct{}, 1)
	c.name, c.inbox, c.edge = "fingerpost doctor", authorityInbox, edge != ""
	if c.edge {
		c.inbox = inboxOf(edge)
	}
	c.failed = func(err error) {
		select {
		case problems <- err:
		default:
		}
	}
	c.up = func() { wake(up) }
	b, err := c.bucket(cluster)
	if err != nil {
		return r, err
	}
	defer b.nc.Close()
	err = errors.New("it does not answer")
	for connected := b.nc.IsConnected(); !connected; {
		select {
		case err = <-problems:
		case <-up:
			connected = true
		case <-ctx.Done():
			return r, err
		}
	}
	r.Server = fmt.Sprintf("%s (version %s)", b.nc.ConnectedUrlRedacted(), b.nc.ConnectedServerVersion())
	if err := errors.Join(checkVersion(b.nc), checkPayload(b.nc)); err != nil {
		return r, err
	}
	st, err := b.state(ctx)
	if errors.Is(err, errNoBucket) && !c.edge {
		return r, nil
	}
	r.Bucket, r.Time = err == nil, st.asked
	return r, err
}
