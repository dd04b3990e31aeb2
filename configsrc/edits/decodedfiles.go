package edits

import (
	"container/list"
	"sync"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
)

// decodedFiles keeps the decoded form of the files that were written last, so that the next write of one of them need
// not decode what it replaces.
//
// A decode depends on the path, the bytes, the day, and the files that the bytes name. Entries have the first three. A
// file that names others is not kept, nor one with warnings. Secrets and defaults are not part of a decode.
//
// An entry belongs to the write that takes it. Nil keeps nothing.
type decodedFiles struct {
	mu     sync.Mutex // guards the fields below
	byPath map[string]*list.Element
	order  list.List // of *decodedFile; the one that was written last is at the back
	bytes  int       // of the text of all
}

// A decodedFile is a file as a write has left it.
type decodedFile struct {
	path    string
	hash    [32]byte // of the bytes
	day     string   // of the rules: the other ones never change
	content *judge.Content
	result  *hclfile.Result
}

// MaxDecodedBytes bounds the text of all entries. In memory they take 11 times as much where the files are of ordinary
// projects, and 100 times as much at worst.
const MaxDecodedBytes = 512 << 10

// take removes and returns the decoded form of a file with these bytes; nil if it is not kept.
func (d *decodedFiles) take(path string, hash [32]byte, day string) *decodedFile {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.byPath[path]
	if at == nil {
		return nil
	}
	if f := d.remove(at); f.hash == hash && f.day == day {
		return f
	}
	return nil
}

// put keeps a file that was written, of which f has the result and its day. c may stay in use: what it shares with f is
// not changed by anybody, or copied.
func (d *decodedFiles) put(c *judge.Candidate, f *decodedFile) {
	size := len(c.Bytes)
	if d == nil || c.Declared == nil || len(c.Deps)+len(c.Diags) > 0 || size > MaxDecodedBytes/4 {
		return
	}
	f.path, f.hash = c.Path, c.Stamp.Hash
	f.content = &judge.Content{Bytes: c.Bytes, Declared: c.Declared.Clone(), Refs: c.Refs, Claims: c.Claims,
		Counts: c.Counts, Plain: c.Plain, Fresh: c.Fresh}
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.byPath[c.Path]; old != nil {
		d.remove(old)
	}
	if d.byPath == nil {
		d.byPath = map[string]*list.Element{}
	}
	d.byPath[c.Path] = d.order.PushBack(f)
	for d.bytes += size; d.bytes > MaxDecodedBytes; {
		d.remove(d.order.Front())
	}
}

// remove removes an entry. The caller holds mu.
func (d *decodedFiles) remove(at *list.Element) *decodedFile {
	f := d.order.Remove(at).(*decodedFile)
	delete(d.byPath, f.path)
	d.bytes -= len(f.content.Bytes)
	return f
}

// A Kept is a file as a write has left it. Its parts are in use: they must not be changed.
type Kept struct {
	Path    string
	Hash    [32]byte // of the bytes
	Day     string   // of the rules of the decoder
	Content *judge.Content
	Result  *hclfile.Result
}

// EachKept yields the decoded files that the Writer keeps, for tests: each must be as its bytes decode on that day.
func (w *Writer) EachKept(yield func(*Kept)) {
	w.recent.mu.Lock()
	defer w.recent.mu.Unlock()
	for path, at := range w.recent.byPath {
		f := at.Value.(*decodedFile)
		yield(&Kept{path, f.hash, f.day, f.content, f.result})
	}
}
