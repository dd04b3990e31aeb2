// Package pebblefs is the fail-stop file system under every Pebble store of the service, and everything about the
// directory of such a store: its lock, its modes, the probe of its disk, and the kinds of errors.
//
// An FS promises that the first failed write is the last one. The failed operation never returns to Pebble, nor does
// any later one that would change the directory: Pebble would end the process or retry without a pause. Failed is
// closed, Err returns the reason, and reads continue as far as memory and the files allow. A failed store is given up
// and opened again, in the same process, once no write of the old instance is in flight.
//
// The lock is a flock: it belongs to the open file and not to the process or the name. Tables stay readable after the
// directory was deleted, because a descriptor of each is kept.
//
// Folders have mode 0700 and files 0600, whatever the umask, because a store holds mail. Narrow narrows the modes that
// an earlier release left.
//
// Every failure is one of a few errors: ErrUnavailable (the disk refuses), ErrDamaged (the disk works, the content is
// no valid store), ErrLocked, ErrNewer, ErrOlder, ErrNoStore, ErrClosed. None of them has an absolute path
// in its text.
//
// The package knows neither the content nor Pebble's options. It needs only Pebble's vfs.
package pebblefs
