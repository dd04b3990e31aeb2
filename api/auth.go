package api

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"math"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const (
	headerPlatformKey  = "X-Platform-Key"
	headerMailToken    = "X-Internal-Service-Token" //nolint:gosec // the name of a header
	maxServiceNameLen  = 64
	maxKeyTextLen      = 64 // longer than any key
	verifiedSlots      = 256
	resolvePermissions = catalog.MayResolve | catalog.MayRead
)

// A keyFailure is the reason why a key was refused. It goes to the metrics, never to the client.
type keyFailure uint8

const (
	keyGood keyFailure = iota
	keyMissing
	keyRepeated
	keyMalformed
	keyUnknown
	keyExpired
	keyBlocked
	keyNameless // the mail service's second header is missing or malformed
	keyFailures
)

var keyFailureNames = [keyFailures]string{"", "missing", "repeated", "malformed", "unknown", "expired", "blocked",
	"service_name"}

// A keyring checks keys. Safe for concurrent use; a key that has been verified before costs no lock, no hash and no
// allocation.
type keyring struct {
	keys     func() *resolver.KeySet
	blocked  map[string]bool // public ids that are refused
	verified atomic.Pointer[verifiedKeys]
	uses     keyUses
	throttle *throttle
	failures [keyFailures]atomic.Uint64
}

// verifiedKeys caches the keys verified against one KeySet. A reload makes a new KeySet, so a revoked key is refused
// from the reload on.
type verifiedKeys struct {
	set   *resolver.KeySet
	slots [verifiedSlots]atomic.Pointer[verifiedKey]
}

type verifiedKey struct {
	text    [maxKeyTextLen]byte
	len     int
	key     *resolver.Key
	use     *keyUse
	expires int64 // unix nanoseconds
}

// lastNano is near the last moment that fits into UnixNano.
var lastNano = time.Date(2262, time.January, 1, 0, 0, 0, 0, time.UTC)

// authorize checks the key that the request's header carries.
func (s *Server) authorize(ctx *fasthttp.RequestCtx, c *conn, service Services, now time.Time) (*resolver.Key, error) {
	h, header := &ctx.Request.Header, headerPlatformKey
	if service == Mail {
		header = headerMailToken
	}
	var key *resolver.Key
	var failure keyFailure
	switch values := h.PeekAll(header); len(values) {
	case 0:
		failure = keyMissing
	case 1:
		key, failure = s.keys.verify(values[0], now)
	default:
		failure = keyRepeated
	}
	if failure == keyGood && service == Mail {
		names := h.PeekAll(web.HeaderServiceName)
		if len(names) != 1 || len(names[0]) > maxServiceNameLen || !gate.Word(names[0]) {
			failure = keyNameless
		}
	}
	if failure != keyGood {
		if failure == keyMissing && keyInAuthorization(h) {
			s.keys.failures[failure].Add(1)
			return nil, refuseMisplaced[service]
		}
		return nil, s.refuseFailed(ctx, failure)
	}
	s.gate.Welcome(c.Conn)
	return key, nil
}

// refuseMisplaced are the errors for a key in the header field Authorization, where nothing looks for one.
var refuseMisplaced = map[Services]*catalog.Error{
	Platform: {Code: catalog.CodeUnauthorized, Message: "the key is in the header Authorization, which is not read: " +
		"send it as X-PLATFORM-KEY"},
	Mail: {Code: catalog.CodeUnauthorized, Message: "the key is in the header Authorization, which is not read: send it " +
		"as X-Internal-Service-Token, and the name of the caller as X-Internal-Service-Name"},
}

// keyInAuthorization reports whether Authorization has a text that begins like a key, behind a scheme such as Bearer or
// without one. Whether it is a good key is not looked at: the hint must not tell.
func keyInAuthorization(h *fasthttp.RequestHeader) bool {
	for _, value := range h.PeekAll(fasthttp.HeaderAuthorization) {
		value = bytes.TrimSpace(value)
		if at := bytes.LastIndexAny(value, " \t"); at >= 0 {
			value = value[at+1:]
		}
		if bytes.HasPrefix(value, []byte(catalog.KeyPrefix)) {
			return true
		}
	}
	return false
}

// verify checks one key's text.
func (g *keyring) verify(text []byte, now time.Time) (*resolver.Key, keyFailure) {
	if len(text) < 8 || len(text) > maxKeyTextLen {
		return nil, keyMalformed
	}
	set := g.keys()
	known := g.verified.Load()
	if known == nil || known.set != set {
		known = &verifiedKeys{set: set}
		g.verified.Store(known)
	}
	// The checksum's last characters choose the slot: they reveal nothing about the secret.
	slot := &known.slots[(uint(text[len(text)-1])*62+uint(text[len(text)-2]))%verifiedSlots]
	v := slot.Load()
	if v == nil || v.len != len(text) || subtle.ConstantTimeCompare(v.text[:v.len], text) != 1 {
		var failure keyFailure
		if v, failure = g.lookUp(set, text); failure != keyGood {
			return nil, failure
		}
		slot.Store(v)
	}
	at := now.UnixNano()
	if at >= v.expires {
		return nil, keyExpired
	}
	v.use.noteUse(at)
	return v.key, keyGood
}

// lookUp hashes the text even if its id is unknown, so that both cases take the same time.
func (g *keyring) lookUp(set *resolver.KeySet, text []byte) (*verifiedKey, keyFailure) {
	id, ok := catalog.KeyTextID(text)
	if !ok {
		return nil, keyMalformed
	}
	key := set.Lookup(id)
	var want [sha256.Size]byte
	if key != nil {
		want = key.Hash
	}
	sum := sha256.Sum256(text)
	same := subtle.ConstantTimeCompare(sum[:], want[:]) == 1
	if key == nil || !same {
		return nil, keyUnknown
	}
	if g.blocked[key.ID] {
		return nil, keyBlocked
	}
	v := &verifiedKey{len: len(text), key: key, use: new(keyUse), expires: math.MaxInt64}
	if key.Who() == "" { // the use of a person's key is not kept
		v.use = g.uses.of(key.ID)
	}
	copy(v.text[:], text)
	if !key.ExpiresAt.IsZero() && key.ExpiresAt.Before(lastNano) {
		v.expires = key.ExpiresAt.UnixNano()
	}
	return v, keyGood
}

// refuseFailed counts a failed key and returns 401, or 429 after too many failures from the client's address.
// Requests without a key, or with two, guess nothing and are not throttled.
func (s *Server) refuseFailed(ctx *fasthttp.RequestCtx, failure keyFailure) *catalog.Error {
	s.keys.failures[failure].Add(1)
	switch failure {
	case keyMissing, keyRepeated, keyNameless:
		return web.RefuseKey
	}
	if wait := s.keys.throttle.fail(connOf(ctx).Peer()); wait > 0 {
		web.RetryAfter(ctx, wait)
		return refuseRate
	}
	return web.RefuseKey
}
