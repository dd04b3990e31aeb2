// Package store keeps what the files declare, and mail, in Pebble, on the fail-stop file system of
// package pebblefs.
//
// What the files declare is derived: they are the truth (contract files.md 4), so a store that is lost, damaged or full is
// rebuilt from them. Only createdAt and updatedAt, and what is kept of mail, have no other home.
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
//	L      project id, createdAt,    entry of the mail log                            AcceptMail, UpdateMail
//	       mail id
//	N      project id, createdAt,    counts of the entries from there to the next     with L
//	       mail id                   such row, see mailcount.go
//	Q      mail id                   envelope of a mail that has not ended, and       AcceptMail
//	                                 where its entry is
//	E      mail id                   its message                                      AcceptMail
//	I      project id, key           what is kept under an idempotency key            AcceptMail, AnswerMail
//	X      expiry, project id, key   empty: the same keys by their time               AcceptMail
//	M                                bound of the mail ids that were given out,       with every one of these
//	                                 and the number of the last write of mail
//	G      name of a folder, or      what became of the mail of a store that was      NoteGap
//	       time                      damaged or is gone
//
// Every value but the plain ids, names, counters and bytes begins with a version byte. A layout that a later release
// changes gets a new format version; a store with a newer one is refused, never touched.
//
// The prefixes of mail came without one. A release that does not know them leaves them alone: neither its Apply, nor its
// Import, nor the wipe of an interrupted one touches them, and its backups carry them. So going back to it costs nothing
// but that mail waits. Should a record of mail ever change, what a release reads of a later one is an ErrNewer for the one
// who asks, and no damage.
//
// # Mail
//
// A project's entries lie by createdAt and id, so that a page of its log is one walk and retention a range deletion; the
// counts beside them lead to any page of a log of millions. Writes that come while another one is on its way to the disk go
// there together, see mailgroup.go. A queued mail is there exactly as long as its entry has not
// ended: both change in one batch. An Import leaves all of it where it is.
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
// Mail has no better place, so its batches are on the disk before anybody hears of them. Those of many callers share
// their syncs. A log that has lost some of them all the same, which Pebble does not notice, is found out (witness.go).
//
// # Who may read it
//
// The folder has mode 0700 and every file in it 0600, whatever the umask is: mail holds codes to reset passwords. Open
// narrows what an earlier release has left wider.
//
// # When the disk fails
//
// Pebble ends the process, or spins, when a write fails. The file system
// below it (package pebblefs) makes the first such failure the last operation on the directory: everything that would
// write stops for good, Failed is closed, Apply returns ErrUnavailable, and reads go on as far as memory and the files
// allow. The way back is a new Store.
//
// A damaged store is moved aside, and what mail can be read of it is copied into the one that takes its place, block by
// block around the damage (salvage.go). What could not be had back is noted there, as a MailGap.
//
// # Backups
//
// Backup writes one gzipped tar (archive.go): a manifest with the formats, the generation and every file's size and
// SHA-256, then the files of one of Pebble's checkpoints. Restore takes nothing for granted: only names that a store has,
// only sizes and hashes that the manifest has, nothing before, between or behind; formats that are too new are refused
// by the manifest alone. The store is built beside its place, read through and exchanged for the former one, which is
// kept. The mails of its queue may have been sent since the backup was made, so each is marked as uncertain before it goes
// out again. An archive holds what the store holds: the config files' bytes, so sealed values, key hashes, and a secret that
// somebody has written in clear text, and the mail log and queue.
package store
