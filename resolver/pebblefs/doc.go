// Package pebblefs is the fail-stop file system under every Pebble store of the service, and what belongs to the
// directory of such a store: its lock, its modes, the probe of its disk, and the kinds of errors.
//
// An FS promises that the first failed write is the last one. The operation that failed never returns to Pebble, nor does
// any later one that would change the directory: Pebble would end the process or retry without a pause. Failed is closed,
// Err says why, and reads go on as far as memory and the files allow. A failed store is given up and opened anew, in the
// same process, once nothing of the old instance is on its way to the disk.
//
// The lock is a flock, so that it belongs to the open file and not to the process or the name. Tables stay readable when
// somebody deletes the directory, since a descriptor of each is kept.
//
// Folders have mode 0700 and files 0600, whatever the umask is, because a store holds mail. Narrow narrows what an earlier
// release has left wider.
//
// Every failure is one of a few errors: ErrUnavailable (the disk refuses), ErrDamaged (the disk works, the content is no
// sound store), ErrLocked, ErrNewer, ErrNoStore, ErrClosed. None of them has an absolute path in its text.
//
// The package does not know what is stored, nor Pebble's options. It needs Pebble's vfs only.
package pebblefs
