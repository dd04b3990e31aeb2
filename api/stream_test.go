package api_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
)

// A stream is an open event stream.
type stream struct {
	*wire
	head *http.Response
	body *bufio.Reader
	last string // id, as a client would send it
}

// An event is one that a client would dispatch, or a comment.
type event struct{ id, kind, data string }

const comment = "(comment)"

// events opens a stream; after is the Last-Event-ID, "" for none.
func (h *house) events(key, after string) *stream {
	h.t.Helper()
	return h.dial().events("1.1", key, after)
}

func (w *wire) events(version, key, after string) *stream {
	w.t.Helper()
	return w.eventsLater(version, key, after)()
}

// eventsLater asks for a stream, and returns a function that waits for its head.
func (w *wire) eventsLater(version, key, after string) (open func() *stream) {
	w.t.Helper()
	w.t.Cleanup(func() { w.Close() }) // the server waits a moment for it
	request := "GET /api/platform/events HTTP/" + version + "\r\nHost: test\r\nX-PLATFORM-KEY: " + key + "\r\n"
	if after != "" {
		request += "Last-Event-ID: " + after + "\r\n"
	}
	w.send(request + "\r\n")
	return func() *stream {
		w.t.Helper()
		head, err := http.ReadResponse(w.r, nil)
		if err != nil {
			w.t.Fatalf("no answer: %v", err)
		}
		return &stream{wire: w, head: head, body: bufio.NewReader(head.Body), last: after}
	}
}

// next reads on as a client does that follows the HTML standard.
func (s *stream) next() (e event, err error) {
	for {
		line, err := s.body.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if s.last = e.id; e.id == "" {
				s.last = ""
			}
			if e.data != "" || e.kind == comment {
				return e, nil
			}
		case name == "id":
			e.id = value
		case name == "event":
			e.kind = value
		case name == "data":
			e.data += value
		case name == "":
			e.kind = comment
		case name != "retry":
			return e, fmt.Errorf("unknown line %q", line)
		}
	}
}

// want checks the next event but for comments.
func (s *stream) want(kind, data string) event {
	s.t.Helper()
	for {
		e, err := s.next()
		if err != nil {
			s.t.Fatalf("%v, want %s %s", err, kind, data)
		}
		if e.kind == comment {
			continue
		}
		at, err := catalog.ParsePosition(e.id)
		if err != nil || e.kind != kind || !strings.Contains(e.data, data) ||
			!strings.HasPrefix(e.data, `{"revision":`+strconv.FormatUint(at.Generation, 10)) {
			s.t.Fatalf("got %+v, want %s %s", e, kind, data)
		}
		return e
	}
}

// begins checks the first blocks of a stream: retry, what was missed with at least the wanted line, and a position alone.
func (s *stream) begins(missed string, at catalog.Position) {
	s.t.Helper()
	var text strings.Builder
	for end := "\n\nid: " + at.String() + "\n\n"; !strings.HasSuffix(text.String(), end); {
		line, err := s.body.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%v after %q", err, text.String())
		}
		text.WriteString(line)
	}
	if got := text.String(); !strings.HasPrefix(got, "retry: ") || !strings.Contains(got, missed) || strings.Contains(got, "\n:") {
		s.t.Errorf("the stream begins with %q, want %q", got, missed)
	}
}

// ends checks that the stream ends in good order, with nothing but comments before.
func (s *stream) ends() {
	s.t.Helper()
	for {
		e, err := s.next()
		if err == nil && e.kind == comment {
			continue
		}
		if !errors.Is(err, io.EOF) {
			s.t.Errorf("got %+v, %v; want the end of the stream", e, err)
		}
		s.closedGently()
		return
	}
}

// edit applies a project as the content of a file.
func (h *house) edit(p catalog.ProjectConfig) {
	h.t.Helper()
	h.apply(p.Project.Slug+".hcl", &catalog.Declared{Projects: []catalog.ProjectConfig{p}})
}

// streams reads the gauge of open streams.
func (h *house) streams() int { return h.server.Streams() }
