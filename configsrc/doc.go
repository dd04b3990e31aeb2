// Package configsrc is the write side: it turns a folder of HCL files into changes of the catalog, and keeps looking.
//
// A Source owns one folder. Events, a timer and callers only ever say "look": a look lists or stats what was named,
// reads and decodes what is not as it was, checks the files against each other, and hands what is accepted to the Sink
// as one catalog.Change, one generation. What is not accepted is quarantined by file and its last good state stays; what
// may be a half-written state waits for a second look; a look that would take away too much is held back as a whole
// (contract files.md 2 and 3).
//
// The order inside a look is the safety argument: everything that can fail comes first and touches nothing; then the Sink
// commits; then the table in memory follows. One goroutine looks at a time.
//
// Writes go the same way (write.go, update.go): an edit of what is on disk at that moment is decoded and judged as a look
// would judge it, then swapped in atomically, and taken back out where somebody saved in between; the swap is the
// commit, the Sink follows. Whoever writes prepares and syncs the new content, and clears up in the end; the goroutine that
// looks has it put in place, all that wait at a time and side by side, so that one sync of each folder and one Apply do for
// all. While git is at work, writes wait a little (gitlock.go), without a lock of their own.
//
// A write that is cut off leaves at most a temporary file, and its name says what it is (stray.go): the next look of a
// node that may write removes it, or gives a person's save that it holds back to its file. Until its end a write has a
// lock on the folder, which ends with its process, so that no living write is mistaken for one that was cut off.
//
// A write may change the files that a template takes its bodies from together with the config file (bodies.go): they are
// exchanged first and the config file last, which decides. A note, durable before the first of them is touched, lets the
// next look put the others back where the last one was not reached (undo.go).
//
// A change of many files, such as a git checkout, comes in as one. The files are decoded on all cores but one.
//
// The file language is documented in README.md beside this file; hclfile decodes it, seal opens sealed values.
package configsrc
