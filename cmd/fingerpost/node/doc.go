// Package node opens, runs and ends the parts of a serving node, in order: addresses, store, cluster, git, files, mail,
// the API and the ops listener. Run in node.go shows the whole life of a node from top to bottom.
//
// It promises that
//   - an address that is in use, a locked store or a wrong git set-up ends the start before anything is served,
//   - requests but probes get 503 until the first load has ended, or until an edge has a whole tree; connections to sockets
//     of the service manager (inherit.go) wait in the kernel until then,
//   - mail is sent only when the files have been read, and by the authority of a cluster alone,
//   - a signal lets requests and mails in flight finish within the grace; a second one ends the node at once,
//   - the parts end in the reverse of the order in which they depend on each other, the store last. A store that may
//     still be in use stays open: it is consistent without being closed.
//
// RenameProject opens a store and the files for a single write, and ends both.
//
// It needs Options whose fields have been checked. Signals of the process are its own while Run runs, so a process has
// one node.
//
// It does not parse flags, and decides nothing about domains, files or mail: each part is a package of its own, and
// knows none of the others but through the small interfaces that node connects.
package node
