// Package ledger is the durable store: the mail log, the mail queue, the idempotency keys, suppression lists, the uses of
// API keys, the checks of domains and the audit trail, in a Pebble of their own below the data directory. None of it can be rebuilt
// from the files.
//
// Every batch is durable before its caller returns; Pebble lets concurrent batches share syncs. When the disk refuses a
// write, the ledger refuses all writes from then on (package pebblefs); to recover, open a new Ledger.
//
// # Key layout
//
// The first byte says what a key is. Ids are eight bytes, big-endian, so that a scan is in the order of ids.
//
//	prefix key                       value                                            written by
//	m      "format"                  version of this layout, uvarint                  Open
//	L      project id, createdAt,    entry of the mail log                            AcceptMail, UpdateMail
//	       mail id
//	N      project id                number of entries by status                      with L
//	Q      mail id                   envelope of a mail that is not final, and        AcceptMail
//	                                 the position of its entry
//	E      mail id                   its message                                      AcceptMail
//	I      project id, key           record of an idempotency key                     AcceptMail, AnswerMail
//	X      expiry, project id, key   empty: the same keys by their time               AcceptMail
//	M                                bound of the mail ids that were given out,       with every one of these
//	                                 and the number of the last write of mail
//	K      project id                size of its suppression list, and since when the   with S, KeepList
//	                                 project is missed
//	J      project id, address       how many entries the list has of it               with S
//	S      project id, address, 0,   entry of the list: the address as given, note,     AppendAuditWith
//	       reason, category          time, author
//	U      id of an API key          when it was first seen, and last used            SetKeyUses
//	V      generation, request id   git commit of an API write                        Committed, MoveCommits
//	W      id                       API write that is not in a git commit yet         ChangePending
//	O      name                     open proposal: who has written to it             ChangeProposals
//	Y      uuid of a project, name  what the checks of a domain have found           ChangeDomainNotes
//	       of a domain
//	Z      name                     value of another package                         SetNamed
//	G      name of a folder, or      what became of the mail of a database that       NoteGap
//	       time                      was damaged or is gone
//	A      entry id                  entry of the audit trail                         AppendAudit
//	P      project id or 0,          time of the entry                                with A
//	       entry id
//	C      project id or 0           end of its chain: hash and id of the last        with A, PruneAudit
//	                                 entry, hash of the last one that was cut off,
//	                                 number of entries, days that they are kept
//	C                                highest id of an entry                           with A
//	B      place                     mail that has ended, see EndedMail               UpdateMail
//	R                                epoch of the events, and which were removed      Open, NewEpoch, PruneAudit,
//	                                                                                  PruneMail
//	H      name of a webhook         how far it has come                              ChangeHooks
//	H      name, 0, project id       project that waits at it                         ChangeHooks
//	T      name, 0, number           delivery                                         ChangeHooks
//	D      project id or 0,          a place at which damage has cut the trail        Salvage.Copy
//	       entry id
//
// Every value except plain ids begins with a version byte: 2 for an entry of the mail log with its attempts, 3 for one
// that names an earlier entry, too, 4 for one with a locale, 5 for one that is SUPPRESSED; 2 for an entry of the audit trail with a slug, for counts
// of the log, for a queued mail with a category, and for an ended one that is SUPPRESSED; else 1. A record of a later
// release is an ErrNewer for its reader, not damage.
//
// A changed layout gets a new format version (Format). A ledger of another version is refused, never touched: no release
// has an older one. The release that changes the layout takes a ledger of the release before: it copies the folder to
// ledger-FORMAT.bak next to it, FORMAT being the older version, before it changes a record, and goes on with a migration
// that was interrupted. Nothing in the files can replace what a migration loses.
//
// A project's entries are sorted by createdAt and id: a page of its log is one walk, whose cost grows with the page
// number, and retention deletes ranges. A queued mail exists exactly as long as its entry is not final: both change in
// one batch.
//
// # Audit trail
//
// The entries of a project form a chain: each has the SHA-256 of the previous one. Retention cuts off the beginning of
// a chain. VerifyAudit names the first broken link; that the end of a chain is missing shows only against a hash that
// someone has kept elsewhere. The git commit of an API write is made after its entry, and is in a record of its own.
//
// # Damage
//
// Pebble treats a truncated or damaged log as one that ends there. A high-water mark next to it shows what is missing
// (highwater.go). The user of a damaged ledger moves it aside, never deletes it, and copies its readable records into
// the new one: its files are read one by one (rows.go), and each record is put like a new one of its kind (restore.go).
// Queued mails are uncertain. Losses are recorded as a MailGap until the retention period has passed. Entries of the audit
// trail keep their hashes and commits; where entries are lost, an AuditGap says so, for VerifyAudit too. Notes of domains,
// suppression lists, named values, cursors of webhooks and their deliveries are copied; where events may be lost, their readers see a cut.
// The uses of API keys and the writes that wait for git are not: such a write is in its file, and is then committed like
// an edit by a person. Nor are the records of proposals: such a proposal then counts as a person's.
package ledger
