package api

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver"
)

// What a stream begins with. Clients wait for a time of their own before they come back, so that a restart does not
// bring all of them at the same moment.
const (
	leastRetry = 2 * time.Second
	mostRetry  = 5 * time.Second
)

// An eventWriter puts events into the form of a stream and sends them. Its errors are the connection's.
type eventWriter struct {
	send    func([]byte) error
	chunked bool   // else the end of the connection ends the stream, as HTTP/1.0 has it
	head    []byte // of the response; nil once it is sent
	text    []byte // of the stream, to be sent
}

const (
	// eventBuffer is about how much is sent at once. An event that is larger is sent as it is, not copied: a thousand
	// slow subscribers must not have a thousand copies.
	eventBuffer = 16 << 10
	// chunkRoom is kept free in front of the text for the chunk's size.
	chunkRoom = 8
)

// newEventWriter prepares the response's head, from what the handler has set.
func newEventWriter(ctx *fasthttp.RequestCtx, send func([]byte) error) eventWriter {
	w := eventWriter{send: send, chunked: ctx.Request.Header.IsHTTP11()}
	b := append(make([]byte, 0, 320), "HTTP/1.1 200 OK\r\nDate: "...)
	b = fasthttp.AppendHTTPDate(b, ctx.Time())
	for name, value := range ctx.Response.Header.All() {
		switch string(name) {
		case "Content-Length", "Date", "Connection":
			continue
		}
		b = append(append(append(append(b, "\r\n"...), name...), ": "...), value...)
	}
	b = append(b, "\r\nConnection: close"...)
	if w.chunked {
		b = append(b, "\r\nTransfer-Encoding: chunked"...)
	}
	w.head = append(b, "\r\n\r\n"...)
	retry := leastRetry + rand.N(mostRetry-leastRetry)
	w.text = append(w.begin(nil), "retry: "...)
	w.text = append(strconv.AppendInt(w.text, retry.Milliseconds(), 10), "\n\n"...)
	return w
}

// begin makes room for a chunk's size.
func (w *eventWriter) begin(b []byte) []byte {
	return append(b[:0], "\x00\x00\x00\x00\x00\x00\x00\x00"...)
}

// id tells the client what to come back with.
func (w *eventWriter) id(revision uint64) {
	w.text = strconv.AppendUint(append(w.text, "id: "...), revision, 10)
	w.text = append(w.text, "\n\n"...)
}

// comment is what shows both ends that the connection lives.
func (w *eventWriter) comment() { w.text = append(w.text, ":\n\n"...) }

func (w *eventWriter) event(e *resolver.Event) error {
	w.text = strconv.AppendUint(append(w.text, "id: "...), e.Revision, 10)
	w.text = append(append(w.text, "\nevent: "...), e.Kind...)
	w.text = append(w.text, "\ndata: "...)
	if len(e.Data) > eventBuffer {
		if err := w.flush(); err != nil {
			return err
		}
		if err := w.sendLarge(e.Data); err != nil {
			return err
		}
	} else {
		w.text = append(w.text, e.Data...)
	}
	w.text = append(w.text, "\n\n"...)
	if len(w.text) > eventBuffer {
		return w.flush()
	}
	return nil
}

// flush sends what there is.
func (w *eventWriter) flush() error {
	if w.head != nil {
		if err := w.send(w.head); err != nil {
			return err
		}
		w.head = nil
	}
	size := len(w.text) - chunkRoom
	if size <= 0 {
		return nil
	}
	b := w.text[chunkRoom:]
	if w.chunked {
		var hex [chunkRoom]byte
		digits := append(strconv.AppendUint(hex[:0], uint64(size), 16), "\r\n"...)
		b = w.text[chunkRoom-len(digits):]
		copy(b, digits)
		b = append(b, "\r\n"...)
	}
	err := w.send(b)
	w.text = w.begin(w.text)
	return err
}

// sendLarge sends a part of the text as it is. Nothing else may be waiting.
func (w *eventWriter) sendLarge(b []byte) error {
	if !w.chunked {
		return w.send(b)
	}
	if err := w.send(append(strconv.AppendUint(nil, uint64(len(b)), 16), "\r\n"...)); err != nil {
		return err
	}
	if err := w.send(b); err != nil {
		return err
	}
	return w.send([]byte("\r\n"))
}

// end sends what there is, and that nothing follows.
func (w *eventWriter) end() error {
	if err := w.flush(); err != nil || !w.chunked {
		return err
	}
	return w.send([]byte("0\r\n\r\n"))
}
