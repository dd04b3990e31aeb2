// Package ledger is the durable store: the mail log, the mail queue and the idempotency keys, in a Pebble of their own below
// the data directory. None of it can be rebuilt from the files.
//
// Every batch is on the disk before its caller hears of it; the batches of many callers share their syncs (group.go). When
// the disk refuses a write, the ledger refuses everything from then on (package pebblefs), and the way back is a new Ledger.
//
// # Key layout
//
// The first byte says what a key is. Ids are eight bytes, big-endian, so that a scan is in the order of ids. The layout is
// that of the stores of earlier releases, which had the mail next to what the files declare.
//
//	prefix key                       value                                            written by
//	m      "format"                  version of this layout, uvarint                  Open
//	m      "settled"                 empty: the store has no mail any more            Settle
//	L      project id, createdAt,    entry of the mail log                            AcceptMail, UpdateMail
//	       mail id
//	N      project id                how many entries there are by status             with L
//	Q      mail id                   envelope of a mail that has not ended, and       AcceptMail
//	                                 where its entry is
//	E      mail id                   its message                                      AcceptMail
//	I      project id, key           what is kept under an idempotency key            AcceptMail, AnswerMail
//	X      expiry, project id, key   empty: the same keys by their time               AcceptMail
//	M                                bound of the mail ids that were given out,       with every one of these
//	                                 and the number of the last write of mail
//	G      name of a folder, or      what became of the mail of a database that       NoteGap
//	       time                      was damaged or is gone
//
// Every value but the plain ids begins with a version byte. A record of a later release is an ErrNewer for its reader and no
// damage; a ledger with a newer layout is refused, never touched.
//
// A project's entries lie by createdAt and id, so that a page of its log is one walk, which costs more the further down the
// page is, and retention deletes ranges. A
// queued mail is there exactly as long as its entry has not ended: both change in one batch.
//
// # Damage
//
// Pebble takes a log that is cut or damaged for one that ends there. A high-water mark next to it shows what is missing
// (highwater.go). A damaged ledger is moved aside by its user, never deleted, and what mail can be read of it is copied into
// the new one (salvage.go): around damaged blocks where Pebble opens it, else file by file (package salvage), and then what was
// queued is uncertain. What is missing is noted as a MailGap until retention has passed over it.
package ledger
