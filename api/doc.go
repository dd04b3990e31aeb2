// Package api speaks HTTP: it turns requests into calls of the resolver, the config files and the mailer, and their
// results into JSON envelopes. openapi.yaml describes it to clients.
//
// What it promises. Bad input gets an error that names every problem, and never a panic or a repaired meaning. Slow and
// hostile peers are bounded in connections, memory and time (Limits). A resolve hit allocates nothing. No error shows a
// path of the machine, a key or a password to a client; only package web knows HTTP status codes.
//
// A request goes through three layers. Package gate admits connections within the caps, lets only strictly framed
// messages through, one at a time, and hands plain resolve requests to Server.AnswerPlain (fastpath.go). fasthttp
// parses the heads of all others. Server.handle (routes.go) gives each its request id, checks the key, runs the handler
// and records it; the handler reads the body when all that does not need it is good. resolve.go has a shorter way that
// allocates nothing.
//
// A route's handler checks key, path, query and permission in this order, and reads the body last (package web).
// web/write.go lists the steps of a write, mailapi/send.go those of a send, resolve.go those of a resolve. Package
// events answers for the change feed. Package gateway answers gateways, on a listener of their own or with a key on the
// main one; fastcheck.go answers their plain checks. Options.Docs answers what is below /docs/.
//
// What it needs. A resolver to read from; Files, which takes the writes, an Explainer, which knows where values come
// from, and a Mailer, by interfaces that it declares. Writes go to the config folder only, never to the store.
//
// What it does not do. It does not watch files, render mail or speak SMTP. Probes, metrics and commands are in package
// ops.
//
// For handlers: the bytes that fasthttp hands out are valid only until the handler returns. Copy what must live longer.
package api
