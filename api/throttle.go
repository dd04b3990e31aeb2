package api

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"fingerpost/api/gate"
)

// Failed keys per peer address: a burst, then one per failedKeyEvery.
const (
	failedKeyBurst = 20
	failedKeyEvery = 3 * time.Second
	throttleSlots  = 1 << 16
)

// A throttle counts failed keys per peer in a table of fixed size. Peers are IPv4 addresses and IPv6 /64 networks. Two
// peers that share a slot share its budget; good keys pass either way. Safe for concurrent use, without locks.
type throttle struct {
	seed  maphash.Seed
	start time.Time // monotonic, so that a step of the clock changes no budget
	// slots hold the time since start at which the budget is full again (the generic cell rate algorithm).
	slots [throttleSlots]atomic.Int64
}

func newThrottle() *throttle { return &throttle{seed: maphash.MakeSeed(), start: time.Now()} }

// fail takes one failure from the peer's budget. If the budget is empty it takes nothing and returns the time until it
// is not.
func (t *throttle) fail(peer netip.Addr) (wait time.Duration) {
	slot := &t.slots[maphash.Comparable(t.seed, gate.Network(peer))%throttleSlots]
	now := int64(time.Since(t.start))
	for {
		full := slot.Load()
		next := max(full, now) + int64(failedKeyEvery)
		if over := next - now - failedKeyBurst*int64(failedKeyEvery); over > 0 {
			return time.Duration(over)
		}
		if slot.CompareAndSwap(full, next) {
			return 0
		}
	}
}
