// Package authdns asks DNS, and a TLS server, about one domain, and returns what it found as dcv.Facts. It judges nothing.
//
// Records are asked at all authoritative servers of their zone, without recursion. The servers are found by walking down
// from the public suffix, whose servers the configured resolver names, along the delegations that the servers themselves
// give; where that leads nowhere (names that only an inner resolver knows), the walk begins at the zone that the resolver
// names. Addresses of servers come from the delegation or from the resolver. A chain of CNAMEs is followed across zones,
// for at most 8 steps.
//
// An answer is definite if a server that claims authority (AA) gave data, NXDOMAIN or NODATA. Anything else is a word in
// Answer.Error: "time-out", "unreachable", "lame", "malformed", "wrong id" (only answers to other questions came), "too
// long", "cannot be asked" (what is private or missing inside; only the log has the address), or the code of the server, as SERVFAIL and REFUSED. UDP comes first, with EDNS 1232;
// TCP follows truncation. A server that was silent is asked once more, and after that no more in the same check. A check
// has a limit of time and of questions; what they left out is a "time-out" or "too many questions".
//
// It contacts the resolver, public addresses and those that Options.Allow adds, and nothing else: an answer cannot lead
// it to an inner service. TLS goes only to addresses that are a target of the policy, and nothing is sent after the
// handshake. Rates and open questions are bounded for all checks of a Checker together, and shared by project in rounds;
// answers, and what is kept of them, are bounded too, whatever a server sends.
//
// No type of the DNS library is part of an exported name: who needs a Checker declares an interface with Check alone.
package authdns
