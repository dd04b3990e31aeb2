package store

import (
	"errors"
	"sync"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// A Reader reads what a miss needs from the newest state, without copying it: the strings in what it returns lie in the
// store's own memory. They are valid until the next call of Domain or Project, and only within the call of Borrow that the Reader was handed to, on one goroutine.
type Reader struct {
	// One each, so that both stay in the tables where the next of their kind is likely to be.
	domains, projects *pebble.Iterator

	beside []byte // the record of the project of the domain that was found last; empty where it must be looked for
	owner  int64  // that project's id

	version uint64
	made    time.Time
	key     [maxDomainKey]byte // scratch
}

// Borrow calls f with a Reader that sees every change whose Apply has returned, or has raised what its caller reads
// before. It takes a Reader that an earlier call has left, where nothing was committed since: making one takes longer
// than all that a miss reads with it. f must not call the Store, and its errors must be those of the Reader.
func (s *Store) Borrow(f func(r *Reader) error) error {
	return s.read(func() error {
		r, err := s.readers.take(s.db)
		if err != nil {
			return err
		}
		return errors.Join(f(r), s.readers.leave(r))
	})
}

// Domain is View.Domain, borrowing.
func (r *Reader) Domain(dst *catalog.Domain, name []byte) (bool, error) {
	r.beside = nil
	value, err := seek(r.domains, appendDomainKey(r.key[:0], name))
	if err != nil || value == nil {
		return false, err
	}
	domain, project := split(value)
	d := borrowingDecoder(domain, recordVersion)
	if err := d.domain(dst); err != nil {
		return true, err
	}
	r.beside, r.owner = project, dst.ProjectID
	return true, nil
}

// Project is View.Project, borrowing. Where dst has an SMTP config, that is the room for the project's.
// The project of the domain that was found last mostly costs no search; its strings are as valid as the domain's.
func (r *Reader) Project(dst *catalog.ProjectConfig, id int64) (bool, error) {
	value := r.beside
	if len(value) == 0 || id != r.owner {
		var err error
		if value, err = seek(r.projects, appendProjectKey(r.key[:0], id)); err != nil || value == nil {
			return false, err
		}
	}
	d := borrowingDecoder(value, recordVersion)
	return true, d.projectConfig(dst, id)
}

// seek returns the value of a key, nil where there is none. No record is empty.
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

// readers keeps what was left, for the next ones. A Reader shows the state of the moment at which it was made and holds
// on to that state's tables, so all go when something is committed, and one is used for a while only: compactions
// replace tables without a commit.
type readers struct {
	mu      sync.Mutex // guards what follows
	version uint64     // counts the commits
	idle    []*Reader
	closed  bool
}

// maxAge is how long a Reader is used.
const maxAge = 10 * time.Second

// maxIdle is how many Readers wait: as many as are busy at a time on the cores of a large machine.
const maxIdle = 64

// take returns a Reader of the newest state.
func (p *readers) take(db *pebble.DB) (*Reader, error) {
	p.mu.Lock()
	version := p.version // before the Reader is made: it may show more than that, never less
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

// leave gives a Reader back. One that has met an error is not used again.
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

// outdate is called after each commit, before anybody hears of it.
func (p *readers) outdate() error {
	p.mu.Lock()
	p.version++
	old := p.idle
	p.idle = nil
	p.mu.Unlock()
	return closeAll(old)
}

// close is called once no reader is left or will come.
func (p *readers) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.outdate()
}

func closeAll(rs []*Reader) error {
	var errs []error
	for _, r := range rs {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}
