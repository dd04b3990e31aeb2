// Package store is the derived store: what the files declare, in a Pebble of its own on the fail-stop file system of package
// pebblefs.
//
// The files are the truth (configsrc/README.md, Identity). A store that is lost, damaged or full is rebuilt from them; only
// createdAt and updatedAt have no other home. The mail log, the queue and the idempotency keys are in package ledger.
//
// # Key layout
//
// The first byte says what a key is. Ids are eight bytes, big-endian, so that a scan is in the order of ids.
//
//	prefix key                       value                                            written by
//	m      "format"                  version of this layout, uvarint                  Open
//	m      "generation"              uvarint                                          Apply, Import
//	m      "decoder"                 uvarint, see SetDecoderRevision                  SetDecoderRevision, Import
//	m      "counts"                  projects, domains, wildcards: uvarints           Apply, Import
//	m      "importing"               empty; there while an Import is under way        Import
//	m      "removals"                what is about to be removed                      NoteRemovals
//	p      project id                project with settings and SMTP config            Apply
//	s      slug                      project id                                       Apply
//	h      canonical domain name,    domain with its project, see beside.go           Apply, Import
//	       last byte first
//	o      project id, domain id     canonical domain name                            Apply
//	t      project id or 0, id       template                                         Apply
//	c      project id or 0, code     template id                                      Apply
//	k      key name                  API key (its SHA-256, never its text)            Apply
//	x                                defaults block                                   Apply
//	z                                sealing block                                    Apply
//	f      file path                 file table row: stamps, and what it declares     Apply
//	b      file path                 the file's last accepted bytes                   Apply
//
// Every value but the plain ids, names, counters and bytes begins with a version byte. A layout that a later release
// changes gets a new format version; a store with a newer one is refused, never touched.
//
// Earlier releases kept mail in the store, under keys that begin with a capital letter; the first start moves it to the
// ledger (formermail.go). A start of such a release leaves the ledger alone, so that going back costs nothing but that mail
// waits.
//
// # A miss
//
// What resolve needs for a name it has not cached stands in one value: the domain's record and, beside it, its project's.
// A Reader (see Borrow) finds and decodes it without a copy, with an iterator that is kept from one miss to the next, and
// all tables lie on one level, so that one search of one table does.
//
// What was flushed lately lies beside it until it is merged in. Flushes and merges rest after each piece of their work,
// for the sake of those who read, as long as writes do not get ahead of them (backlog.go).
//
// # A change
//
// Apply compares what a change declares with what it replaces, and writes what differs.
//
// # Durability
//
// Apply commits without fsync. What it writes stands in files that were fsynced before, and the file table is part of
// the same batch: a row that a power cut takes away makes the next start parse that file again. Paying a disk flush for
// data that can be had back from a better place would only slow the reload down. A second later it is flushed anyway,
// for the sake of the times.
//
// Removals are the exception. A store that is older than the files makes the next start see a mass removal, which is held
// back. So configsrc calls NoteRemovals before anything is removed and after the change that removed it: the first call says
// what the next start may remove without asking, the second makes the change durable.
//
// A change of more than some thousand files is no batch but a set of tables, sorted and written in pieces, that Pebble
// takes in at one go (bulk.go): durable at once, never in memory as a whole, and as quick to read as what stood there.
//
// # Who may read it
//
// The folder has mode 0700 and every file in it 0600, whatever the umask is. Open
// narrows what an earlier release has left wider.
//
// # When the disk fails
//
// Pebble ends the process, or spins, when a write fails. The file system
// below it (package pebblefs) makes the first such failure the last operation on the directory: everything that would
// write stops for good, Failed is closed, Apply returns ErrUnavailable, and reads go on as far as memory and the files
// allow. The way back is a new Store.
//
// A damaged store is moved aside, without the ledger in its directory, and filled again from the files. While that happens
// the failed instance answers, as far as it can be read.
//
// # Backups
//
// Snapshot hands a checkpoint to package archive.
package store
