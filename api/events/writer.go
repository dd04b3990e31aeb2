package events

import (
	"math/rand/v2"
	"strconv"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A client is told to wait a time of its own before it reconnects, so that a restart does not bring all clients back at
// the same moment.
const (
	leastRetry = 2 * time.Second
	mostRetry  = 5 * time.Second
	// After the server's end: the next process mostly answers by then, and not all subscribers come back at once.
	leastAway = 200 * time.Millisecond
	mostAway  = 2 * time.Second
)

// maxText is about how much text is written at once. A larger event is written alone, and one of more than twice the
// size from the feed's bytes, without a copy: a thousand slow streams must not hold a thousand copies.
const maxText = 16 << 10

// A writer frames events and writes them. Its errors are those of write.
type writer struct {
	write   func([]byte) error
	chunked bool   // otherwise the end of the connection ends the body, as in HTTP/1.0
	head    []byte // of the response; nil once it is written
	text    []byte // to be written
}

func newWriter(head []byte, chunked bool, write func([]byte) error) writer {
	w := writer{write: write, chunked: chunked, head: head}
	w.retry(leastRetry, mostRetry)
	return w
}

// retry sets after which random time the client comes back when the stream has ended.
func (w *writer) retry(least, most time.Duration) {
	after := least + rand.N(most-least)
	w.text = append(w.text, "retry: "...)
	w.text = append(strconv.AppendInt(w.text, after.Milliseconds(), 10), "\n\n"...)
}

// id sets what the client sends back as Last-Event-ID.
func (w *writer) id(at catalog.Position) {
	w.position(at)
	w.text = append(w.text, "\n\n"...)
}

func (w *writer) position(at catalog.Position) {
	w.text = append(append(append(w.text, "id: "...), at.Epoch...), '.')
	w.text = strconv.AppendUint(w.text, at.Generation, 10)
}

// comment shows both ends that the connection lives.
func (w *writer) comment() { w.text = append(w.text, ":\n\n"...) }

func (w *writer) event(e *resolver.Event) error {
	w.position(e.Position())
	w.text = append(append(w.text, "\nevent: "...), e.Kind...)
	w.text = append(w.text, "\ndata: "...)
	if len(e.Data) > maxText {
		if err := w.flush(); err != nil {
			return err
		}
		if err := w.chunk(e.Data); err != nil {
			return err
		}
	} else {
		w.text = append(w.text, e.Data...)
	}
	w.text = append(w.text, "\n\n"...)
	if len(w.text) > maxText {
		return w.flush()
	}
	return nil
}

// flush writes the head and the text.
func (w *writer) flush() error {
	if w.head != nil {
		if err := w.write(w.head); err != nil {
			return err
		}
		w.head = nil
	}
	if len(w.text) == 0 {
		return nil
	}
	err := w.chunk(w.text)
	w.text = w.text[:0]
	return err
}

// chunk writes b as a chunk.
func (w *writer) chunk(b []byte) error {
	if !w.chunked {
		return w.write(b)
	}
	size := append(strconv.AppendUint(nil, uint64(len(b)), 16), "\r\n"...)
	if len(b) <= 2*maxText {
		return w.write(append(append(size, b...), "\r\n"...))
	}
	if err := w.write(size); err != nil {
		return err
	}
	if err := w.write(b); err != nil {
		return err
	}
	return w.write([]byte("\r\n"))
}

// end writes the text and the end of the body.
func (w *writer) end() error {
	if err := w.flush(); err != nil || !w.chunked {
		return err
	}
	return w.write([]byte("0\r\n\r\n"))
}
