// Package plumbing reads and writes the objects and refs of a git repository by the git command of the system, and takes
// git's lock on the index.
//
// A Store promises that what a ref names is on the disk, file and folder, before the ref is, also where git does not
// sync: objects of merge-tree and of people, folders of objects and refs. An object has the bytes that were given,
// whatever the repository's attributes say. A ref moves from its old value only, else ErrRace. Diff bounds the time and
// memory that a hostile commit may cost.
//
// A Command never prompts, ignores the system's configuration, ends within a time limit, and allows a remote's protocol
// only where its caller does. Objects are read through processes that live long, since a process for each would cost
// more than the commit.
//
// An IndexLock tells its own lock from another git's by the inode, so that a start can remove what a crash has left.
//
// The package needs git 2.39. It knows nothing of writes, branches' meaning or remotes: that is gitrepo's part. Extract
// writes a revision's files into a folder, for comparisons, and needs no Store.
package plumbing
