package cluster

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// step reads what is new.
func (f *Follower) step(ctx context.Context) error {
	if err := checkVersion(f.nc); err != nil {
		return err
	}
	if err := f.mustRefill(); err != nil {
		return err
	}
	f.mu.Lock()
	heard := f.heard
	f.mu.Unlock()
	end := heard
	// The state says whether it is still the same bucket. Between two polls the authority's word is enough.
	if f.made.IsZero() || heard < f.next {
		st, err := f.bucket.state(ctx)
		if err != nil {
			return err
		}
		if !st.created.Equal(f.made) || st.last+1 < f.next {
			f.mu.Lock()
			f.heard = 0
			f.mu.Unlock()
			if err := f.begin(ctx, st); err != nil {
				return err
			}
		}
		end = max(end, st.last)
	}
	for tries := 0; ; tries++ {
		next, err := f.bucket.read(ctx, f.next, end, func(r record) error { return f.takeMessage(ctx, r) })
		f.next = max(f.next, next)
		if err != nil {
			return err
		}
		if f.next > heard {
			break
		}
		if tries > 20 {
			// The announced sequence does not exist. The bucket may have been recreated.
			f.mu.Lock()
			f.heard = 0
			f.mu.Unlock()
			wake(f.news) // to ask for the state
			break
		}
		// A replica of the server's stream that lags behind has answered.
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	if f.state.at == stuck {
		if err := f.mark(ctx); err != nil {
			return err
		}
	}
	if err := f.follows(); err != nil {
		return err
	}
	if f.now().After(f.compareAt) {
		if err := f.loadOwn(); err != nil {
			return err
		}
		if f.ownRoot.String() != f.last.Root && len(f.bad) == 0 {
			return errRepair
		}
	}
	return nil
}

// begin starts to read a bucket: from its start, or from its marker where the own tree is the marker's.
func (f *Follower) begin(ctx context.Context, st bucketState) error {
	f.held, f.last, f.state = map[string]*catalog.TreeFile{}, marker{}, followState{}
	clear(f.bad)
	clear(f.badSums)
	f.showBad()
	have := f.o.Replica.Position()
	f.from = listing{start: true}
	if r, found, err := f.bucket.last(ctx, keyMarker); err != nil {
		return err
	} else if found {
		m, err := parseMarker(r.value)
		if err == nil && m.position.Epoch == have.Epoch && m.Root == f.ownRoot.String() && m.Files == len(f.own) {
			f.view, f.viewRoot, f.from = maps.Clone(f.own), f.ownRoot, listing{}
			f.made, f.next = st.created, r.seq // the marker itself is read again, and applied if its position is newer
			return nil
		}
		f.from.anew = err == nil && have.Epoch != "" && m.position.Epoch != have.Epoch
	}
	f.mu.Lock()
	f.stats.Listings++
	f.mu.Unlock()
	f.view, f.viewRoot = map[string]Sum{}, Root{}
	f.made, f.next = st.created, 1
	return nil
}

// takeMessage takes a message, in order.
func (f *Follower) takeMessage(ctx context.Context, r record) error {
	f.next = r.seq + 1
	switch {
	case r.key == keyMarker && r.gone, r.key == keyLease && r.gone:
	case r.key == keyLease:
		if l, err := parseLease(r); err == nil && l.Holder != "" {
			p, _ := catalog.ParsePosition(l.Position) // for the lag only
			f.hearWord(p)
		}
	case r.key == keyMarker:
		m, err := parseMarker(r.value)
		if err != nil {
			f.refuse(r.key, err)
			return nil
		}
		f.admit(r.key)
		m.seq = r.seq
		f.last = m
		f.hearWord(m.position)
		return f.mark(ctx)
	case strings.HasPrefix(r.key, prefixFile):
		f.takeFile(r)
	}
	return nil
}

// hearWord notes a word of the authority.
func (f *Follower) hearWord(p catalog.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heardAt = f.now()
	f.lastContact.Store(int64(f.heardAt.Sub(f.started)))
	if p.Epoch != f.newest.Epoch || p.Generation > f.newest.Generation {
		f.newest = p
	}
}

// takeFile takes the new content of a file, or its removal.
func (f *Follower) takeFile(r record) {
	if r.gone {
		f.admit(r.key)
		// A removal names the encoded path alone.
		f.remove(f.pathOf(r.key))
		return
	}
	e, err := parseEntry(r.key, r.value)
	var file catalog.TreeFile
	delete(f.badSums, r.key)
	if err == nil {
		if file, err = e.unpack(); err != nil && !errors.Is(err, errSum) {
			f.badSums[r.key] = e.sum
		}
	}
	if err != nil {
		f.refuse(r.key, err)
		return
	}
	f.admit(r.key)
	if old, found := f.view[file.Path]; found {
		f.viewRoot.Remove(old)
	}
	f.view[file.Path] = e.sum
	f.viewRoot.Add(e.sum)
	if own, found := f.own[file.Path]; found && own == e.sum && !f.from.anew {
		delete(f.held, file.Path)
	} else {
		f.held[file.Path] = &file
	}
}

// pathOf returns the path of a file's key, "" if the view has none.
func (f *Follower) pathOf(key string) string {
	encoded := strings.TrimPrefix(key, prefixFile)
	if path, ok := decodePath(encoded); ok {
		return path
	}
	for path := range f.view { // an encoded path that is a hash is rare
		if encodePath(path) == encoded {
			return path
		}
	}
	return ""
}

// complete reports whether everything that the last marker counts was read. A refused message counts with the sum that it
// names, in the place of what it would replace. Where a message names none, nobody can tell.
func (f *Follower) complete() bool {
	root := f.viewRoot
	for key := range f.bad {
		sum, named := f.badSums[key]
		if !named {
			return true
		}
		if old, found := f.view[f.pathOf(key)]; found {
			root.Remove(old)
		}
		root.Add(sum)
	}
	return root.String() == f.last.Root
}

func (f *Follower) remove(path string) {
	sum, found := f.view[path]
	if !found {
		return
	}
	f.viewRoot.Remove(sum)
	delete(f.view, path)
	if _, found := f.own[path]; found {
		f.held[path] = nil
	} else {
		delete(f.held, path)
	}
}

// refuse keeps what a message would replace, as a broken file keeps its last good content.
func (f *Follower) refuse(key string, err error) {
	if f.bad[key] == "" {
		f.o.Logger.Warn("a message of the bucket is refused; what it would replace goes on being served", "key", key, "error",
			err)
	}
	f.bad[key] = err.Error()
	f.showBad()
}

func (f *Follower) admit(key string) {
	if _, was := f.bad[key]; was {
		delete(f.bad, key)
		f.showBad()
	}
}

func (f *Follower) showBad() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = maps.Clone(f.bad)
}
