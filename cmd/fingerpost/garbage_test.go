package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestCrowdCollectsSeldom: a crowd of writers has the collector wait, for a bounded price in memory, and afterwards all is
// as before; who has set GOGC keeps it.
func TestCrowdCollectsSeldom(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 300}, {10 << 20, 300}, {128 << 20, 300}, {256 << 20, 200}, {1 << 30, 125}, {1 << 40, 100},
	} {
		if got := crowdPercent(c.live); got != c.want {
			t.Errorf("%d live bytes: %d %%, want %d", c.live, got, c.want)
		}
	}
	runtime.GC()
	if live, _ := heap(); live < 100<<10 || live > 10<<30 {
		t.Errorf("%d bytes live", live)
	}
	gogc := func() int {
		_, percent := heap()
		return percent
	}
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(gogc())
	collectSeldom()
	if got := gogc(); got <= usualGC || got > crowdGC {
		t.Errorf("in a crowd: %d %%", got)
	}
	collectAsUsual()
	if got := gogc(); got != usualGC {
		t.Errorf("after it: %d %%", got)
	}
	t.Setenv("GOGC", "50")
	debug.SetGCPercent(50)
	collectSeldom()
	if got := gogc(); got != 50 {
		t.Errorf("in a crowd, where the environment says 50: %d %%", got)
	}
	collectAsUsual()
	if got := gogc(); got != 50 {
		t.Errorf("after it, where the environment says 50: %d %%", got)
	}
}
