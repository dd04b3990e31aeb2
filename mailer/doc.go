// Package mailer sends the mail of projects: send.go tells the way of a send from top to bottom. It renders the template, composes
// the message, stores both, makes an attempt, and goes on with attempts until the mail has reached its end.
//
// It promises that a mail it has accepted is neither lost nor forgotten. No byte goes to a server before the Ledger says that an
// attempt is under way, so a Mailer can end at any point, and the next one goes on: it takes an attempt that was under way as
// uncertain and repeats it with the same bytes and Message-ID. The states of a mail in the log:
//
//	PENDING    waits for its first attempt within its request: all places of its project are taken
//	SENDING    an attempt is under way
//	RETRYING   waits for the next attempt; without nextAttemptAt, one is under way that outlived its request's budget
//	SENT, FAILED, EXPIRED    ends
//
// # Fairness
//
// Each project has an outbox with places for attempts, so no project waits for the server of another. Sends within a request go
// before queued mail. Outboxes take turns at the slots for queued mail, and outboxes whose server fails get half of them at most.
// Behind that, package smtp shares the connections out between servers. A server that cannot be reached is left alone for
// 3 seconds, then twice as long each time up to a minute; one queued mail then tries, and the others keep their attempts.
//
// # Bounds
//
// The queue is bounded by project, in all, and by the room on the ledger's disk: a send beyond that is RATE_LIMITED and leaves
// nothing behind. A mail that waits takes 24 bytes of memory. Messages in memory take 64 MiB at most (bounds.go); a mail beyond
// that is queued and read back when its turn comes.
//
// # What stops a project's mail
//
//   - The Mailer is Held: mail that an earlier process has queued waits until the files have been read.
//   - The breaker is open: an attempt has shown that the SMTP config does not work (AUTH, TLS, the sender, relaying). Mail waits until
//     the config changes, secrets and CA included, until TestSMTP passes with the same settings, or until TryAgain. New mail is
//     queued without an attempt; its entry and /status say why.
//   - The project is suspended, has no active SMTP config, or a secret cannot be opened on this node: mail waits, and EXPIRES at
//     its max_age. mailEnabled counts when a mail is accepted, not later.
//   - The project is deleted: mail FAILS with NOT_FOUND once the project has been missing for a minute, because files are moved
//     and checked out anew.
//
// ConfigChanged makes such a change count at once; a change that no event reports, such as that of a password's file, counts within
// seconds.
//
// The package needs a Ledger that syncs each batch, the Projects, and a Carrier that makes one attempt. It does not speak SMTP,
// store anything itself, or read files.
package mailer
