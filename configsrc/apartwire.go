package configsrc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"fingerpost/resolver/catalog"
)

// What goes to the process that decodes and comes back from it: messages with their length before them. Both ends are the
// same program, so their form may change. A hundred thousand of them come while others wait for answers, so reading
// one makes no garbage.

// An apartAsk is a file to be read.
type apartAsk struct {
	path  string
	known bool     // it has been accepted with the content of this hash
	hash  [32]byte // then there is no need to decode it
}

// An apartAnswer is what was read. Answers come in the order of the asks.
type apartAnswer struct {
	sound   bool // it decodes without a word; else nothing else is set
	same    bool // it has the known hash; then stamp alone is set
	stamp   catalog.Stamp
	at      int64 // in the spool
	packed  int   // lengths
	bytes   int
	objects int
	counts  counts
	claims  []claim
	deps    []catalog.Dep
}

func (a *apartAsk) write(w *wireWriter) {
	w.text(a.path)
	w.bool(a.known)
	w.b = append(w.b, a.hash[:]...)
}

func (a *apartAsk) read(r *wireReader) {
	a.path, a.known = string(r.take(r.uint())), r.bool()
	copy(a.hash[:], r.take(uint64(len(a.hash))))
}

func (a *apartAnswer) write(w *wireWriter) {
	w.bool(a.sound)
	w.bool(a.same)
	if !a.sound {
		return
	}
	w.stamp(&a.stamp)
	if a.same {
		return
	}
	w.uint(uint64(a.at))
	for _, n := range [...]int{a.packed, a.bytes, a.objects, a.counts.projects, a.counts.domains, len(a.claims), len(a.deps)} {
		w.uint(uint64(n))
	}
	for i := range a.claims {
		w.b = append(w.b, a.claims[i][:]...)
	}
	for i := range a.deps {
		w.text(a.deps[i].Path)
		w.stamp(&a.deps[i].Stamp)
	}
}

// read keeps the memory of the lists.
func (a *apartAnswer) read(r *wireReader) {
	*a = apartAnswer{sound: r.bool(), same: r.bool(), claims: a.claims[:0], deps: a.deps[:0]}
	if !a.sound {
		return
	}
	a.stamp = r.stamp()
	if a.same {
		return
	}
	a.at = int64(r.uint())
	a.packed, a.bytes, a.objects = int(r.uint()), int(r.uint()), int(r.uint())
	a.counts = counts{projects: int(r.uint()), domains: int(r.uint())}
	claims, deps := r.uint(), r.uint()
	for range claims {
		var c claim
		if copy(c[:], r.take(uint64(len(c)))); r.failed {
			return
		}
		a.claims = append(a.claims, c)
	}
	for range deps {
		dep := catalog.Dep{Path: string(r.take(r.uint())), Stamp: r.stamp()}
		if r.failed {
			return
		}
		a.deps = append(a.deps, dep)
	}
}

// A wireWriter gathers a message in b.
type wireWriter struct {
	w      *bufio.Writer
	b      []byte
	length [4]byte // of b, when it is sent
}

func (w *wireWriter) uint(v uint64)    { w.b = binary.AppendUvarint(w.b, v) }
func (w *wireWriter) text(text string) { w.uint(uint64(len(text))); w.b = append(w.b, text...) }

func (w *wireWriter) bool(v bool) {
	if v {
		w.uint(1)
	} else {
		w.uint(0)
	}
}

func (w *wireWriter) stamp(s *catalog.Stamp) {
	w.uint(uint64(s.Size))
	for _, t := range [...]time.Time{s.ModTime, s.Changed} {
		w.b = binary.AppendVarint(w.b, t.Unix())
		w.uint(uint64(t.Nanosecond()))
	}
	w.uint(s.Inode)
	w.b = append(w.b, s.Hash[:]...)
}

// send ends the message.
func (w *wireWriter) send() error {
	binary.BigEndian.PutUint32(w.length[:], uint32(len(w.b)))
	_, err := w.w.Write(w.length[:])
	if err == nil {
		_, err = w.w.Write(w.b)
	}
	w.b = w.b[:0]
	return err
}

// A wireReader takes a message from the front of left. The first failure sticks.
type wireReader struct {
	r      *bufio.Reader
	b      []byte // the message
	left   []byte // what has not been read of it
	failed bool
}

var errWire = errors.New("a message that is none")

// maxWire bounds a message: that about a file of 1 MiB is far smaller.
const maxWire = 64 << 20

// next reads the next message; io.EOF at the end.
func (r *wireReader) next() error {
	length, err := r.r.Peek(4)
	if err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint32(length))
	if n > maxWire {
		return errWire
	}
	if cap(r.b) < n {
		r.b = make([]byte, n)
	}
	r.b = r.b[:n]
	r.left = r.b
	_, _ = r.r.Discard(len(length)) // there as the look at them was
	_, err = io.ReadFull(r.r, r.b)
	return err
}

func (r *wireReader) fail() { r.left, r.failed = nil, true }

func (r *wireReader) take(n uint64) []byte {
	if n > uint64(len(r.left)) {
		r.fail()
		return nil
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

func (r *wireReader) uint() uint64 {
	v, n := binary.Uvarint(r.left)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.left = r.left[n:]
	return v
}

func (r *wireReader) bool() bool { return r.uint() == 1 }

func (r *wireReader) stamp() (s catalog.Stamp) {
	s.Size = int64(r.uint())
	for _, t := range [...]*time.Time{&s.ModTime, &s.Changed} {
		seconds, n := binary.Varint(r.left)
		if n <= 0 {
			r.fail()
			return s
		}
		r.left = r.left[n:]
		*t = time.Unix(seconds, int64(r.uint()))
	}
	s.Inode = r.uint()
	copy(s.Hash[:], r.take(uint64(len(s.Hash))))
	return s
}
