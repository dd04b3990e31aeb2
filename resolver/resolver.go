package resolver

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"golang.org/x/sync/singleflight"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/datadir"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/records"
	"fingerpost/resolver/standby"
	"fingerpost/resolver/store"
	"fingerpost/resolver/trail"
)

// DefaultCacheBytes is the default of Options.CacheBytes.
const DefaultCacheBytes = 256 << 20

// Options are the settings of a Resolver. The zero value keeps everything in memory.
type Options struct {
	// DataDir holds the store. "" means a store in memory, which is then not a failure.
	DataDir string
	// CacheBytes bounds the memory of cached answers; 0 means DefaultCacheBytes. Unknown names get a sixteenth of it, at
	// most 16 MiB.
	CacheBytes int64
	// StoreCacheBytes is the store's block cache; 0 means store.DefaultCacheBytes.
	StoreCacheBytes int64
	// OpenSecret opens a secret for the FlatSecrets form and for TokenKeys. context is "<project's uuid>/jwt_secret". If
	// nil, no secret can be opened.
	OpenSecret func(s catalog.Secret, context string) (string, error)
	// Rebuild makes configsrc apply all files again, because the store has lost their content; Files yields none of them
	// then. The goroutine that watches the disk calls it, one call at a time, and again after an error; ctx ends with
	// Close. If nil, only later changes fill the store.
	Rebuild func(ctx context.Context) error
	// OnGeneration is called with each generation that Apply has committed, in order, once it is what is answered. It must
	// return at once. Nil: it is not called.
	OnGeneration func(Generation)
	// Logger gets one line when the store fails, and one when it is back. Nil means slog.Default.
	Logger *slog.Logger
	// Now is the clock of createdAt and updatedAt, and of the age of secrets from files; nil means time.Now.
	Now func() time.Time
	// Disk replaces parts of how the store's disk is watched, for tests; production uses the zero value.
	Disk DiskOptions
}

// DiskOptions configure how the store's disk is watched.
type DiskOptions = standby.DiskOptions

// A Resolver answers what the files declare. All its methods may be called from any goroutine, until Close.
type Resolver struct {
	State
	*records.Records
	options Options
	stamps  stamps
	answers
	feed     Feed
	secrets  secrets
	finder   finder
	ids      projectIDs
	owners   owners
	stores   *standby.Stores
	settled  atomic.Pointer[settled]
	position atomic.Pointer[Published]
	before   atomic.Pointer[store.Moment] // the state before the change under way
	applying applying
	backups  datadir.Source
	senders  senders
}

// answers is where the answers to resolve are kept.
type answers struct {
	seed    maphash.Seed
	known   *answerCache // found, inactive and suspended domains
	unknown *answerCache // names without a matching record
	flights singleflight.Group
	metrics counters
}

// An applying is held while the store is changed or replaced, around all of begun … epoch (see stamps).
type applying struct {
	sync.Mutex // guards the fields below
	trail      *trail.Keeper
	unsettled  bool            // settled could not be read after a change
	guests     map[string]*Key // by id, see AddGuestKey and AddPersonKey; replaced, never changed
}

type answerCache = ristretto.Cache[uint64, *Answer]

// Open opens the store and prepares to answer. It moves a damaged store aside and replaces one that the disk refuses by
// one in memory, see Degraded. It fails only with store.ErrLocked, store.ErrNewer and store.ErrOlder.
func Open(o Options) (*Resolver, error) {
	if o.CacheBytes <= 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Resolver{options: o, answers: answers{seed: maphash.MakeSeed()},
		applying: applying{trail: trail.New(o.Logger, o.Now)},
		secrets:  secrets{opener: o.OpenSecret, log: o.Logger, now: o.Now}}
	r.State = State{of: live{r}}
	r.Records = records.New(records.Options{DataDir: o.DataDir, Logger: o.Logger, Now: o.Now, Recovered: r.flushAudit})
	var err error
	if r.stores, err = standby.Open(r.standbyOptions()); err != nil {
		return nil, err
	}
	r.Records.Use(r.stores)
	st := r.stores.Writes()
	r.known = r.newCache(o.CacheBytes, expectedAnswerBytes)
	r.unknown = r.newCache(unknownBytes(o.CacheBytes), expectedUnknownBytes)
	r.feed.begin(catalog.Position{Epoch: st.Epoch(), Generation: st.Generation()})
	// Epoch 0 means that an answer was never confirmed.
	r.stamps.begin()
	r.stamps.end()
	r.publishPosition()
	if err := r.publishStore(st); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	if err := r.stores.OpenLedger(); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	r.stores.Start()
	r.Records.Back(r.stores.Ledger())
	return r, nil
}

func (r *Resolver) standbyOptions() standby.Options {
	return standby.Options{
		Dir: r.options.DataDir, StoreCacheBytes: r.options.StoreCacheBytes, Disk: r.options.Disk,
		Logger: r.options.Logger, Now: r.options.Now, Rebuild: r.options.Rebuild,
		Applying: &r.applying,
		Check: func(st *store.Store) error {
			_, err := readSettled(st, &r.owners)
			return err
		},
		Exchange: r.exchange,
		TakeUp:   r.TakeUp,
		Back: func(l *ledger.Ledger) {
			r.Records.Back(l)
			r.flushAudit()
		},
	}
}

// Close stops watching the disk and closes the store. No other call may be running or follow.
func (r *Resolver) Close() error {
	r.stores.Stop()
	mailErr := r.Records.Close()
	r.known.Close()
	r.unknown.Close()
	r.applying.Lock()
	defer r.applying.Unlock()
	return errors.Join(mailErr, r.stores.Close())
}

// The average size of an entry, for the number of ristretto's counters: ten for each entry that fits.
const (
	expectedAnswerBytes  = 1400
	expectedUnknownBytes = 400
	countersPerEntry     = 10
)

// unknownBytes is the budget for unknown names.
func unknownBytes(cacheBytes int64) int64 { return max(min(cacheBytes/16, 16<<20), 64<<10) }

func (r *Resolver) newCache(bytes, entryBytes int64) *answerCache {
	c, err := ristretto.NewCache(&ristretto.Config[uint64, *Answer]{
		NumCounters: max(bytes/entryBytes*countersPerEntry, 1000),
		MaxCost:     bytes,
		// ristretto allocates a buffer of 8 bytes an entry after this many hits. With the usual 64, a hundred hits would
		// allocate more than once.
		BufferItems: 1024,
		// The key is a hash already; the default would check its type at each call.
		KeyToHash: func(k uint64) (uint64, uint64) { return k, 0 },
		// Answer.cost includes it.
		IgnoreInternalCost: true,
		OnEvict:            func(*ristretto.Item[*Answer]) { r.metrics.evictions.Add(1) },
		OnExit:             r.left,
	})
	if err != nil {
		panic("resolver: a cache of positive size was refused: impossible, see ristretto.NewCache: " + err.Error())
	}
	return c
}
