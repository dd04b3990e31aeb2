// Package atomicfile replaces files that people edit and git checks out at the same time.
//
// A Swap stages new content in a temporary file in the same folder and syncs it. Put then exchanges the two names in
// one step and checks the content that came out. It holds a read lease during the exchange, so no editor has the file
// open for writing. A save that put another file in its place in between is exchanged back, and Put returns ErrChanged.
// If two saves come so close together that one cannot go back, that one is kept next to the file under a name that ends
// in "~". Mode, owner, ACLs and extended attributes stay, or the file is not written at all (UnfitError).
//
// Several Swaps that belong together take effect as a whole or not at all, also after a crash: before the first Put,
// Note records how to undo them, and the last of the files decides.
//
// An interrupted write leaves temporary files whose names say what they hold. Folder.Clear removes them, restores a
// save that one of them holds, and undoes what a Note describes. A write holds a lock on its folder (flock) until it
// ends or its process dies, so Clear never mistakes a running write for a dead one.
//
// Edit, Create and Move do the same for commands that a person runs. Room and LowDisk report how much space is left; a
// write reports itself when the disk is full.
//
// The promise to people's saves needs Linux and a local file system. Elsewhere the service does not write (UnfitError),
// and commands compare the content once more before they rename. The package knows nothing about the content of files,
// does not serialise two writers of one file, and never follows a link out of the folder (Target).
package atomicfile
