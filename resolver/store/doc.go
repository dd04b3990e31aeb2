// Package store is the derived store: what the files declare, in a Pebble of its own on the fail-stop file system of
// package pebblefs.
//
// The files are the truth (configsrc/README.md, Identity). A store that is lost, damaged or full is rebuilt from them;
// only createdAt and updatedAt have no other home. The mail log, the queue and the idempotency keys are in package
// ledger.
//
// # Key layout
//
// The first byte says what a key is. Ids are eight bytes, big-endian, so that a scan is in the order of ids.
//
//	prefix key                       value                                            written by
//	m      "format"                  version of this layout, uvarint                  Open
//	m      "generation"              uvarint                                          Apply, Import
//	m      "epoch"                   the epoch of the generations                     Open, Apply, Import
//	m      "reserved"                the generation up to which none is reused        Apply, Import, Close
//	m      "decoder"                 uvarint, see SetDecoderRevision                  SetDecoderRevision, Import
//	m      "counts"                  projects, domains, wildcards                     Apply, Import
//	m      "importing"               empty; present while an Import runs               Import
//	m      "removals"                note about imminent removals                     NoteRemovals
//	m      "audit"                   id of the newest entry of the audit trail        Apply, Import
//	p      project id                project with settings and SMTP config            Apply
//	s      slug                      project id                                       Apply
//	h      canonical domain name,    domain, and a copy of its project's value             Apply, Import
//	       last byte first
//	o      project id, domain id     canonical domain name                            Apply
//	t      project id or 0, id       template                                         Apply
//	c      project id or 0, code     template id                                      Apply
//	k      key name                  API key (its SHA-256, never its text)            Apply
//	x                                defaults block                                   Apply
//	e      name                      edge                                             Apply
//	w      name                      webhook                                          Apply
//	l      name                      login                                            Apply
//	i      name                      inbound block                                    Apply
//	z                                sealing block                                    Apply
//	f      file path                 file table row: stamps, and what it declares     Apply
//	b      file path                 the file's last accepted bytes                   Apply
//	y      file path                 accepted bytes of a file that config files name  Apply
//	q      file path                 bytes that an edge has received and refuses       Apply
//	j      project id                jwks_url, of a project whose file has one         Apply
//
// Every value begins with a version byte, except plain ids, names, counters and bytes. The rest is CBOR (RFC 8949) in
// its deterministic form, so that equal nouns have equal bytes; a noun is an array of its fields. In a project, domain
// or template the times and the uuid stand before it, at fixed places.
//
// A changed layout gets a new format version (Format). A store of another version is refused, never touched: no release
// has an older one, so nothing is migrated yet. The first release that changes the layout of a released one empties its
// store, so that the files fill it again, and keeps what they cannot give back: the times, the last accepted bytes, and
// the bytes of the files that these name.
//
// # A miss
//
// What resolve needs on a cache miss is in one value: the domain's record and a denormalised copy of its project's. A
// Reader (see Borrow) finds it with an iterator that is reused for the next miss. All tables are on one level, so a
// lookup searches one table.
//
// Recently flushed tables are separate until they are merged. Flushes and merges pause after each piece of work, to
// keep reads fast, unless writes get ahead of them (backlog.go).
//
// # A change
//
// Apply compares what a change declares with what it replaces, and writes what differs.
//
// # Durability
//
// Apply commits without fsync. Its content comes from files that were fsynced before, and the file table is part of the
// same batch: if a power cut loses a row, the next start parses that file again. A disk flush for data that the files
// can restore would only slow down the reload. The log is flushed a second later, to keep createdAt and updatedAt.
//
// Removals are the exception. If the store is older than the files, the next start sees a mass removal and holds it
// back. So configsrc calls NoteRemovals before a removal and after the change that made it: the first call says what
// the next start may remove without asking, the second makes the change durable.
//
// A crash may lose the newest generations, although clients have seen their numbers. Such a number must never stand for
// another state: "reserved" is durable before a number above it is used, and a start after a crash continues above it.
// On an edge, the position comes from the authority, in the batch with the content, and goes back with it.
//
// A change of more than some thousand files is a set of tables, sorted and written in pieces, that Pebble ingests at
// once (bulk.go): durable immediately, never in memory as a whole, and as fast to read as before.
//
// # Who may read it
//
// The folder has mode 0700 and every file in it 0600, whatever the umask. Open narrows the modes that an earlier
// release left.
//
// # When the disk fails
//
// When a write fails, Pebble ends the process or spins. The file system below it (package pebblefs) makes the first
// failed write the last operation on the directory: all writers stop for good, Failed is closed, Apply returns
// ErrUnavailable, and reads continue as far as memory and the files allow. To recover, open a new Store.
//
// A damaged store is moved aside, without the ledger in its directory, and rebuilt from the files. Until then the
// failed instance answers, as far as it can be read.
//
// # Backups
//
// Snapshot hands a checkpoint to package datadir.
package store
