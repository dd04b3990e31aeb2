// Package verify keeps what is known of customers' domains: whose they are, where they point, and whether their
// certificates work. It schedules checks, asks package dcv what each one means, and has the result written where it
// belongs: into the files what changes an answer, into the ledger everything else.
//
// It promises that the files stay in charge. A check changes them only where dcv says so, and only while the file still
// has the value that the decision was made for: a person's edit wins, and the decision is made again. What is about to be
// written is noted durably before, so that the service knows its own writes again after a crash at any moment. While the
// ledger refuses, no check is made, because its result would be lost.
//
// Checks are shared by project (package share): those in the background and those on demand have places of their own, and
// projects have their turns in rounds, so one with a thousand names whose servers never answer keeps no other waiting. A
// project whose checks run into their limit twice in a row is checked hourly until one does not.
//
// Run follows the change feed: its work is in proportion to what has changed, and all domains are read only at the start,
// after a change of the defaults block, and when the feed says that more has changed than it can tell. Of each domain about
// 200 bytes stay in memory; what the servers said is in the ledger, and read when somebody asks. Notes are stored in one
// batch a second. The schedule goes by the monotonic clock: a wall clock that is set back keeps nothing waiting.
//
// Without a verification block in the files nothing is checked in the background, and nothing is kept in memory. A check
// on demand works, comes before all others, and is answered from the last one within ten seconds of it.
//
// The package needs a Checker that asks DNS and TLS, a Writer for the files, and the ledger. It does not know DNS, HCL or
// HTTP, decides nothing about proofs, and must not run on edges and on nodes that may not write: there a Service without a
// Checker shows what the files say.
package verify
