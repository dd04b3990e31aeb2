package gate

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

const (
	// One of keptShare places is kept for peers that have sent a good key within goodFor.
	keptShare    = 8
	goodFor      = time.Hour
	maxGoodPeers = 1024
	// evictedShare: one in so many places is freed at once, because an eviction looks at all connections.
	evictedShare = 64
	// longIdle is the time after which an idle connection of a good peer makes room for any peer: a new client has no
	// other way to show its key.
	longIdle = 10 * time.Second
	// roomEvery is how often a connection that waits for a place tries to evict another.
	roomEvery = 50 * time.Millisecond
)

// enter gives c a place. If places are short it first closes quiet connections. It waits while all places are taken. It
// returns false if c's address has too many places, if only the kept ones are left and the address has no good key, or
// when closing is closed.
func (g *Gate) enter(c *Conn, closing <-chan struct{}) bool {
	if !g.count(c) {
		return false
	}
	if !g.place(c, closing) {
		g.uncount(c)
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns[c] = struct{}{}
	return true
}

// leave returns c's place.
func (g *Gate) leave(c *Conn) {
	if c.known.Load() {
		g.remember(c.peer)
	}
	g.uncount(c)
	g.mu.Lock()
	delete(g.conns, c)
	g.mu.Unlock()
	<-g.slots
}

// count counts c's address. It returns false if the address has reached its limit.
func (g *Gate) count(c *Conn) bool {
	if !c.peer.IsValid() {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peers[c.peer] >= g.limits.ConnsPerPeer {
		return false
	}
	g.peers[c.peer]++
	return true
}

func (g *Gate) uncount(c *Conn) {
	if !c.peer.IsValid() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peers[c.peer]--; g.peers[c.peer] == 0 {
		delete(g.peers, c.peer)
	}
}

// place takes a place for c.
func (g *Gate) place(c *Conn, closing <-chan struct{}) bool {
	kept, good := cap(g.slots)/keptShare, g.isGood(c.peer)
	for {
		free := cap(g.slots) - len(g.slots)
		short := free <= kept && (free == 0 || !good)
		if short && g.evict(good) == 0 && !good && kept > 0 {
			return false
		}
		select {
		case g.slots <- struct{}{}: // also while the listener closes: the peer has its connection
			return true
		default:
		}
		select {
		case g.slots <- struct{}{}:
			return true
		case <-closing:
			return false
		case <-time.After(roomEvery):
		}
	}
}

// evict closes some connections that have no request: first those that have sent nothing, then idle ones and those in
// the middle of a head, the longest idle first. Idle connections of good peers come last, and only for a good peer or
// after longIdle.
func (g *Gate) evict(good bool) (evicted int) {
	type candidate struct {
		c      *Conn
		class  int
		active int64
	}
	var all []candidate
	g.mu.Lock()
	for c := range g.conns {
		if !c.life.quiet() {
			continue
		}
		class := 0
		if c.spoke.Load() {
			class = 1
			if g.goodLocked(c.peer) {
				class = 2
			}
		}
		active := c.active.Load()
		if class < 2 || good || g.now()-time.Duration(active) >= longIdle {
			all = append(all, candidate{c, class, active})
		}
	}
	g.mu.Unlock()
	slices.SortFunc(all, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.active, y.active))
	})
	for _, v := range all[:min(len(all), max(1, cap(g.slots)/evictedShare))] {
		if v.c.life.evict() {
			v.c.Abort()
			g.leave(v.c)
			evicted++
		}
	}
	return evicted
}

// Welcome notes that c has sent a good key.
func (g *Gate) Welcome(c *Conn) {
	if !c.known.Load() {
		c.known.Store(true)
		g.remember(c.peer)
	}
}

// remember makes peer a good one for goodFor. If there are too many good peers, it forgets the one whose key was seen
// longest ago.
func (g *Gate) remember(peer netip.Addr) {
	if !peer.IsValid() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, has := g.good[peer]; !has && len(g.good) >= maxGoodPeers {
		var oldest netip.Addr
		for p, seen := range g.good {
			if !oldest.IsValid() || seen < g.good[oldest] {
				oldest = p
			}
		}
		delete(g.good, oldest)
	}
	g.good[peer] = g.now()
}

func (g *Gate) isGood(peer netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.goodLocked(peer)
}

// goodLocked reports whether peer is a good one. Unix sockets are always good: they are for programs of this machine.
// The caller holds mu.
func (g *Gate) goodLocked(peer netip.Addr) bool {
	if !peer.IsValid() {
		return true
	}
	seen, has := g.good[peer]
	return has && g.now()-seen < goodFor
}
