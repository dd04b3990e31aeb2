// Package smtp makes one attempt to hand a mail over to an SMTP server, and reports the outcome.
//
// A Transport connects, does TLS and AUTH, and takes the mail through the stages of an attempt. It promises an Outcome
// for each attempt: accepted, temporary, permanent, permanent until the settings change, or uncertain. What an outcome
// is follows from the stage that the attempt reached, and from reply codes and error types, never from texts (two
// exceptions: refused relaying, and a refused name in EHLO; see namesRelay and namesHELO). Once the final dot is out, only the server knows whether it
// accepted the mail: a Transport waits for its reply, up to ten minutes, and a mail whose reply is lost is uncertain,
// never failed.
//
// The limits hold against every server: a server costs no more than its limits of time and 1 MiB of replies. TLS is
// verified and never falls back to clear text; credentials go over TLS, or to loopback. Each address is checked right
// before it is connected to, against the networks listed in package publicnet.
//
// go-smtp's client speaks EHLO, MAIL, RCPT, DATA and the message, over a connection that counts and limits (line.go).
// STARTTLS, AUTH and RSET are commands of our own, because the client's do not suffice: it says EHLO localhost
// before STARTTLS, goes on talking after a refused AUTH, and says EHLO again after RSET. The ways to log in are
// net/smtp's PLAIN and CRAM-MD5, XOAUTH2 with a token of package oauth, and a LOGIN of our own: go-sasl's takes
// "Password:" as the only question, and servers ask in other words.
//
// Connections are kept for later mail to the same Server, within bounds for each Server and in total.
//
// The package needs nothing but the message and the Server with its secrets opened. It does not retry: package mailer
// decides when the next attempt is due. It knows no projects, keeps nothing on disk, and logs nothing.
package smtp
