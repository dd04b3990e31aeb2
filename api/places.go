package api

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

const (
	// A part of the places, one of keptShare, is kept for peers that have sent a good key within goodFor.
	keptShare    = 8
	goodFor      = time.Hour
	maxGoodPeers = 1024
	// evictedShare of all places are freed at once, since finding them takes a look at all connections.
	evictedShare = 64
	// longIdle is the time after which an idle connection of a good peer makes room for anybody: a new client has no other
	// way to show its key.
	longIdle = 10 * time.Second
	// roomEvery is how often a connection that waits for a place looks for one to take.
	roomEvery = 50 * time.Millisecond
)

// enter gives c a place. Where places are short it first closes quiet connections. It waits while all places are taken,
// and reports false where c's address has too many of them, where only the kept ones are left and the address is not
// known to have a good key, and when closing is closed.
func (a *admission) enter(c *conn, closing <-chan struct{}) bool {
	if !a.count(c) {
		return false
	}
	if !a.place(c, closing) {
		a.uncount(c)
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns[c] = struct{}{}
	a.admitted++
	c.hot.lane = a.admitted % lanes
	return true
}

// leave gives c's place back.
func (a *admission) leave(c *conn) {
	if c.known.Load() {
		a.remember(c.peer)
	}
	a.uncount(c)
	a.mu.Lock()
	delete(a.conns, c)
	a.mu.Unlock()
	<-a.slots
}

// count counts c's address, unless it has enough.
func (a *admission) count(c *conn) bool {
	if !c.peer.IsValid() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.peers[c.peer] >= a.limits.ConnsPerPeer {
		return false
	}
	a.peers[c.peer]++
	return true
}

func (a *admission) uncount(c *conn) {
	if !c.peer.IsValid() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.peers[c.peer]--; a.peers[c.peer] == 0 {
		delete(a.peers, c.peer)
	}
}

// place takes a place for c.
func (a *admission) place(c *conn, closing <-chan struct{}) bool {
	kept, good := cap(a.slots)/keptShare, a.isGood(c.peer)
	for {
		free := cap(a.slots) - len(a.slots)
		short := free <= kept && (free == 0 || !good)
		if short && a.evict(good) == 0 && !good && kept > 0 {
			return false
		}
		select {
		case a.slots <- struct{}{}:
			return true
		default:
		}
		select {
		case a.slots <- struct{}{}:
			return true
		case <-closing:
			return false
		case <-time.After(roomEvery):
		}
	}
}

// evict closes some connections that have no request: those that have sent nothing first, then those that are idle or in
// the middle of a head, the longest idle first. Idle ones of good peers come last, for a good peer or after longIdle.
func (a *admission) evict(good bool) (evicted int) {
	type candidate struct {
		c      *conn
		class  int
		active int64
	}
	var all []candidate
	a.mu.Lock()
	for c := range a.conns {
		if !c.life.quiet() {
			continue
		}
		class := 0
		if c.spoke.Load() {
			class = 1
			if a.goodLocked(c.peer) {
				class = 2
			}
		}
		active := c.active.Load()
		if class < 2 || good || a.now()-time.Duration(active) >= longIdle {
			all = append(all, candidate{c, class, active})
		}
	}
	a.mu.Unlock()
	slices.SortFunc(all, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.active, y.active))
	})
	for _, v := range all[:min(len(all), max(1, cap(a.slots)/evictedShare))] {
		if v.c.life.evict() {
			v.c.kill()
			a.leave(v.c)
			evicted++
		}
	}
	return evicted
}

// welcome notes that c has sent a good key.
func (a *admission) welcome(c *conn) {
	if !c.known.Load() {
		c.known.Store(true)
		a.remember(c.peer)
	}
}

// remember makes peer a good one for goodFor. With too many of them, the one goes whose key was seen
// longest ago.
func (a *admission) remember(peer netip.Addr) {
	if !peer.IsValid() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, has := a.good[peer]; !has && len(a.good) >= maxGoodPeers {
		var oldest netip.Addr
		for p, seen := range a.good {
			if !oldest.IsValid() || seen < a.good[oldest] {
				oldest = p
			}
		}
		delete(a.good, oldest)
	}
	a.good[peer] = a.now()
}

func (a *admission) isGood(peer netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.goodLocked(peer)
}

// goodLocked reports whether peer is a good one; the caller holds mu. Unix sockets are for programs of this machine.
func (a *admission) goodLocked(peer netip.Addr) bool {
	if !peer.IsValid() {
		return true
	}
	seen, has := a.good[peer]
	return has && a.now()-seen < goodFor
}
