package store

import (
	"errors"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"

	"github.com/cockroachdb/pebble/v2"
)

// A Reader reads what a miss needs from the newest state. It is valid only within the Borrow call that passed it, on
// one goroutine.
type Reader struct {
	// One iterator for each, so that both stay in the table where the next record of their kind is likely to be.
	domains, projects *pebble.Iterator

	projectCopy []byte // copy of the project record of the last found domain; empty if it must be looked up
	owner       int64  // that project's id

	version uint64
	made    time.Time
	key     [1 + hostname.MaxLen + 2]byte // scratch for a domain's key
}

// Borrow calls f with a Reader. It sees every change whose Apply has returned, and every change whose stamps the caller
// has read as raised. It reuses a Reader of an earlier call if nothing was committed since: making one takes longer
// than all reads of a miss. f must not call the Store, and must return only errors of the Reader.
func (s *Store) Borrow(f func(r *Reader) error) error {
	return s.read(func() error {
		r, err := s.readers.newestReader(s.db)
		if err != nil {
			return err
		}
		return errors.Join(f(r), s.readers.leave(r))
	})
}

// Domain is View.Domain in the newest state.
func (r *Reader) Domain(dst *catalog.Domain, name []byte) (bool, error) {
	r.projectCopy = nil
	value, err := seek(r.domains, appendDomainKey(r.key[:0], name))
	if err != nil || value == nil {
		return false, err
	}
	r.projectCopy, err = decodeDomain(dst, value)
	r.owner = dst.ProjectID
	return true, err
}

// Project is View.Project in the newest state. The project of the last found domain mostly needs no lookup. If dst has
// an SMTP config, it is reused as memory for the project's.
func (r *Reader) Project(dst *catalog.ProjectConfig, id int64) (bool, error) {
	value := r.projectCopy
	if len(value) == 0 || id != r.owner {
		var err error
		if value, err = seek(r.projects, idKey(prefixProject, id)); err != nil || value == nil {
			return false, err
		}
	}
	return true, decodeProject(dst, value)
}

// seek returns the value of a key, nil if there is none. No record is empty.
func seek(it *pebble.Iterator, key []byte) ([]byte, error) {
	if !it.SeekPrefixGE(key) {
		return nil, it.Error()
	}
	value, err := it.ValueAndErr()
	if err == nil && len(value) == 0 {
		err = errRecord
	}
	return value, err
}

func (r *Reader) close() error { return errors.Join(r.domains.Close(), r.projects.Close()) }

// readers is a pool. A Reader shows the state in which it was made and pins that state's tables. So a commit discards
// all of them, and each is used for a limited time, because compactions replace tables without a commit.
type readers struct {
	mu      sync.Mutex // guards the fields below
	version uint64     // counts the commits
	idle    []*Reader
	closed  bool
}

// maxAge is how long a Reader is reused.
const maxAge = 10 * time.Second

// maxIdle bounds the pool: as many Readers as are busy at a time on the cores of a large machine.
const maxIdle = 64

// newestReader returns a Reader of the newest state.
func (p *readers) newestReader(db *pebble.DB) (*Reader, error) {
	p.mu.Lock()
	version := p.version // read before the Reader is made: it may show more, never less
	var r *Reader
	if n := len(p.idle); n > 0 {
		r = p.idle[n-1]
		p.idle = p.idle[:n-1]
	}
	p.mu.Unlock()
	if r != nil {
		if time.Since(r.made) < maxAge {
			return r, nil
		}
		if err := r.close(); err != nil {
			return nil, err
		}
	}
	domains, err := db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	projects, err := domains.Clone(pebble.CloneOptions{}) // of the same moment
	if err != nil {
		return nil, errors.Join(err, domains.Close())
	}
	return &Reader{domains: domains, projects: projects, version: version, made: time.Now()}, nil
}

// leave returns a Reader to the pool. A Reader that met an error is not reused.
func (p *readers) leave(r *Reader) error {
	if r.domains.Error() == nil && r.projects.Error() == nil {
		p.mu.Lock()
		if r.version == p.version && !p.closed && len(p.idle) < maxIdle {
			p.idle = append(p.idle, r)
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
	}
	return r.close()
}

// outdate is called after each commit, before the commit is reported.
func (p *readers) outdate() error {
	p.mu.Lock()
	p.version++
	old := p.idle
	p.idle = nil
	p.mu.Unlock()
	var err error
	for _, r := range old {
		err = errors.Join(err, r.close())
	}
	return err
}

// close is called when no Reader is in use or will be.
func (p *readers) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.outdate()
}
