package node

import (
	"context"
	"time"

	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A replica is the tree of an edge: the store keeps it, and the Source takes what comes.
type replica struct {
	*resolver.Resolver
	source *configsrc.Source
}

// ApplyTree implements cluster.Replica.
func (r replica) ApplyTree(ctx context.Context, c catalog.TreeChange) error {
	return r.source.ApplyTree(ctx, c)
}

// staleEvery is how often an edge with --max-stale looks at its age.
const staleEvery = 250 * time.Millisecond

// becomeWhole opens an edge to requests, once it has a whole tree. Before, a domain that exists would be answered 404.
func (n *service) becomeWhole() {
	n.api.SetLoading(false)
	n.accepting.Do(func() { n.serve(true) })
	n.setReady(true)
}

// keepFresh refuses requests, and readiness, while an edge has had no word of the authority for --max-stale.
func (n *service) keepFresh(ctx context.Context) {
	if n.o.Cluster.MaxStale == 0 {
		return
	}
	tick := time.NewTicker(staleEvery)
	defer tick.Stop()
	was := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		stale := n.cluster.follower.Age(time.Now()) > n.o.Cluster.MaxStale
		if stale == was || !n.cluster.follower.Whole() {
			continue
		}
		was = stale
		n.api.SetStale(stale)
		n.setReady(!stale)
		if stale {
			n.o.Logger.Error("no word from the authority for --max-stale: requests are answered 503", "max_stale",
				n.o.Cluster.MaxStale.String())
		} else {
			n.o.Logger.Info("the authority is heard again: requests are answered")
		}
	}
}
