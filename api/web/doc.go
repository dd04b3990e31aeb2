// Package web is what every handler of the API needs and no handler is. A Request is the call that a handler works on:
// it has the key, reads path, query and body, compares ETags, and answers in the envelope. Form, Query and Paging are
// what it reads; Fail answers with an error, whose HTTP status and details are known here alone.
//
// Everything from a client is read strictly: a body is one JSON object in UTF-8 without repeated names, a parameter is
// given once, and every problem is named at once, with its field. What is echoed to a client is bounded in number and
// length.
//
// A Writer makes the writes of handlers: write.go lists their steps. Handlers of calls on one project, or on a part of
// it, get it from OnProject and OnPart, which check the key.
//
// A body is read last, after all that can be checked without it, and from the connection: the HTTP library never sees
// it. A BodyBudget bounds the memory of all bodies, in total and per key.
//
// The package knows no route and no handler, checks no key and opens no connection. Its errors are *catalog.Error, and
// StatusOf has the HTTP status of each code; the few calls that answer with another one say why. Of the resolver it
// needs what a key covers, and the forms of queries and answers. What resolve uses allocates nothing: SecondOf,
// EndEnvelope, RequestIDs, MatchesETag and RefusedAnswer.
package web
