package faultdns

// A Fault is what a server does instead of answering well.
type Fault int

// The faults.
const (
	Healthy       Fault = iota
	Silent              // no answer
	ServFail            // the code SERVFAIL
	Refused             // the code REFUSED
	Lame                // an answer without authority
	Upward              // a referral to the root
	Truncated           // over UDP only the beginning; the answer over TCP
	TruncatedShut       // over UDP only the beginning, over TCP nothing
	Drip                // over UDP only the beginning, over TCP a byte at a time without an end
	WrongID             // the answer to another id
	WrongQuestion       // the answer to another question
	Strays              // hundreds of answers to another id
	Forged              // an answer to another id with other records, then the right one
	Twice               // the right answer, then another one
	Malformed           // bytes that are no message
	Short               // the header promises more records than there are
	NoEDNS              // FORMERR for questions with EDNS
	NoReferral          // answers from its own zone, also for names of a zone below
	Bogus               // SERVFAIL unless the question has CD: a resolver that finds signatures broken
)
