// Package events answers GET /events: it serves open streams of the change feed as Server-Sent Events (HTML standard,
// section 9.2).
//
// What it promises. A stream starts behind a revision and gets each later event that its key may see, in order, each
// with an id that the client sends back as Last-Event-ID. A comment shows every Heartbeat that the connection lives. A
// stream ends when its client hangs up or takes a write longer than Options.Write, when its key is revoked, replaced or
// expires, and when Stop is called; the events that happened before Stop are delivered first. A key that reaches other
// projects than before gets a reset, as a client that missed events does.
//
// How it works. Each stream is one goroutine. It waits in a read of its connection: the read returns when the client
// hangs up, and its deadline is the time of the next comment. Streams has one more goroutine, which waits for the feed
// and then moves the read deadlines into the past, a few at a time. So a hang-up, an event, a comment and the shutdown
// all end the same wait.
//
// Memory. An idle stream holds its goroutine and no buffer. A stream that sends holds about 16 KiB of text; larger
// events are written from the feed's own bytes. A slow client costs no more than that: its stream falls behind in the
// feed's history and gets a reset if the history no longer reaches back.
//
// What it needs. The connection of a request that is checked up to its key, and Live, which has the feed and the keys of
// now. Package gate lends the connection without its framing.
package events
