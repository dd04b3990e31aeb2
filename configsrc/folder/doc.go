// Package folder reads a config folder as it is on disk: which files are config, what is at a path, and the bytes of a
// file with the stamp that belongs to them.
//
// A Tree is the folder at one time. It opens the folder once and stays inside: links are followed to files below it and
// nowhere else. In a Clone, where everybody who may push decides what is below the top, no folder on the way to it is a
// link. A read checks that the file has not changed meanwhile, opens regular files only, and never waits for a FIFO.
//
// A Watch collects the events of the folder, so that none is lost while it is read. It says which paths have to be read
// again, and what the events allow to conclude about each; it reads no file. Where the system has no events left, NewWatch
// fails, and a timer has to find changes. It is the only user of fsnotify.
//
// The package needs a local file system. It keeps nothing between two Trees, judges no content, and writes nothing:
// atomicfile does.
package folder
