// Package mailer sends the mail of projects; send.go shows the steps of a send from top to bottom. It renders the
// template, composes the message, stores both, makes an attempt, and repeats it until the mail has reached its end.
//
// It promises that no mail that it has accepted is lost. No byte goes to a server before the Ledger has recorded that
// an attempt is running, so a Mailer can end at any point. The next one treats a running attempt as uncertain and
// repeats it with the same bytes and Message-ID. The states of a mail in the log:
//
//	PENDING    waits for its first attempt within its request: all places of its project are taken
//	SENDING    an attempt is running
//	RETRYING   waits for the next attempt; without nextAttemptAt, one is running that outlived its request's budget,
//	           or it waits for what waitingFor says
//	SENT, FAILED, EXPIRED    ends
//	SUPPRESSED               end: the suppression list of the project has the recipient
//
// # Fairness
//
// Each project has an outbox with places for attempts, so no project waits for the server of another. Sends within a
// request go before queued mail. Outboxes get the slots for queued mail in the order of asking, and outboxes whose
// server fails get half of them at most. Below that, package smtp divides the connections among the servers. A server
// that cannot be reached is not tried for 3 seconds, then twice as long each time, up to a minute. Then one queued mail
// tries; the others keep their attempts.
//
// # Bounds
//
// The queue is bounded per project, in total, and by the room on the ledger's disk: a send beyond that is RATE_LIMITED
// and leaves nothing behind. A queued mail takes 24 bytes of memory. Messages in memory take 64 MiB at most
// (bounds.go); a mail beyond that is queued and read from the ledger when its turn comes.
//
// # What stops a project's mail
//
//   - The Mailer is Held: mail that an earlier process has queued waits until the files have been read.
//   - The breaker is open: an attempt has shown that the SMTP config does not work (AUTH, TLS, the sender, relaying).
//     Mail waits until the config changes, including secrets and CA, until TestSMTP passes with the same settings, or
//     until TryAgain. New mail is queued without an attempt; its entry and /status say why.
//   - The project is suspended, has no active SMTP config (its own or, through the defaults block, a shared one), or a
//     secret cannot be opened on this node: mail waits, and EXPIRES at its max_age. mailEnabled is checked when a mail is accepted, not later.
//   - The project is deleted: mail FAILS with NOT_FOUND once the project has been missing for a minute, because a move
//     or a checkout removes files for a moment.
//
// ConfigChanged applies such a change at once. A change that no event reports, such as a new password file, is found
// within seconds.
//
// The package needs a Ledger that syncs each batch, the Projects, and a Carrier that makes one attempt. It does not
// speak SMTP, store anything itself, or read files.
package mailer
