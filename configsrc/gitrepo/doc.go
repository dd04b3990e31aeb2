// Package gitrepo puts the API's writes into the git history of the config folder, and keeps the history in step with a
// remote. README.md says what it promises.
//
// A write gets a durable record before its file is replaced (Begin). Once the file is in place (End), it is queued
// (queue.go), and a commit follows: HEAD's tree with exactly the changed files, made by git's plumbing without anybody's
// index (commit.go), and a ref moved from its old value only. If a person has edits in the same file that are not
// committed, the commit has HEAD's version with the write made on it as an edit. People's index follows for our paths,
// made ready before git's own lock is taken and put in place under it (index.go). The record goes once the commit is made;
// a start finds those of a process that was killed, and the record of the commit that it was about to make, so that each
// write is in the history once (journal.go).
//
// The other loop fetches and pushes (sync.go). If both sides have commits, those of the service are made again on the
// remote's tree field by field, and those of people by git merge-tree (rebase.go); the files change by git read-tree,
// which refuses to overwrite what is not committed.
//
// Package plumbing runs the git command of the system, for this package alone. Without both, teams would keep the
// history by a script after each write, which loses authors in a crash and knows nothing of push, pull and people at
// work. The package needs git 2.39, a clone with a work tree, and one process that writes. It knows neither HTTP nor HCL: the
// edit of a file is made by Options.Merge.
package gitrepo
