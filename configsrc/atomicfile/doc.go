// Package atomicfile replaces files that people edit and git checks out at the same time.
//
// A Swap stages new content in a temporary file in the same folder and syncs it. Put then exchanges the two names in one
// step and looks at what came out. The exchange is made under a read lease, so that no editor has the file open for writing
// meanwhile; a save that put another file in its place in between is exchanged back, and Put returns ErrChanged. Where two
// saves come in so close together that one cannot go back, it is kept next to the file under a name that ends in "~". Mode,
// owner, ACLs and extended attributes stay as they were, or the file is not written at all (UnfitError).
//
// Several Swaps that belong together are there as a whole or not at all, also after a crash: Note writes down, before the
// first Put, what it takes to undo them, and the last of the files decides.
//
// A write that is cut off leaves temporary files whose names say what they hold. Folder.Clear removes them, gives a save that
// one of them holds back to its file, and undoes what a Note describes. A write holds a lock on its folder (flock) until it
// ends or its process dies, so that Clear never takes a living write for a dead one.
//
// Edit, Create and Move are the same for commands that a person runs. Room and LowDisk tell how much space is left; what the
// disk refuses for lack of space, the write itself reports.
//
// The package needs Linux and a local file system for its promise to people's saves: elsewhere the service does not write
// (UnfitError), and commands compare the content once more before they rename. It knows nothing of what is in the files,
// does not serialise two writers of one file, and never follows a link out of the folder (Target).
package atomicfile
