package jwks

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/publicnet"
	"fingerpost/resolver/share"
)

// Bounds of fetches.
const (
	fetchTime    = 10 * time.Second
	fetchPlaces  = 16
	refreshEvery = time.Hour
	unknownEvery = time.Minute // for each project
	firstRetry   = 30 * time.Second
	lastRetry    = 10 * time.Minute
	headerBytes  = 64 << 10
)

// A Source is a project that names a key set.
type Source struct {
	Project int64
	Slug    string
	URL     string
	Needed  bool // its tokens are in use: a set that is missing is a problem
}

// Notes keep small values durably, see records.Records.
type Notes interface {
	SetNamed(values map[string][]byte) error
	EachNamed(prefix string, f func(name string, value []byte) error) error
}

// Options are what a Keeper needs. Notes is required.
type Options struct {
	Notes    Notes
	Allow    []netip.Prefix   // networks that may be connected to although they are private
	Version  string           // of the program, for User-Agent
	Logger   *slog.Logger     // nil: slog.Default
	Resolver *net.Resolver    // nil: the system's
	Roots    *x509.CertPool   // nil: the system's
	Now      func() time.Time // nil: time.Now
	Timeout  time.Duration    // of a fetch; 0: 10 s
}

// A Keeper keeps key sets. Safe for concurrent use.
type Keeper struct {
	o      Options
	client *publicnet.Client
	places *share.Places
	sets   sync.Map // address to *keySet

	mu      sync.Mutex // guards the fields below, and those of each keySet but set
	sources map[int64]Source
	asked   map[int64]time.Time // when an unknown key last had a fetch, by project
	run     context.Context     //nolint:containedctx // of Run; nil: fetches wait for it
	unsaved map[string][]byte   // notes by name; nil: to be deleted
	flying  sync.WaitGroup

	saving sync.Mutex // held while notes are stored: in their order, and without mu, for which requests would wait
}

// A keySet is an address.
type keySet struct {
	url string
	set atomic.Pointer[Set] // nil: there was none yet

	users    map[int64]bool
	timer    *time.Timer // the next fetch; nil: none was planned yet
	fetching bool
	kept     bool   // the ledger has a note, or will have
	failure  string // of the last fetch; ""
	failures int    // in a row
}

// New returns a keeper with the sets that the ledger has.
func New(o Options) *Keeper {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.Timeout = cmp.Or(o.Timeout, fetchTime)
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keeper{o: o, places: share.New(fetchPlaces), sources: map[int64]Source{}, asked: map[int64]time.Time{},
		unsaved: map[string][]byte{},
		client: publicnet.NewClient(publicnet.ClientOptions{Guard: publicnet.New(o.Allow), Resolver: o.Resolver,
			Roots: o.Roots, HeaderBytes: headerBytes})}
	err := o.Notes.EachNamed(notePrefix, func(_ string, value []byte) error {
		url, set, err := parseNote(value)
		if err != nil {
			o.Logger.Warn("a key set in the ledger cannot be used", "error", err)
			return nil
		}
		k.open(url).kept = true
		k.open(url).set.Store(set)
		return nil
	})
	if err != nil {
		o.Logger.Warn("the key sets in the ledger cannot be read: they are fetched", "error", err)
	}
	return k
}

// open returns what is known of an address, which it adds.
func (k *Keeper) open(address string) *keySet {
	v, _ := k.sets.LoadOrStore(address, &keySet{url: address, users: map[int64]bool{}})
	return v.(*keySet)
}

// KeySet returns the last good set at an address; nil: there was none yet. It takes no lock and never waits.
func (k *Keeper) KeySet(url string) *Set {
	if v, found := k.sets.Load(url); found {
		return v.(*keySet).set.Load()
	}
	return nil
}

// Declare replaces all sources. What no project names any more is forgotten.
func (k *Keeper) Declare(all []Source) {
	defer k.save()
	k.mu.Lock()
	defer k.mu.Unlock()
	stay := map[int64]bool{}
	for _, s := range all {
		stay[s.Project] = true
		k.put(s)
	}
	for project := range k.sources {
		if !stay[project] {
			k.remove(project)
		}
	}
	k.sets.Range(func(_, v any) bool {
		k.leave(v.(*keySet)) // notes from before the start
		return true
	})
}

// Put adds the source of a project, or replaces it.
func (k *Keeper) Put(s Source) {
	defer k.save()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(s)
}

// Remove forgets that a project names a set.
func (k *Keeper) Remove(project int64) {
	defer k.save()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(project)
}

// put is Put. The caller holds mu, as for the methods below.
func (k *Keeper) put(s Source) {
	if was, known := k.sources[s.Project]; known && was.URL != s.URL {
		k.remove(s.Project)
	}
	k.sources[s.Project] = s
	set := k.open(s.URL)
	first := len(set.users) == 0
	set.users[s.Project] = true
	if first {
		k.fetch(set)
	}
}

func (k *Keeper) remove(project int64) {
	s, known := k.sources[project]
	if !known {
		return
	}
	delete(k.sources, project)
	delete(k.asked, project)
	set := k.open(s.URL)
	delete(set.users, project)
	k.leave(set)
}

