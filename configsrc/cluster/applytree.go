package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// loadOwn reads which files the replica has.
func (f *Follower) loadOwn() error {
	f.own, f.ownRoot = map[string]Sum{}, Root{}
	err := f.o.Replica.Tree(func(path string, content []byte) bool {
		s := SumOf(path, content)
		f.own[path] = s
		f.ownRoot.Add(s)
		return true
	})
	f.compareAt = f.now().Add(compareEvery)
	if err != nil {
		return fmt.Errorf("read the own tree: %w", err)
	}
	// A first tree comes in parts, and its position with the last: a process that was killed before has files without one.
	if len(f.own) > 0 && f.o.Replica.Position().Generation > 0 {
		f.becomeWhole()
	}
	return nil
}

// becomeWhole notes that the replica has a whole tree.
func (f *Follower) becomeWhole() {
	f.mu.Lock()
	first := !f.whole
	f.whole = true
	f.mu.Unlock()
	if first && f.o.OnWhole != nil {
		f.o.OnWhole()
	}
}

// mark applies the generation that the last marker ends, if all of it is there.
func (f *Follower) mark(ctx context.Context) error {
	m, have := f.last, f.o.Replica.Position()
	refused := len(f.bad) > 0
	switch {
	case m.position.Epoch == have.Epoch && m.position.Generation < have.Generation && f.isWhole():
		f.enter(waiting, fmt.Errorf("the bucket is at generation %d, and this edge at %d already: waiting for the authority",
			m.position.Generation, have.Generation))
		return nil
	case m.position.Epoch != have.Epoch && f.isWhole() && !f.from.anew:
		return errEpoch
	case m.Files == 0:
		f.enter(waiting, errEmpty)
		return nil
	case !f.complete():
		f.enter(torn, errTorn)
		return nil
	}
	change := catalog.TreeChange{Position: m.position}
	for path, file := range f.held {
		if file != nil {
			change.Put = append(change.Put, *file)
		} else {
			change.Removed = append(change.Removed, path)
		}
	}
	if f.from.start && !refused {
		for path := range f.own {
			if _, there := f.view[path]; !there && f.held[path] == nil {
				if _, removal := f.held[path]; !removal {
					change.Removed = append(change.Removed, path)
				}
			}
		}
	}
	slices.SortFunc(change.Put, func(a, b catalog.TreeFile) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(change.Removed)
	if change.Position != have || len(change.Put)+len(change.Removed) > 0 {
		if err := f.o.Replica.ApplyTree(ctx, change); err != nil {
			f.enter(stuck, fmt.Errorf("apply generation %d: %w", m.position.Generation, err))
			return nil
		}
		f.mu.Lock()
		f.stats.Generations++
		f.mu.Unlock()
	}
	for i := range change.Put {
		path := change.Put[i].Path
		if old, found := f.own[path]; found {
			f.ownRoot.Remove(old)
		}
		f.own[path] = f.view[path]
		f.ownRoot.Add(f.view[path])
	}
	for _, path := range change.Removed {
		if old, found := f.own[path]; found {
			f.ownRoot.Remove(old)
			delete(f.own, path)
		}
	}
	clear(f.held)
	if f.from.start && refused { // files that this edge has and the view lacks are of refused messages, or removed
		f.from.anew = false
	} else {
		f.from = listing{}
	}
	f.enter(current, nil)
	f.becomeWhole()
	f.mu.Lock()
	if f.refilled != nil {
		close(f.refilled)
		f.refilled = nil
	}
	f.mu.Unlock()
	wake(f.beats)
	return nil
}
