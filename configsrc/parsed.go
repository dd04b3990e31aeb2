package configsrc

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"fingerpost/configsrc/hclfile"
)

// parsedFiles are the syntax trees of files that were written lately, so that the next write to one need not parse it:
// whoever changes a thing mostly changes it again. The zero value is empty. It is safe for concurrent use.
type parsedFiles struct {
	mu     sync.Mutex // guards what follows
	byPath map[string]*list.Element
	recent list.List // of *parsedFile, the last one kept first
	bytes  int       // all of them are taken to need
}

type parsedFile struct {
	path  string
	hash  [sha256.Size]byte
	tree  *hclfile.Parsed
	bytes int
}

// maxParsed bounds the memory for trees, in bytes. It is enough for a thousand files of the usual size, of about 3 kB.
const maxParsed = 48 << 20

// take gives away the tree of a file that has the content with this hash, nil where there is none. The taker has it alone.
func (p *parsedFiles) take(path string, hash [sha256.Size]byte) *hclfile.Parsed {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.byPath[path]
	if e == nil {
		return nil
	}
	f := p.drop(e)
	if f.hash != hash {
		return nil
	}
	return f.tree
}

// keep keeps a tree, and lets go of those that were kept longest ago where there are too many.
func (p *parsedFiles) keep(path string, hash [sha256.Size]byte, tree *hclfile.Parsed) {
	f := &parsedFile{path: path, hash: hash, tree: tree, bytes: tree.Size()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.byPath[path]; e != nil {
		p.drop(e)
	}
	if p.byPath == nil {
		p.byPath = map[string]*list.Element{}
	}
	p.byPath[path] = p.recent.PushFront(f)
	for p.bytes += f.bytes; p.bytes > maxParsed; {
		p.drop(p.recent.Back())
	}
}

// drop forgets one. p is locked.
func (p *parsedFiles) drop(e *list.Element) *parsedFile {
	f := p.recent.Remove(e).(*parsedFile)
	delete(p.byPath, f.path)
	p.bytes -= f.bytes
	return f
}
