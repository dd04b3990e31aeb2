package api

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/records"
	"fingerpost/resolver/rowjson"
)

// keyUses knows when keys were last used. A request notes its key's use in memory; SaveKeyUses stores all uses in the
// ledger, once a minute, so that they survive a restart.
type keyUses struct {
	ledger *resolver.Resolver

	io sync.Mutex // held while the ledger is read or written, never by a request that only verifies its key

	mu     sync.Mutex // guards what follows, but for keyUse.minute
	byID   map[string]*keyUse
	loaded bool // the ledger's uses are in byID
}

// A keyUse is the use of one key. Its address stays the same for the life of the Server.
type keyUse struct {
	minute atomic.Int64 // of the last use, since 1970; 0: never
	// guarded by keyUses.mu
	created time.Time
	saved   records.KeyUse // as the ledger has it
}

// A removed key keeps its use for this long after the last one, in case the files declare it again.
const keyUseKept = 30 * 24 * time.Hour

const nanosPerMinute = int64(time.Minute)

// noteUse records a use. now is in nanoseconds since 1970. Within a minute, all uses but the first only read.
func (u *keyUse) noteUse(now int64) {
	if minute := now / nanosPerMinute; u.minute.Load() != minute {
		u.minute.Store(minute)
	}
}

func (u *keyUse) lastUsed() time.Time {
	if minute := u.minute.Load(); minute != 0 {
		return time.Unix(minute*60, 0).UTC()
	}
	return time.Time{}
}

// of returns the use of a key. It is called when a key is verified for the first time after a reload.
func (k *keyUses) of(id string) *keyUse {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.find(id)
}

// find is of for a caller that holds mu.
func (k *keyUses) find(id string) *keyUse {
	u := k.byID[id]
	if u == nil {
		if k.byID == nil {
			k.byID = map[string]*keyUse{}
		}
		u = new(keyUse)
		k.byID[id] = u
	}
	return u
}

// load reads the ledger's uses, once. The caller holds io.
func (k *keyUses) load() error {
	if k.isLoaded() {
		return nil
	}
	rows, err := k.ledger.KeyUses()
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, row := range rows {
		u := k.find(row.KeyID)
		if u.created, u.saved = row.Created, row; !row.LastUsed.IsZero() {
			u.minute.CompareAndSwap(0, row.LastUsed.Unix()/60) // a use in this process is later
		}
	}
	k.loaded = true
	return nil
}

func (k *keyUses) isLoaded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.loaded
}

// use returns the use of a key. The time at which it was first seen is set here; it is zero while the ledger cannot be
// read. The caller holds mu.
func (k *keyUses) use(id string, now time.Time) (*keyUse, records.KeyUse) {
	u := k.find(id)
	if k.loaded && u.created.IsZero() {
		u.created = now.UTC().Truncate(time.Microsecond)
	}
	return u, records.KeyUse{KeyID: id, Created: u.created, LastUsed: u.lastUsed()}
}

// Rows returns the keys with their uses, in the order of the keys. It does not wait for a ledger that hangs: the answer
// then tells less.
func (k *keyUses) Rows(keys []*resolver.Key, now time.Time) []*rowjson.KeyRow {
	if !k.isLoaded() && k.io.TryLock() {
		_ = k.load()
		k.io.Unlock()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	rows := make([]*rowjson.KeyRow, len(keys))
	for i, key := range keys {
		_, use := k.use(key.ID, now)
		rows[i] = &rowjson.KeyRow{Key: &key.Key, CreatedAt: use.Created, LastUsed: use.LastUsed}
	}
	return rows
}

// save stores the uses of all keys if one has changed, and forgets those of keys that went long ago.
func (k *keyUses) save(keys []*resolver.Key, now time.Time) error {
	k.io.Lock()
	defer k.io.Unlock()
	if err := k.load(); err != nil {
		return err
	}
	uses, forget, changed := k.due(keys, now)
	if !changed && len(forget) == 0 {
		return nil
	}
	if err := k.ledger.SetKeyUses(uses, forget); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, use := range uses {
		k.find(use.KeyID).saved = use
	}
	for _, id := range forget {
		delete(k.byID, id)
	}
	return nil
}

// due returns the uses of the keys, whether one differs from the ledger's, and the ids to forget.
func (k *keyUses) due(keys []*resolver.Key, now time.Time) (uses []records.KeyUse, forget []string, changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	there := make(map[string]bool, len(keys))
	for _, key := range keys {
		u, use := k.use(key.ID, now)
		uses, there[key.ID] = append(uses, use), true
		changed = changed || use != u.saved
	}
	for id, u := range k.byID {
		if !there[id] && now.Sub(u.lastUsed()) > keyUseKept && now.Sub(u.created) > keyUseKept {
			forget = append(forget, id)
		}
	}
	return uses, forget, changed
}

// SaveKeyUses stores when each key was last used. An error means that the ledger refuses; the next call tries again.
func (s *Server) SaveKeyUses() error {
	if s.ready.loading.Load() {
		return nil // the files' keys are not known yet
	}
	return s.keys.uses.save(s.resolver.Keys().All(), time.Now())
}

// KeepKeyUses calls SaveKeyUses every minute, and a last time when ctx ends. It is silent while the ledger refuses:
// the ledger reports that itself.
func (s *Server) KeepKeyUses(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		_ = s.SaveKeyUses()
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = s.SaveKeyUses()
			return
		}
	}
}