// leave forgets an address that nobody names.
func (k *Keeper) leave(set *keySet) {
	if len(set.users) > 0 {
		return
	}
	k.sets.Delete(set.url)
	if set.timer != nil {
		set.timer.Stop()
	}
	if set.kept {
		k.unsaved[noteName(set.url)] = nil
	}
}

// save stores the notes that are not stored yet. What fails is tried again with the next call. The caller does not hold
// mu.
func (k *Keeper) save() {
	k.saving.Lock()
	defer k.saving.Unlock()
	k.mu.Lock()
	notes := k.unsaved
	k.unsaved = map[string][]byte{}
	k.mu.Unlock()
	if len(notes) == 0 {
		return
	}
	err := k.o.Notes.SetNamed(notes)
	if err == nil {
		return
	}
	k.o.Logger.Warn("the ledger takes no key sets: after a restart they have to be fetched first", "error", err)
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, text := range notes {
		if _, newer := k.unsaved[name]; !newer {
			k.unsaved[name] = text
		}
	}
}

// Run fetches until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	k.mu.Lock()
	k.run = ctx
	k.sets.Range(func(_, v any) bool {
		set := v.(*keySet)
		if len(set.users) > 0 {
			k.fetch(set)
		}
		return true
	})
	k.mu.Unlock()
	<-ctx.Done()
	k.mu.Lock()
	k.sets.Range(func(_, v any) bool {
		if timer := v.(*keySet).timer; timer != nil {
			timer.Stop()
		}
		return true
	})
	k.mu.Unlock()
	k.flying.Wait()
	k.client.Close()
}

// NoteUnknown notes that a token of a project names a key that is not in the set. It begins a fetch, at most one a
// minute for each project, and never waits.
func (k *Keeper) NoteUnknown(project int64, url string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sources[project].URL != url {
		return
	}
	set, now := k.open(url), k.o.Now()
	if since := now.Sub(k.asked[project]); set.fetching || since >= 0 && since < unknownEvery {
		return
	}
	k.asked[project] = now
	k.fetch(set)
}

// fetch begins a fetch, unless one is under way.
func (k *Keeper) fetch(set *keySet) {
	if k.run == nil || k.run.Err() != nil || set.fetching {
		return
	}
	set.fetching = true
	if set.timer != nil {
		set.timer.Stop()
	}
	ctx := k.run
	k.flying.Go(func() {
		release, err := k.places.Take(ctx, host(set.url))
		if err != nil {
			return
		}
		next, err := k.get(ctx, set.url)
		release()
		if ctx.Err() == nil {
			k.take(set, next, err)
			k.save()
		}
	})
}

// host returns whose places a fetch takes: one provider that is slow must not delay those of others.
func host(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Host
	}
	return address
}

// take takes over what a fetch has brought, and plans the next one.
func (k *Keeper) take(set *keySet, next *Set, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	set.fetching = false
	if len(set.users) == 0 || k.run.Err() != nil {
		return
	}
	wait := refreshEvery - refreshEvery/20 + rand.N(refreshEvery/10) // so that providers of many are not asked at once
	if err == nil {
		set.failure, set.failures = "", 0
		if was := set.set.Load(); was == nil || was.Identity != next.Identity {
			set.set.Store(next)
			set.kept, k.unsaved[noteName(set.url)] = true, next.note
		}
	} else {
		if set.failure != err.Error() {
			set.failure = err.Error()
			for project := range set.users {
				k.o.Logger.Warn("a key set cannot be fetched", "project", k.sources[project].Slug, "error", err,
					"keys", set.set.Load() != nil)
				break
			}
		}
		wait = min(firstRetry<<min(set.failures, 10), lastRetry)
		set.failures++
	}
	set.timer = time.AfterFunc(wait, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(set.users) > 0 {
			k.fetch(set)
		}
	})
}

// get fetches a set. The error tells nothing of names and addresses that only the inside knows.
func (k *Keeper) get(ctx context.Context, url string) (*Set, error) {
	ctx, cancel := context.WithTimeout(ctx, k.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, errors.New("the address is none")
	}
	req.Header = http.Header{"Accept": {"application/json"}, "User-Agent": {publicnet.UserAgent(k.o.Version)}}
	res, none := k.client.Do(req)
	if none != nil {
		return nil, errors.New(none.Sentence(k.o.Timeout))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the provider answered %d instead of 200; redirects are not followed", res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, catalog.MaxKeySetBytes+1))
	if err != nil {
		return nil, errors.New((&publicnet.NoAnswer{Cause: err}).Sentence(k.o.Timeout))
	}
	return parse(url, text)
}

// A Problem is a key set that a project needs and that was never there.
type Problem struct {
	Project int64
	Slug    string
	Message string
}

// Problems lists the problems, by slug.
func (k *Keeper) Problems() (list []Problem) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.sources {
		if set := k.open(s.URL); s.Needed && set.set.Load() == nil && set.failure != "" {
			list = append(list, Problem{s.Project, s.Slug, set.failure})
		}
	}
	slices.SortFunc(list, func(a, b Problem) int { return cmp.Compare(a.Slug, b.Slug) })
	return list
}
