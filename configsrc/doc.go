// Package configsrc is the write side: it turns a folder of HCL files into changes of the catalog, keeps them in step,
// and writes API changes back into the files.
//
// A Source owns one folder, and is the front (source.go) of objects that each do one thing and name only what stands
// below them. All of them stand on the base (edits.Base): what is accepted, with the locks that guard it.
//
//	loop      run.go      the one goroutine that looks and commits; starts the sweeps and ends the watch
//	looker    look.go     a look: find (gather.go), judge (package judge), hold back (brake.go), commit (commit.go)
//	follower  follow.go   the look of an edge, whose files come from its authority
//	rounds    round.go    judges what writers (package edits) have submitted, places (place.go) and commits it
//	reporter  status.go   the status and the log, with the warnings (warnings.go) of accepted files
//
// Events, a timer and callers only name paths; a look is one reload: it lists or stats these paths, reads and decodes
// the changed files, judges the files against each other, and applies what it accepts to the Sink as one
// catalog.Change. It promises that one bad file never takes another one down: a file with an error is quarantined and
// its last good state stays, a state that may be half-written waits for a second look (states.go has every state of a
// path), and a look that would remove too much is held back as a whole until someone confirms it.
//
// A write is a value that passes seven steps: lock, read, change, prove, judge, place, publish. Package edits makes the
// first four, and says how the fifth decides; rounds stage the result. The loop judges the staged files of all waiting
// writes and puts them in place, with one sync of each folder and one Apply for all of them. The exchange of the file
// is the commit; the Sink follows. Package atomicfile does the exchange, restores a save that came in between, and
// cleans up after a crash. While git is at work in the folder, writes wait up to two seconds (gitguard.go).
//
// In a look and in a write everything that can fail comes first and changes nothing that is served. One goroutine looks
// and commits: Load, then Run. All other methods may be called from any goroutine.
//
// A change of many files, such as a git checkout, is one look: the files are decoded on all cores but one (each.go).
//
// Two things a look changes in the files itself, before it judges them (amend.go): uuid = "new", and the domains of a
// slug that is used again (former.go).
//
// Judge (judgefolder.go) says what a service would accept, without one.
//
// The package needs a folder on a local file system; on others it finds changes by the timer alone, and refuses writes
// where the system cannot tell whether an editor has a file open. It does not know HTTP, does not run git, and does not
// keep what it has accepted: that is the Sink's part. README.md describes the file language; hclfile decodes it, seal
// opens sealed values.
package configsrc
