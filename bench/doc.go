// Command bench measures fingerpost on the machine at hand, beside a baseline that is measured in the same run.
//
//	go run ./bench resolve    requests a second and CPU per resolve hit, against the floor
//	go run ./bench scale      the hit path at 1,000 and at 1,000,000 domains
//	go run ./bench miss       CPU of a resolve that goes to the store, against one that the cache answers
//	go run ./bench reload     from save to visible; resolve while a file is rewritten every 100 ms
//	go run ./bench write      durable writes, against a bare program with the same fsyncs; resolve while writes come in
//	go run ./bench checkout   resolve while git switches every file at once
//	go run ./bench start      cold start, warm start, resident memory
//	go run ./bench feed       resolve while files change, with 1,000 subscribers of the change feed and without
//	go run ./bench mail       sends against a bare SMTP client with the same syncs; beside a dead server; the mail log
//	go run ./bench flood      memory and hit ratio around 1,000,000 unknown domains
//
// It makes a seeded corpus, builds the real binary, starts it and talks to it over real sockets. Every answer's
// content is checked, not only its status. -json prints the report as JSON, -h lists the flags of a command.
//
// The floor is a bare fasthttp handler in a process of its own: it reads the key header and the query argument and
// writes one of 100,000 ready bodies of the same size as fingerpost's. A handler with one constant body would flatter
// itself, since nothing would ever be out of the processor's caches.
//
// The bare program, the baseline of write, makes the system calls without which a file's new content is not durable:
// temporary file, fsync, exchange, fsync of the folder, and one Pebble batch without sync. It has as many workers as there
// are clients, and a folder of its own on the same disk: that of -work.
//
// The bare mailer, the baseline of mail, is net/smtp in a process of its own: one synced batch of Pebble for each mail,
// then MAIL to the final dot, over as many connections as fingerpost has. Both send to the same sink, in this process.
// Each mail has a mark, and one that was reported as sent and is not at the sink once and whole voids the run. The log
// that is read has been written by real sends; its store stays in -work, so that -log-entries 1000000 takes its time once.
//
// Server and load share the machine, so the load is made cheap: one thread, epoll, prebuilt requests, no allocation.
// Rounds are interleaved, A B A B, and ratios are taken within a round, so that a machine that slows down half-way
// slows both sides. At a constant rate, latency counts from the moment at which a request was due, not from the moment
// at which a connection was free: a stall is seen in full.
//
// Only Linux has what this needs (epoll, /proc).
package main
