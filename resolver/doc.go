// Package resolver is the read side: it answers which project a domain belongs to, and all other questions about what
// the files declare. It applies the changes of configsrc and makes none itself.
//
// # Resolve
//
// The exact record decides; without one, the wildcard with the longest suffix. The most specific match decides alone:
// an inactive record is not a reason to look further. An Answer is the JSON of the response's data (encode.go, of the
// rows of package rowjson), encoded once and kept in ristretto with a budget in bytes. Nothing stands in front of
// ristretto. A Set is buffered and may be dropped; then the next call for the name reads the store again. Calls for the
// same name at the same time share one store read (single flight). A hit costs no allocation and takes no lock of this
// package's. Unknown names have a small cache of their own: a flood of random ones neither grows memory nor pushes good
// entries out.
//
// # Freshness
//
// An answer is never older than the last change that Apply has acknowledged. Each carries the stamps it was built
// under: counters for its name, its project, the set of wildcards and the defaults block. Apply commits to the store,
// then moves the stamps of what it touched, then the epoch, and then returns. A hit whose stamps have moved is a miss;
// a change to one project leaves the entries of all others alone. See stamps.go for why this holds. Between the commit
// and the epoch, readers of the store read the state before the change: it shows in all answers at one moment.
//
// # What changed
//
// Events is a bounded history of changes, for clients that cache answers themselves. It is filled when the epoch has
// moved: a client that asks again because of an event gets an answer at least as new. See feed.go.
//
// # Search
//
// FindProjects and FindDomains answer from indexes in memory (package search). The first search builds them; changes
// note what they touched, and the next search reads it again. See finder.go.
//
// # Failover
//
// Resolve outlives the store: when the disk refuses, or the store is damaged or deleted, a store in memory takes over
// until the disk can be used again (package standby).
//
// # Proposals
//
// What is read of the files is read of a State: the live one, or an Overlay, which is the state of a proposal. See
// state.go and overlay.go.
//
// # Records
//
// A Resolver embeds the Records of its data directory (package records): mail, its log, and what else cannot be rebuilt
// from the files. While the disk fails, these are refused, and answers are not.
//
// # Audit trail
//
// Apply writes an entry for each object that a change touches, before the store commits (package trail).
package resolver
