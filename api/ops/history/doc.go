// Package history keeps what a node did in the last hour: a value for each of a few figures every ten seconds, the lag
// of each edge, and a mark for what went live.
//
// What it promises. It takes at most 1 MiB, whatever the node does: 360 steps, 64 edges, one mark a step. It is in
// memory and begins empty with the process. A step for which a figure has no value (no resolve call: no latency) is a
// gap, NaN, and not a zero. p50 and p99 are estimated from the buckets of a histogram between two samples, by linear
// interpolation, as Prometheus does it: the true value is in the same bucket. With the buckets of package api it differs
// at most by a factor of 5 between 2 µs and 1 s.
//
// What it needs. A function that reads the counters of the node (Sample), called every step by the one goroutine of Run,
// and a call of Note for each generation, which costs a few map reads and no I/O.
//
// What it does not do. It counts nothing itself but generations, writes nothing to disk, and judges nothing. Whoever
// shows it decides who may see it: it is about the whole node.
package history
