package cluster

import "testing"

func TestTail(t *testing.T) {
	var x tail
	says := func(what string, end uint64, torn bool) {
		t.Helper()
		if x.end() != end || x.torn() != torn {
			t.Errorf("%s: it ends at %d, torn %t; want %d, %t", what, x.end(), x.torn(), end, torn)
		}
	}
	x.found(10)
	says("a stream that was read", 10, false)
	x.add(12, 1)
	says("the renewal behind a batch is answered before it", 10, true)
	x.add(14, 1)
	x.add(11, 1)
	says("the batch is answered, too", 12, true)
	x.add(13, 1)
	says("all are answered", 14, false)
	x.add(270, 256)
	says("a batch", 270, false)
	x.add(272, 1)
	says("somebody else has published 271", 270, true)
	x.forget()
	says("it is read again", 0, false)
	x.add(273, 1) // while it is read
	x.found(272)
	says("a renewal has followed", 273, false)
	x.forget()
	x.add(274, 1)
	x.found(274) // it was read, too
	says("a renewal was read", 274, false)
	x.found(3)
	says("another bucket", 3, false)
}
