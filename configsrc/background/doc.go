// Package background does work that must not delay answers: on all cores but one and at a lower priority (Each), or a
// little at a time (Pace).
//
// Each is for work with an end that somebody waits for, such as the decoding of many files; on Linux its threads yield
// to those that answer. Pace is for work that never ends, such as the sweeps: it may take 1/Share of a core. Neither
// knows what the work is, and whether anybody is served is for the caller to say.
package background
