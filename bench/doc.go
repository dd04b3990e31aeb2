// Command bench measures fingerpost on this machine, together with baselines and other servers in the same run.
//
//	go -C bench run . all                     every measurement, in less than ten minutes
//	go -C bench run . resolve                 one of them; "go -C bench run . help" lists all
//	go -C bench run . compare A.json B.json   what became better or worse between two results
//	go -C bench run . report                  the figures in README.md, from the results
//
// It generates a seeded corpus, builds the real binary, starts it and talks to it over real sockets. It checks every
// answer's content, not only its status. It prints the results as a table, and saves them in bench/results with the
// machine's fingerprint. README.md describes the methods, the baselines, and what the figures do
// not show.
//
// A command is a function that returns a report: rows, each with its baseline. Whatever it starts or changes ends with
// the command, see bench.atEnd. What it compares are sides: each has workers that ask, write or send. A load lets them
// work for a while, a turn measures one round of a load, and bench.alternate is the only loop over rounds.
//
// It needs Linux.
package main
