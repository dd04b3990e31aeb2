// Package ops serves the operations listener (serve --ops-listen): probes, metrics, the status, profiles, and the
// commands that reload the config files and write a backup.
//
// What it promises. Every figure is read when it is asked for; nothing is counted here (package history keeps the last
// hour for /status and the console). /livez, /readyz and /metrics
// answer anyone. /status answers requests whose Host is a name or address of this machine, so that no web page reads it
// by DNS rebinding. Commands and profiles answer only this machine and the networks of Options.Allow, and never a web
// page of another origin. A Unix socket has file permissions instead. There is no key: keep the listener private.
//
// What it needs. A resolver, the config files (Config), and the figures of the HTTP server (Figures), the event streams
// (Streams) and the mailer (Mail), by interfaces that it declares. It does not import package api.
//
// What it does not do. It runs on net/http, not on the gate of package api: it serves operators, at a low rate, and
// must answer while the gate is under attack. It does not decide when the server is ready; its owner calls SetReady.
//
// The only importer of the Prometheus client. Other packages count with atomics and yield their counts.
package ops
