// Package domains is the command "fingerpost domains" for customers' own domains: which DNS records to set, whether a
// domain is ready, and which domains need a person.
//
//   - records: from the files alone; no name server is asked, so it works before anything runs;
//   - check: a server checks the domain and notes the result; without --url the name servers are asked from here, by the
//     rules of the files, and nothing is changed;
//   - list: the domains of a server, or of the store of one that does not run, selected by state.
//
// The states, records and hints are those of package dcv, in words; this package decides nothing about a domain.
package domains
