// Package dcv decides about domain control validation: which records prove that a domain is a project's, and what the
// answers of name servers and of a TLS server mean for the three questions that people ask: is the domain theirs, does it
// point here, does its certificate work.
//
// Everything here is a function of values. Ways lists the records that prove a subject; Decide takes a state, the facts
// of one check and the time, and returns the next state with what should be written; Settle and Follow take in how the
// write ended and what people have written; Show makes of them what people and programs see, with hints.
//
// A project that has the uuid of a removed one (Subject.Reused) has its tokens, too: its proofs count after a miss.
//
// Two rules carry the package. Only a definite answer moves a state: time-outs, SERVFAIL and servers that are not
// responsible are shown, and change nothing. And people win: the service takes back only what it wrote itself.
//
// The time of the next check is a function of the state, too. Somebody waits for the checks of a pending domain, and for those
// of a domain that is trusted or proven for less than 7 days and not ready: these are dense at first, and hourly later. All
// other domains that are answered are checked daily.
//
// Package authdns asks and fills in Facts, package verify keeps states and calls both. dcv itself asks nobody, keeps
// nothing and has no clock. The rules follow the IETF draft on domain control validation
// (dnsop-domain-verification-techniques); without a secret in the token everybody can compute it, so that the record may
// be shown before the first question and survives a loss of all data.
package dcv
