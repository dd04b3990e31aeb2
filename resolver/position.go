package resolver

import (
	"context"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// A Published position is what answers show: every answer that begins after its publication is at least as new. It is
// published after the epoch of stamps has moved.
type Published struct {
	catalog.Position
	Text  string        // its String
	moved chan struct{} // closed when the next position is published
}

// publishPosition publishes the position of the store that is read. The caller holds applying, or is Open.
func (r *Resolver) publishPosition() {
	st := r.stores.Reads()
	now := catalog.Position{Epoch: st.Epoch(), Generation: st.Generation()}
	before := r.position.Load()
	if before != nil && before.Position == now {
		return
	}
	r.position.Store(&Published{Position: now, Text: now.String(), moved: make(chan struct{})})
	if before != nil {
		close(before.moved)
	}
}

// Position returns the position of this node: every later answer is at least as new. On an edge it is that of the
// authority whose content it serves.
func (r *Resolver) Position() catalog.Position { return r.position.Load().Position }

// Published is Position with its text, for headers. It costs one atomic load.
func (r *Resolver) Published() *Published { return r.position.Load() }

// WaitPosition waits until this node has reached p, or ctx is done. It returns POSITION_UNKNOWN for an epoch that
// is not the present one, and UNAVAILABLE at the end of ctx.
func (r *Resolver) WaitPosition(ctx context.Context, p catalog.Position) error {
	for {
		now := r.position.Load()
		switch {
		case now.Epoch != p.Epoch:
			return &catalog.Error{Code: catalog.CodePositionUnknown,
				Message: "this node does not know the epoch of the position " + p.String() + "; it is at " + now.Text}
		case now.Generation >= p.Generation:
			return nil
		}
		select {
		case <-now.moved:
		case <-ctx.Done():
			return &catalog.Error{Code: catalog.CodeUnavailable,
				Message: "this node is at " + r.position.Load().Text + " and has not reached the position " + p.String()}
		}
	}
}

// Tree yields the whole accepted tree as of one moment: every config file with its last accepted bytes, and the files
// that config files name. content is valid within the call.
func (r *Resolver) Tree(yield func(path string, content []byte) bool) error {
	return storeRead(r.stores.Writes().Tree(yield))
}

// TreeFile returns one file of Tree, with the times of its objects; NOT_FOUND if there is none.
func (r *Resolver) TreeFile(path string) (catalog.TreeFile, error) {
	f, found, err := r.stores.Writes().TreeFile(path)
	if err == nil && !found {
		return f, catalog.NotFound("file")
	}
	return f, storeRead(err)
}

// Text returns the accepted bytes of a file that config files name, nil when there are none. Like LastGood, it asks the
// old store too while a new one is being filled.
func (r *Resolver) Text(path string) ([]byte, error) {
	return r.fromEither(func(st *store.Store) ([]byte, error) { return st.Text(path) })
}

// Refused yields the files that an edge has received and refuses.
func (r *Resolver) Refused(yield func(path string, content []byte) bool) error {
	return storeRead(r.stores.Writes().Refused(yield))
}

func storeRead(err error) error {
	if err != nil {
		return catalog.Unreadable(err)
	}
	return nil
}
