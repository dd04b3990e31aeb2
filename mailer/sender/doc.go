// Package sender finds out whether receivers accept mail in a project's name: whether SPF, DKIM and DMARC of the domain in
// From: fit each other and the way by which the mail goes.
//
// What it promises. Examine gives a line for each finding, with the exact record where one would mend it. A name server
// that does not answer is a line of level Unknown, and never an error or a warning. A Service keeps the last result of
// each project, checks the projects that send mail daily, and tells once of a state that has got worse.
//
// What it needs. A DNS that asks records, with the bounds and shares of package authdns; the projects; notes in the
// ledger. The addresses from which a relay sends are not known here, so SPF is read as a whole: which records it has,
// how many look-ups it costs, and whether it names what smtp_config says that it must (spf_include). With an address
// blitiri.com.ar/go/spf says what a receiver would.
//
// What it does not do. It sends no mail and asks no mail server. It proves no signature: Received reads what the server
// of a test mail has found (Authentication-Results, RFC 8601), and believes the topmost server alone.
package sender
