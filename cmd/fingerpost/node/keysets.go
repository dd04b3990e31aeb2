package node

import (
	"context"
	"time"

	"fingerpost/api/gateway/jwks"
	"fingerpost/resolver"
)

// openKeySets makes what keeps the key sets that projects name. Each node fetches for itself, an edge too: what verifies
// tokens does not depend on the authority.
func (o *opening) openKeySets(context.Context) error {
	o.keySets = jwks.New(jwks.Options{Notes: o.resolver.Records, Allow: o.o.Allow.KeySets.List(),
		Version: o.o.Build.Version, Logger: o.o.Logger})
	return nil
}

// runKeySets fetches key sets until ctx ends. The files have been read: before, no project names any.
func (n *service) runKeySets(ctx context.Context) (ended chan struct{}) {
	return n.run(func() error {
		following := make(chan struct{})
		go func() {
			defer close(following)
			n.followKeySets(ctx)
		}()
		n.keySets.Run(ctx)
		<-following
		return nil
	})
}

// keySetRetry is the wait after a store that could not be read.
const keySetRetry = 5 * time.Second

// followKeySets tells the keeper which projects name which key sets: all once, then those that change.
func (n *service) followKeySets(ctx context.Context) {
	feed := n.resolver.Events()
	cursor, _ := feed.Newest()
	all := true
	for ctx.Err() == nil {
		changed := feed.Changed()
		events := cursor.Next(nil, 256)
		for _, e := range events {
			all = all || e.Kind == resolver.Reset
		}
		err := n.declareKeySets(events, all)
		switch all = err != nil; {
		case err != nil:
			n.o.Logger.Debug("the projects' key sets cannot be read now", "error", err)
			pause(ctx, keySetRetry)
		case len(events) == 0:
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}
}

// declareKeySets tells the keeper of the projects of the events, or of all.
func (n *service) declareKeySets(events []*resolver.Event, all bool) error {
	if all {
		sources, err := n.resolver.KeySources()
		if err != nil {
			return err
		}
		list := make([]jwks.Source, len(sources))
		for i, s := range sources {
			list[i] = jwksSource(s)
		}
		n.keySets.Declare(list)
		return nil
	}
	for _, e := range events {
		if e.Project == 0 {
			continue
		}
		source, named, err := n.resolver.KeySource(e.Project)
		switch {
		case err != nil:
			return err
		case named:
			n.keySets.Put(jwksSource(source))
		default:
			n.keySets.Remove(e.Project)
		}
	}
	return nil
}

func jwksSource(s resolver.KeySource) jwks.Source {
	return jwks.Source{Project: s.Project, Slug: s.Slug, URL: s.URL, Needed: s.InUse}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
