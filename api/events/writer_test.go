package events

import (
	"bytes"
	"io"
	"net/http/httputil"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// TestWriter: the body is the same with and without chunks, for events of every size around the bounds, and a large
// event is written from its own bytes.
func TestWriter(t *testing.T) {
	var sizes []int
	for _, bound := range []int{0, maxText, 2 * maxText, 3 * maxText} {
		for d := -60; d <= 60; d += 20 {
			sizes = append(sizes, max(bound+d, 0))
		}
	}
	for _, chunked := range []bool{false, true} {
		var wire bytes.Buffer
		var data []byte // of the event that is being written
		shared := false
		w := newWriter([]byte("HEAD"), chunked, func(b []byte) error {
			shared = shared || len(data) > 0 && len(b) > 0 && &b[0] == &data[0]
			wire.Write(b)
			return nil
		})
		const epoch = "0123456789abcdef"
		w.id(catalog.Position{Epoch: epoch, Generation: 7})
		want := "id: " + epoch + ".7\n\n"
		for i, size := range sizes {
			e := &resolver.Event{Epoch: epoch, Revision: uint64(i), Kind: resolver.ProjectChanged, Data: bytes.Repeat([]byte{'x'}, size)}
			data, shared = e.Data, false
			if err := w.event(e); err != nil {
				t.Fatal(err)
			}
			if size > 2*maxText && !shared {
				t.Errorf("an event of %d bytes was copied", size)
			}
			want += "id: " + epoch + "." + strconv.Itoa(i) + "\nevent: project.changed\ndata: " + strings.Repeat("x", size) + "\n\n"
		}
		w.comment()
		want += ":\n\n"
		if err := w.end(); err != nil {
			t.Fatal(err)
		}
		text := wire.String()
		if !strings.HasPrefix(text, "HEAD") {
			t.Fatalf("the response begins with %.20q", text)
		}
		text = text[len("HEAD"):]
		if chunked {
			decoded, err := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(text)))
			if err != nil {
				t.Fatal(err)
			}
			text = string(decoded)
		}
		text = regexp.MustCompile(`^retry: [2-5]\d\d\d\n\n`).ReplaceAllString(text, "")
		if text != want {
			t.Errorf("chunked %v: %d bytes, want %d", chunked, len(text), len(want))
		}
	}
}
