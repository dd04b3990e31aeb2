package resolver

import (
	"sync/atomic"
	"unsafe"

	"fingerpost/resolver/catalog"
)

// A Form is a shape of the resolve answer (api/README.md, Resolve).
type Form uint8

const (
	// Nested is the specification's form: project, authSettings, serviceSettings, matchedDomain.
	Nested Form = iota
	// Flat is the variant form, with jwtSecret null.
	Flat
	// FlatSecrets is Flat with the jwtSecret in clear text, null if it cannot be opened. Such answers are never cached.
	FlatSecrets
	// Tokens has no Data. It serves TokenKeys.
	Tokens
	// Gateway has header lines as its Data, see appendGateway. It serves MayHaveCertificate and TokenKeys, too.
	Gateway
	// NestedLabels is Nested with the project's labels.
	NestedLabels
	// FlatLabels is Flat with them.
	FlatLabels
	// FlatSecretsLabels is FlatSecrets with them.
	FlatSecretsLabels
)

// WithLabels returns the form that has the same content and the project's labels.
func (f Form) WithLabels() Form {
	switch f {
	case Nested:
		return NestedLabels
	case Flat:
		return FlatLabels
	case FlatSecrets:
		return FlatSecretsLabels
	}
	return f
}

// OpenTo returns the form of an answer about a project that a key may see: one with secrets is for keys with secrets on
// the project.
func (f Form) OpenTo(k *Key, project int64) Form {
	switch {
	case !f.secret() || k.At(project)&catalog.MaySecrets != 0:
		return f
	case f == FlatSecretsLabels:
		return FlatLabels
	}
	return Flat
}

// secret reports whether answers in the form may have a secret in them.
func (f Form) secret() bool { return f == FlatSecrets || f == FlatSecretsLabels }

// labels reports whether answers in the form have labels.
func (f Form) labels() bool { return f >= NestedLabels }

// An Answer is the result of resolve for a domain. It is shared and must not be changed.
type Answer struct {
	// Every hit reads these fields, so they share a cache line.
	host        string
	hash        uint64
	confirmed   atomic.Uint64 // the epoch at which the stamps were last known to be current
	Data        string        // JSON of the response's data, or what the form says; "" if Code is not ""
	form        Form
	byName      bool        // an exact record matched, so the set of wildcards does not matter
	certificate certificate // in the form Gateway, if Code is ""

	NotVerified catalog.NotVerified // why Code is DOMAIN_NOT_VERIFIED

	Code      catalog.Code // "" if the domain was found; otherwise NOT_FOUND, DOMAIN_NOT_VERIFIED or PROJECT_SUSPENDED
	ETag      string       // strong and quoted; "" if Data is
	Slug      string       // slug of the domain's project, "" if none
	ProjectID int64        // its id, 0 if none

	seen   seen
	tokens *tokenSource // in the forms Tokens and Gateway, if Code is ""
}

// answerOverhead is the memory of an entry without its own bytes: the struct, its entries in ristretto's two maps, and
// the allocator's rounding of three short strings.
const answerOverhead = int64(unsafe.Sizeof(Answer{})) + 176 + 24

// storeTexts stores the texts of an answer in one piece of memory, so that a hit touches fewer cache lines. It takes
// data over.
func (a *Answer) storeTexts(data []byte, tag, host, slug string) {
	n := len(data)
	all := string(append(append(append(data, tag...), host...), slug...))
	a.Data, all = all[:n], all[n:]
	a.ETag, all = all[:len(tag)], all[len(tag):]
	a.host, a.Slug = all[:len(host)], all[len(host):]
}

// cost returns the memory of the entry in bytes, including the allocator's rounding.
func (a *Answer) cost() int64 {
	cost := answerOverhead + int64(len(a.Data))*9/8 + int64(len(a.host)+len(a.ETag)+len(a.Slug))
	if a.tokens != nil {
		cost += tokenSourceBytes + int64(len(a.tokens.slug)+len(a.tokens.secret.Ref))
		for _, text := range a.tokens.rules.Keys {
			cost += int64(len(text))
		}
	}
	return cost
}

// fresh reports whether a reflects every acknowledged change. See stamps for the proof.
func (s *stamps) fresh(a *Answer) bool {
	epoch := s.epoch.Load()
	return a.confirmed.Load() == epoch || s.confirm(a, epoch)
}

// confirm compares the stamps that a depends on. The caller has read epoch before.
func (s *stamps) confirm(a *Answer, epoch uint64) bool {
	if s.names[a.hash%nameShards].Load() != a.seen.name {
		return false
	}
	if !a.byName && s.wildcards.Load() != a.seen.wildcards {
		return false
	}
	if a.seen.project != nil && (a.seen.project.n.Load() != a.seen.projectAt || s.defaults.Load() != a.seen.defaults) {
		return false
	}
	// Two concurrent calls may leave the lower epoch, which costs one more comparison.
	a.confirmed.Store(epoch)
	return true
}
