// Command bench measures fingerpost on this machine, together with baselines and other servers in the same run.
//
//	go run ./bench all                     every measurement, in less than ten minutes
//	go run ./bench resolve                 one of them; "go run ./bench help" lists all
//	go run ./bench compare A.json B.json   what became better or worse between two results
//	go run ./bench report                  charts and figures for README.md, from the results
//
// It generates a seeded corpus, builds the real binary, starts it and talks to it over real sockets. It checks every
// answer's content, not only its status. It prints the results as a table, or as JSON with -json, and saves them in
// bench/results with the machine's fingerprint. README.md describes the methods, and what the figures do not show.
//
// The floor is a bare fasthttp handler in a process of its own. It reads the key header and the query argument, and
// writes one of as many ready bodies as there are projects, of the same size as fingerpost's. A handler with one
// constant body would look too fast, because the body would never leave the processor's caches.
//
// The bare program, the baseline of write, makes only the system calls that make a file's new content durable:
// temporary file, fsync, exchange, fsync of the folder, and one Pebble batch without sync. It has as many workers as
// there are clients, and a folder of its own on the same disk: that of -work.
//
// The bare mailer, the baseline of mail, is net/smtp in this process: one synced Pebble batch for each mail, then MAIL
// to the final dot, over as many connections as fingerpost has. Both send to the same sink, also in this process. Each
// mail has a mark. The run fails if a mail that was reported as sent is not at the sink exactly once and complete. Real
// sends have written the log that is read; its store stays in -work, so that -log-entries 1000000 takes long only once.
//
// Server and load share the machine, so the load is cheap: one thread, epoll, prebuilt requests, no allocation. Rounds
// are interleaved, A B A B, and ratios are taken within a round, so that a machine that slows down half-way slows both
// sides. At a constant rate, latency counts from the time at which a request was due, not from the time at which a
// connection was free, so that a stall counts in full.
//
// A writeSide writes or sends in rounds: fingerpost, the bare program, the bare mailer, a server on which mail waits.
// One loop, turns, serves all of them.
//
// A command is a function that returns a report: rows, each with its baseline, and charts. The list commands is what
// all, report and the smoke test run; historyColumns lists the figures that the history of releases shows.
//
// The load needs Linux (epoll, /proc).
package main
