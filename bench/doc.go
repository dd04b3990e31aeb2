// Command bench measures fingerpost on the machine at hand, beside baselines and other servers that are measured in the
// same run.
//
//	go run ./bench all                     every measurement, in less than ten minutes
//	go run ./bench resolve                 one of them; "go run ./bench help" lists all
//	go run ./bench compare A.json B.json   what became better or worse between two results
//	go run ./bench report                  charts and figures for README.md, from the results
//
// It makes a seeded corpus, builds the real binary, starts it and talks to it over real sockets. Every answer's
// content is checked, not only its status. What a run finds it prints as a table, or with -json as JSON, and keeps in
// bench/results with the machine's fingerprint. README.md says how all is measured, and what the figures do not say.
//
// The floor is a bare fasthttp handler in a process of its own: it reads the key header and the query argument and
// writes one of as many ready bodies as there are projects, of the same size as fingerpost's. A handler with one constant
// body would flatter itself, since nothing would ever be out of the processor's caches.
//
// The bare program, the baseline of write, makes the system calls without which a file's new content is not durable:
// temporary file, fsync, exchange, fsync of the folder, and one Pebble batch without sync. It has as many workers as there
// are clients, and a folder of its own on the same disk: that of -work.
//
// The bare mailer, the baseline of mail, is net/smtp in this process: one synced batch of Pebble for each mail, then MAIL
// to the final dot, over as many connections as fingerpost has. Both send to the same sink, also in this process. Each
// mail has a mark; a mail that was reported as sent and is not at the sink once and whole voids the run. The log that is
// read has been written by real sends; its store stays in -work, so that -log-entries 1000000 takes its time once.
//
// Server and load share the machine, so the load is made cheap: one thread, epoll, prebuilt requests, no allocation.
// Rounds are interleaved, A B A B, and ratios are taken within a round, so that a machine that slows down half-way
// slows both sides. At a constant rate, latency counts from the moment at which a request was due, not from the moment
// at which a connection was free: a stall is seen in full.
//
// A writeSide writes or sends in rounds: fingerpost, the bare program, the bare mailer, a server on which mail waits.
// One loop, turns, serves all of them.
//
// A command is a function that returns a report: rows, each beside its baseline, and charts. It is listed in commands,
// by which all, report and the smoke test find it; figures that releases are to be remembered by go into historyColumns.
//
// Only Linux has what this needs (epoll, /proc).
package main
