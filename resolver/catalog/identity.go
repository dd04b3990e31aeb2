package catalog

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // see where it is used
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
)

// Kind names a kind of object. It takes part in identity, so its values never change.
type Kind string

// The kinds of objects that files declare.
const (
	KindProject         Kind = "project"
	KindDomain          Kind = "domain"
	KindServiceSettings Kind = "service_settings"
	KindAuthSettings    Kind = "auth_settings"
	KindSMTPConfig      Kind = "smtp_config"
	KindTemplate        Kind = "template"
	KindKey             Kind = "key"
	KindEdge            Kind = "edge"
	KindWebhook         Kind = "webhook"
	KindLogin           Kind = "login"
	KindInbound         Kind = "inbound"
	KindDefaults        Kind = "defaults"
	KindSealing         Kind = "sealing"
)

// KnownKind returns the constant equal to k, or k if there is none, so that all equal kinds share one string.
func KnownKind(k Kind) Kind {
	for _, known := range [...]Kind{
		KindProject, KindDomain, KindServiceSettings, KindAuthSettings, KindSMTPConfig, KindTemplate, KindKey, KindEdge,
		KindWebhook, KindLogin, KindInbound, KindDefaults, KindSealing,
	} {
		if k == known {
			return known
		}
	}
	return k
}

// A UUID is an RFC 9562 identifier. The zero value means none.
type UUID [16]byte

// namespace is fingerpost's own for UUIDv5. Changing it would change the identity of every derived object.
var namespace = UUID{0x6e, 0x1c, 0x1f, 0x6a, 0x3b, 0x0e, 0x4c, 0x57, 0x9d, 0x1b, 0x2f, 0x74, 0xa8, 0x15, 0xc3, 0x90}

// defaultTemplates replaces a project's uuid for templates outside a project.
const defaultTemplates = "defaults"

var errUUID = errors.New(`a uuid is 32 hexadecimal digits in groups of 8-4-4-4-12`)

// ParseUUID reads the 8-4-4-4-12 form in either case. The nil UUID is refused.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, errUUID
	}
	if _, err := hex.Decode(u[:], []byte(s[0:8]+s[9:13]+s[14:18]+s[19:23]+s[24:36])); err != nil || u == (UUID{}) {
		return UUID{}, errUUID
	}
	return u, nil
}

// NewUUID returns a random (version 4) UUID.
func NewUUID() UUID {
	var u UUID
	rand.Read(u[:]) // never fails, see crypto/rand
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return u
}

// String is the lower-case 8-4-4-4-12 form.
func (u UUID) String() string {
	digits := hex.EncodeToString(u[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// MarshalText encodes a UUID as text, a string in JSON.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (u *UUID) UnmarshalText(b []byte) (err error) {
	*u, err = ParseUUID(string(b))
	return err
}

// deriveUUID returns the UUIDv5 (RFC 9562, 5.5) of the kind and the natural key, joined by a colon.
func deriveUUID(kind Kind, key string) UUID {
	h := sha1.New() //nolint:gosec // a UUID of version 5 is one (RFC 9562)
	h.Write(namespace[:])
	h.Write([]byte(kind))
	h.Write([]byte{':'})
	h.Write([]byte(key))
	u := UUID(h.Sum(nil)[:16])
	u[6], u[8] = u[6]&0x0f|0x50, u[8]&0x3f|0x80
	return u
}

// DeriveProjectUUID returns the identity of a project without a declared one: it follows from the slug.
func DeriveProjectUUID(slug string) UUID { return deriveUUID(KindProject, slug) }

// DeriveDomainUUID takes the owning project's uuid and the canonical name.
func DeriveDomainUUID(project UUID, name string) UUID {
	return deriveUUID(KindDomain, project.String()+":"+name)
}

// DeriveTemplateUUID takes the owning project's uuid (the zero UUID for a default template) and the code.
func DeriveTemplateUUID(project UUID, code string) UUID {
	owner := defaultTemplates
	if project != (UUID{}) {
		owner = project.String()
	}
	return deriveUUID(KindTemplate, owner+":"+code)
}

// DeriveUUID returns the identity of objects that a project has one of: its settings and its SMTP config.
func DeriveUUID(kind Kind, project UUID) UUID { return deriveUUID(kind, project.String()) }

// MaxDeclaredID bounds an id given in a file; derived ids are higher, from 2^45 to 2^46-1.
const MaxDeclaredID = 1<<31 - 1

// DeriveID returns 2^45 plus the first 45 bits of SHA-256 of "<kind>:<uuid>" (configsrc/README.md, Identity): 14 digits,
// which Lua's %.14g prints exactly (OpenResty, Kong, Redis).
func DeriveID(kind Kind, u UUID) int64 {
	sum := sha256.Sum256([]byte(string(kind) + ":" + u.String()))
	return 1<<45 + int64(binary.BigEndian.Uint64(sum[:8])>>19)
}
