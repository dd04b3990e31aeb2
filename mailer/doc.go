// Package mailer sends the mail of projects: it renders templates, composes messages, hands them to SMTP servers, and
// keeps at it until each mail has reached its end (mailer/README.md).
//
// Compose makes messages of drafts: exact bytes that every server takes and every reader understands alike, the same for
// the same draft, so that a retry sends what the first attempt sent. mailyak builds them; what it leaves open (quoting,
// folding, Message-ID, Date, boundaries) is done here, and each message is read back before it is given out.
//
// # The way of a mail
//
// Send makes all checks, stores the mail with its log entry in one synced batch, and makes the first attempt within the
// request's budget; what goes on after that has nobody waiting for it. A Ledger keeps mail, so that a Mailer can be
// dropped at any point and the next one goes on. The rule for that: no byte goes to a server before the ledger says that
// an attempt is under way, and an attempt that is under way in the ledger when a Mailer opens is uncertain. The first
// attempt is said to be under way by the very batch that accepts the mail, each later one by a batch of its own.
//
//	PENDING    waits for its first attempt within its request (all places of its project are taken)
//	SENDING    an attempt is under way
//	RETRYING   waits for the next attempt, or the first where none was made within the request; without nextAttemptAt, one is under way that outlived its request's budget
//	SENT, FAILED, EXPIRED    ends
//
// Each project has an outbox of its own: what waits, places for attempts at a time, and what is known of its server. So
// nobody's mail waits for another's server. There are more places than connections to a server: who waits for one of those
// is stored already when it falls free. Sends that somebody waits for go first. A server that cannot be reached, or breaks off, is left alone for 3 seconds, then for twice as long each time up to a minute; one mail that waited then
// tries, and the others keep their attempts. Sends go on to be tried at once, as long as there is a place; where that may
// take long, they are queued at once. In memory is 24 bytes of each mail that waits, and of the messages of attempts and of sends that
// wait for one, 64 MiB at most (bounds.go): a mail beyond that is queued and read back when its turn comes.
//
// The queue is bounded by project and in all, and by the room on the ledger's disk. A send beyond that is RATE_LIMITED and leaves
// nothing behind.
//
// # What stops a project's mail
//
//   - It is Held: what was queued by an earlier process waits until the files are read, which may say something else by now.
//   - The breaker: an attempt shows that the SMTP config is no good (AUTH, TLS, the sender, relaying). Mail that was
//     queued waits until the config changes, secrets and CA included, until TestSMTP passes with the very same
//     settings, or until TryAgain; it then goes on at once. New mail is queued
//     like that at once, without an attempt; its entry and /status say why. A mail that waits from before a change of fromEmail is not taken for a proof against the new one.
//   - The project is suspended, has no active SMTP config, or a secret cannot be opened on this node: mail waits, and
//     EXPIRES at its max_age. mailEnabled is looked at when a mail is accepted, not later.
//   - The project is deleted: mail FAILS with NOT_FOUND once the project has been missing for a minute, since files are
//     moved and checked out anew.
//
// ConfigChanged makes such a change count at once. Those that nobody tells of, such as a password's file, are seen within
// seconds.
//
// # Idempotency
//
// The key is stored by the batch that accepts the mail. What was answered is stored with it where the log entry will not
// say it later: 202 and 502. After a crash in between, what the entry says is the answer. A refused send leaves its key
// free.
//
// # Handing over
//
// Transport makes one attempt at a time and sorts what comes of it into accepted, temporary, permanent, permanent until the
// settings change, and uncertain: nobody but the server knows what became of a mail whose final dot is out, so the reply
// to it is waited for, ten minutes if need be, and a mail whose reply is lost is said to be uncertain, never failed. What
// an outcome is follows from how far the attempt came and from reply codes and error types, never from texts.
//
// Where a server takes several commands at a time (RFC 2920), MAIL, RCPT and DATA go out together, and the first refusal decides
// as it does one by one. Nothing of a message is sent before all three were taken.
//
// Nothing a server does costs more than its limits of time and 1 MiB of replies. TLS is verified and never given up for
// clear text; credentials go over TLS, or to loopback. Each address is checked right before it is connected to, against
// the list in guard.go. Connections are used again for mail to the same Server, within bounds for each and in total.
package mailer
