// Package api speaks HTTP (contract http.md): it turns requests into questions to the resolver and answers into the
// envelope, and it keeps bad input and slow or hostile peers away from the rest of the house.
//
// A request goes through three layers. Package gate admits connections within the caps, lets only strictly framed messages
// through, one at a time, and hands plain resolve requests to Server.AnswerPlain (fastpath.go). fasthttp parses the heads
// of all others. Server.handle (routes.go) gives each its request id, checks the key, runs the handler and records it; the
// handler reads the body when all that does not need it is good (body.go). resolve.go has a shorter way that allocates
// nothing.
//
// Writes go to the config folder (write.go, Files), never to the store. Sends (send.go) wait for an SMTP server within the
// mailer's budget, in the handler: they hold nothing of the request by then but a connection, and have a share of those
// only (waiting.go). The change feed (events.go) takes its connections out of the library's hands: an open stream is a
// goroutine that waits for the client to hang up, and no more, until there is something to send (subscriber.go).
//
// Bearer tokens of end users are checked for gateways (me.go), with the token rules in one place (token.go) and the secret
// from the resolver. The token is the credential there; no key is asked for.
//
// Bytes that fasthttp hands out are its own and change under whoever keeps them: what outlives a handler is copied.
// Only errors.go knows HTTP status codes.
package api
