// Package trace follows one request through the parts of the service and sends what it saw to an OpenTelemetry
// collector, as OTLP over HTTP in JSON.
//
// A Span is a step of a traced request. It travels in a context.Context: Start makes the child of the span in the
// context. Where there is none, all of it is a nil *Span, whose methods do nothing: a request that is not traced costs a
// look into its context at each step, and nothing on the resolve hit path, which has no context. Whether a request is
// traced is its client's decision, the sampled bit of a W3C traceparent; this package makes no decision of its own.
//
// An Exporter has a ring of 4,096 ended spans, which it sends once a second or at 512 spans. It never blocks: while the
// collector is away, the ring drops its oldest spans and counts them, and what it still has is sent when the collector is
// back. A batch that the collector refuses for good is dropped and counted too.
//
// The OpenTelemetry SDK was left out: its OTLP exporter links 66 packages of gRPC although it speaks HTTP, and its
// tracer costs on every request, sampled or not. What is lost with it: sampling of our own, tracestate, baggage, span
// events, protobuf and compression.
package trace
