package configsrc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

func wireOf(b []byte) wireReader { return wireReader{r: bufio.NewReader(bytes.NewReader(b))} }

// TestWireRoundTrip sends messages of each kind behind each other.
func TestWireRoundTrip(t *testing.T) {
	stamp := catalog.Stamp{Size: 1 << 40, ModTime: time.Unix(-5, 999_999_999), Changed: time.Unix(5, 1), Inode: 1 << 63, Hash: [32]byte{1, 31: 2}}
	answers := []apartAnswer{
		{},
		{sound: true, same: true, stamp: stamp},
		{sound: true, stamp: stamp, at: 1 << 40, packed: 300, bytes: 1 << 20, objects: 4, counts: counts{projects: 1, domains: 3},
			claims: []claim{{1}, {15: 2}}, deps: []catalog.Dep{{Path: "welcome.html", Stamp: stamp}}},
		{sound: true, stamp: stamp, claims: []claim{{3}}},
	}
	var sent bytes.Buffer
	w := wireWriter{w: bufio.NewWriter(&sent)}
	ask := apartAsk{path: "a/b.hcl", known: true, hash: stamp.Hash}
	ask.write(&w)
	err := w.send()
	for i := range answers {
		answers[i].write(&w)
		err = errors.Join(err, w.send())
	}
	if err := errors.Join(err, w.w.Flush()); err != nil {
		t.Fatal(err)
	}
	r := wireOf(sent.Bytes())
	var got apartAsk
	if err := r.next(); err != nil {
		t.Fatal(err)
	}
	if got.read(&r); got != ask || r.failed {
		t.Errorf("%+v became %+v", ask, got)
	}
	var answer apartAnswer // its memory is used again
	for i := range answers {
		if err := r.next(); err != nil {
			t.Fatal(err)
		}
		answer.read(&r)
		want := answers[i]
		same := answer
		same.claims, same.deps = append([]claim(nil), answer.claims...), append([]catalog.Dep(nil), answer.deps...)
		if !reflect.DeepEqual(same, want) || r.failed || len(r.left) > 0 {
			t.Errorf("%+v became %+v", want, same)
		}
	}
	if err := r.next(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last message: %v", err)
	}
}

// TestWireDamage cuts messages short and changes bytes: that is told, or is another message, and never more than that.
func TestWireDamage(t *testing.T) {
	var sent bytes.Buffer
	w := wireWriter{w: bufio.NewWriter(&sent)}
	whole := apartAnswer{sound: true, claims: make([]claim, 3), deps: []catalog.Dep{{Path: "x"}}}
	whole.write(&w)
	if err := errors.Join(w.send(), w.w.Flush()); err != nil {
		t.Fatal(err)
	}
	for n := range sent.Len() {
		r := wireOf(sent.Bytes()[:n])
		if err := r.next(); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes of %d: %v", n, sent.Len(), err)
		}
	}
	r := wireOf([]byte{0xff, 0, 0, 0})
	if err := r.next(); !errors.Is(err, errWire) {
		t.Errorf("a message of 4 GiB: %v", err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := bytes.Clone(sent.Bytes())
		b[4+random.IntN(len(b)-4)] = byte(random.Uint32())
		r := wireOf(b)
		if err := r.next(); err != nil {
			t.Fatal(err)
		}
		var got apartAnswer
		if got.read(&r); !r.failed && len(got.claims) > 100 {
			t.Errorf("%d claims of %d bytes", len(got.claims), len(b))
		}
	}
}

// TestWireMakesNoGarbage holds reading an answer to what a change of many files can afford.
func TestWireMakesNoGarbage(t *testing.T) {
	var sent bytes.Buffer
	w := wireWriter{w: bufio.NewWriter(&sent)}
	answer := apartAnswer{sound: true, claims: make([]claim, 12)}
	const messages = 200
	for range messages {
		answer.write(&w)
		if err := w.send(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.w.Flush(); err != nil {
		t.Fatal(err)
	}
	r := wireOf(sent.Bytes())
	var got apartAnswer
	allocs := testing.AllocsPerRun(messages-1, func() {
		if r.next() != nil {
			t.Fatal("no message")
		}
		if got.read(&r); r.failed || len(got.claims) != 12 {
			t.Fatal("another message")
		}
	})
	if allocs > 0 {
		t.Errorf("%v allocations an answer, want 0", allocs)
	}
}
