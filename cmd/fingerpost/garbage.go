package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// Every API write leaves about 100 kB of garbage (a file is read, parsed, rewritten and parsed again), so that a crowd of
// writers has the collector mark all projects several times a second. Meanwhile it may wait longer.
const (
	crowdGC   = 300       // GOGC for a crowd; the runtime's own is 100
	usualGC   = 100       // GOGC else
	crowdHeap = 256 << 20 // bytes that the difference may cost at most
)

// crowdPercent is GOGC for a crowd with so many bytes that are live.
func crowdPercent(live uint64) int {
	return usualGC + int(min(crowdGC-usualGC, 100*crowdHeap/max(1, live)))
}

// collectSeldom lets the collector wait, by what is live at this moment; collectAsUsual takes that back, and the heap
// shrinks with the next collection. Where the environment has GOGC, that stays in force; a memory limit does in any case.
func collectSeldom() {
	live, now := heap()
	setGC(crowdPercent(live), now)
}

func collectAsUsual() {
	_, now := heap()
	setGC(usualGC, now)
}

// setGC sets GOGC where it is another: that stops all goroutines for a moment.
func setGC(percent, now int) {
	if percent != now && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// heap tells how many bytes the last collection has left, and GOGC as it is in force.
func heap() (live uint64, percent int) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 || s[1].Value.Kind() != metrics.KindUint64 {
		return 0, usualGC // another runtime: as if little were live
	}
	return s[0].Value.Uint64(), int(s[1].Value.Uint64())
}
