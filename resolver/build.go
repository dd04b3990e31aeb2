package resolver

import (
	"errors"
	"sync"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
	"fingerpost/resolver/rowjson"
	"fingerpost/resolver/store"
)

// A match is what the store returns for a name.
type match struct {
	found    bool
	domain   catalog.Domain
	project  catalog.ProjectConfig
	defaults *catalog.Defaults
}

// errOrphan is a domain without its project: impossible in one consistent read, because both are in the same batch.
var errOrphan = errors.New("a domain record without its project")

// matchSource is the source of a match: a store.View or a store.Reader.
type matchSource interface {
	Domain(dst *catalog.Domain, name []byte) (bool, error)
	Project(dst *catalog.ProjectConfig, id int64) (bool, error)
}

// A building holds the buffers for building an answer. It is pooled between misses, because they are most of the memory
// of a miss.
type building struct {
	r    *Resolver
	host string
	form Form

	match
	smtp catalog.SMTPConfig // memory for match.project.SMTP
	name []byte             // scratch of findDomain

	answer *Answer

	newest func(*store.Reader) error // b.readNewest, made once
}

var buildings = sync.Pool{New: func() any {
	b := new(building)
	b.newest = b.readNewest
	return b
}}

// build reads the store and encodes the answer. keep is false for an answer that must not be cached.
func (r *Resolver) build(host string, hash uint64, form Form) (a *Answer, keep bool, err error) {
	b := buildings.Get().(*building)
	b.r, b.host, b.form = r, host, form
	s, keep, err := b.load(hash)
	a = b.answer
	byName, project := b.found && !b.domain.Wildcard(), b.project.Project.ID
	b.reset()
	buildings.Put(b)
	if err != nil {
		return nil, false, catalog.Unreadable(err)
	}
	a.hash, a.form, a.seen = hash, form, s
	a.byName = byName
	a.ProjectID = project
	a.confirmed.Store(s.epoch)
	return a, keep, nil
}

// reset clears all pointers of b: no borrowed memory may be kept.
func (b *building) reset() {
	*b = building{name: b.name, newest: b.newest}
}

// read finds the match and encodes it while the borrowed records are valid.
func (b *building) read(from matchSource, wildcards bool, defaults func() (*catalog.Defaults, error)) (err error) {
	b.match, b.answer = match{}, nil
	if b.found, err = b.findDomain(from, wildcards); err != nil {
		return err
	}
	if b.found {
		b.project.SMTP = &b.smtp
		found, err := from.Project(&b.project, b.domain.ProjectID)
		if err != nil {
			return err
		}
		if !found {
			return errOrphan
		}
		if b.defaults, err = defaults(); err != nil {
			return err
		}
	}
	b.answer = b.encode()
	return nil
}

func (b *building) readNewest(from *store.Reader) error {
	return b.read(from, b.r.stores.Reads().Counts().Wildcards > 0, b.r.settledDefaults)
}

func (r *Resolver) settledDefaults() (*catalog.Defaults, error) { return r.Defaults(), nil }

// findDomain reads the record that decides for the host: the exact name, then the wildcards from the longest suffix on.
func (b *building) findDomain(from matchSource, wildcards bool) (bool, error) {
	b.name = append(b.name[:0], b.host...)
	name := b.name
	found, err := from.Domain(&b.domain, name)
	if err != nil || found || !wildcards {
		return found, err
	}
	for {
		suffix, ok := hostname.NextWildcard(name)
		if !ok {
			return false, nil
		}
		// "*." replaces the label and dot in front of the suffix: two bytes or more.
		wildcard := name[len(name)-len(suffix)-2:]
		wildcard[0], wildcard[1] = '*', '.'
		if found, err = from.Domain(&b.domain, wildcard); err != nil || found {
			return found, err
		}
		name = suffix
	}
}

// encode makes the answer from the match.
func (b *building) encode() *Answer {
	a := &Answer{}
	var buf, noTimes [2048]byte
	text, tag := buf[:0], ""
	if b.found {
		a.NotVerified = b.domain.NotVerified(b.defaults)
	}
	switch {
	case !b.found:
		a.Code = catalog.CodeNotFound
	case a.NotVerified != 0:
		a.Code = catalog.CodeDomainNotVerified
	case b.project.Project.Status == catalog.StatusSuspended:
		a.Code = catalog.CodeProjectSuspended
	case b.form == Tokens:
		a.tokens = tokenSourceOf(&b.match)
	case b.form == Gateway:
		text = appendGateway(text, &b.match)
		tag = rowjson.ETag(text)
		a.tokens, a.certificate = tokenSourceOf(&b.match), certificateOf(&b.domain)
	default:
		var secret *string
		if b.form.secret() {
			secret = b.r.secrets.forFlat(&b.match)
		}
		text = appendMatch(text, &b.match, b.form, secret)
		tag = rowjson.ETag(rowjson.WithoutTimes(append(noTimes[:0], text...)))
	}
	a.storeTexts(text, tag, b.host, b.project.Project.Slug)
	return a
}

// load reads the records that answers for the host depend on, and the stamps before them.
//
// The project is known only after the domain was read, so its stamp is read after a part of the store. That is harmless
// while no change is under way: all stamps stand still from the first read to the last, and single reads of the store
// agree with each other and with the settled defaults.
//
// While a change is under way, load reads the state before it. So a change shows in all answers, cached ones included,
// at one moment: when its epoch comes. An answer read during a change is not cached or shared.
func (b *building) load(hash uint64) (s seen, keep bool, err error) {
	r := b.r
	for range maxLoads {
		s = r.stamps.see(hash)
		r.metrics.storeReads.Add(1)
		if r.stamps.quiet(s.epoch) {
			err = r.stores.Reads().Borrow(b.newest)
			if err == nil && b.found {
				r.stamps.seeProject(&s, b.domain.ProjectID)
			}
			if r.stamps.quiet(s.epoch) && !errors.Is(err, store.ErrClosed) {
				return s, true, err
			}
			continue
		}
		if err = r.duringChange(b.readView); errors.Is(err, store.ErrClosed) || r.stamps.epoch.Load() != s.epoch {
			continue // the change has ended
		}
		break
	}
	s.epoch, s.name, s.project = 0, ^s.name, nil
	return s, false, err
}

// maxLoads bounds how often an answer is read again because changes came in between. A closed store without a
// replacement must not keep its readers busy for ever; each read is consistent in any case.
const maxLoads = 100

// duringChange calls f with the state before the change under way. While one store replaces another, either store is
// correct.
func (r *Resolver) duringChange(f func(v *store.View) error) error {
	if m := r.before.Load(); m != nil {
		return m.View(f)
	}
	return r.stores.Reads().View(f)
}

// readView tries all wildcards: the count that says there are none may be newer than the view.
func (b *building) readView(v *store.View) error { return b.read(v, true, v.Defaults) }
