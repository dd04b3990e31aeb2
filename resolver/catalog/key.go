package catalog

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Permission is the set of operations a key may perform (api/README.md, Keys), as bits.
type Permission uint8

// The permissions, in print order.
const (
	MayResolve Permission = 1 << iota
	MayRead
	MayWrite
	MayMail
	MaySecrets
	MayPropose // changes that somebody else applies; write includes it
	MayCreate  // projects, which get the key's owner; write on every project includes it
)

// MayAll is every permission, also by inclusion.
const MayAll = MayResolve | MayRead | MayWrite | MayMail | MaySecrets

// Permissions are the words of a key's allow list; the index is the bit.
var Permissions = []string{"resolve", "read", "write", "mail", "secrets", "propose", "create"}

// PermissionHelp tells people what each of the Permissions lets a key do.
var PermissionHelp = []string{
	"ask which project a domain leads to, and follow changes",
	"see the configuration, the mail log and the changes, and sign in to the console",
	"change the configuration at once, and apply proposals",
	"send mail, and test mail servers",
	"read the secret of tokens; with write on every project, manage keys",
	"propose changes that somebody with write applies",
	"create projects, which get the owner of the key",
}

// A Preset is what a usual holder of a key needs.
type Preset struct {
	Name, Help string
	Allow      Permission
}

// Presets are the usual kinds of holders, the most powerful first.
var Presets = []Preset{
	{"admin", "for people who run the service: everything, also the keys", MayAll},
	{"editor", "for people who change projects and test their mail", MayResolve | MayRead | MayWrite | MayMail},
	{"support", "for people who look things up and propose changes", MayResolve | MayRead | MayPropose},
	{"service", "for programs that resolve domains and send mail", MayResolve | MayMail},
}

// PresetOf returns the preset with exactly these permissions, nil if there is none.
func PresetOf(p Permission) *Preset {
	i := slices.IndexFunc(Presets, func(x Preset) bool { return x.Allow == p })
	if i < 0 {
		return nil
	}
	return &Presets[i]
}

// ParsePermissions turns words into a set; unknown words are returned.
func ParsePermissions(words []string) (p Permission, unknown []string) {
next:
	for _, w := range words {
		for i, name := range Permissions {
			if w == name {
				p |= 1 << i
				continue next
			}
		}
		unknown = append(unknown, w)
	}
	return p, unknown
}

// Words lists the set's words.
func (p Permission) Words() []string {
	var words []string
	for i, name := range Permissions {
		if p&(1<<i) != 0 {
			words = append(words, name)
		}
	}
	return words
}

// A Key is a declared API key. Only the SHA-256 of its text is known.
type Key struct {
	_         struct{} `cbor:",toarray"`
	Name      string   // the block's label
	ID        string   // the public part of the key's text
	Hash      [sha256.Size]byte
	Allow     Permission
	Projects  []string  // slugs; nil means every project, an empty list none. With an owner it is never nil
	ExpiresAt time.Time `cbor:"-"` // zero: never
	Owner     string    // the key also reaches the projects with this owner; "": none
}

// A ListHolder is a key, a webhook, a login or an inbound block: these have lists of projects.
type ListHolder struct {
	Kind Kind
	Name string
}

// An UnknownSlug is a slug in the list of a ListHolder that no project has.
type UnknownSlug struct {
	ListHolder
	Slug string
}

// Key text: fpk_<id>_<secret><check>. The id is 6 to 16 of a-z0-9; the secret is 32 base62 characters (190 random
// bits); the check is the CRC-32 of everything before it in 6 base62 characters.
const (
	KeyPrefix    = "fpk_"
	keySecretLen = 32
	keyCheckLen  = 6
	minKeyIDLen  = 6
	maxKeyIDLen  = 16
	newKeyIDLen  = 8
	maxKeyName   = 64
)

// KeyPattern is the pattern for secret scanners; KeyTextID distinguishes a real key from text that only looks like one.
var KeyPattern = regexp.MustCompile(`fpk_[a-z0-9]{6,16}_[0-9A-Za-z]{38}`)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewKeyText returns the text and the public id of a new key.
func NewKeyText() (text, id string) {
	id = randomText(base62[:10]+base62[36:], newKeyIDLen)
	body := KeyPrefix + id + "_" + randomText(base62, keySecretLen)
	return body + string(keyCheck([]byte(body), nil)), id
}

func randomText(alphabet string, n int) string {
	out := make([]byte, 0, n)
	limit := byte(256 / len(alphabet) * len(alphabet)) // 0 when it divides 256; no alphabet here does
	for buf := make([]byte, 2*n); len(out) < n; {
		rand.Read(buf)
		for _, b := range buf {
			if b < limit && len(out) < n {
				out = append(out, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(out)
}

// keyCheck appends the base62 CRC-32 (IEEE) of body to dst, most significant digit first.
func keyCheck(body, dst []byte) []byte {
	sum := crc32.ChecksumIEEE(body)
	var digits [keyCheckLen]byte
	for i := keyCheckLen - 1; i >= 0; i-- {
		digits[i] = base62[sum%62]
		sum /= 62
	}
	return append(dst, digits[:]...)
}

// KeyTextID checks the form and checksum of a key's text and returns its public id, a slice of text. It does not
// allocate.
func KeyTextID(text []byte) (id []byte, ok bool) {
	if len(text) < len(KeyPrefix)+minKeyIDLen+1+keySecretLen+keyCheckLen || string(text[:len(KeyPrefix)]) != KeyPrefix {
		return nil, false
	}
	end := len(text) - keySecretLen - keyCheckLen - 1
	id = text[len(KeyPrefix):end]
	if len(id) < minKeyIDLen || len(id) > maxKeyIDLen || text[end] != '_' {
		return nil, false
	}
	var buf [keyCheckLen]byte
	check := len(text) - keyCheckLen
	if string(keyCheck(text[:check], buf[:0])) != string(text[check:]) {
		return nil, false
	}
	for _, c := range id {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9') {
			return nil, false
		}
	}
	for _, c := range text[end+1 : check] {
		if !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
			return nil, false
		}
	}
	return id, true
}

// FindKeyText returns the position of the first full key (pattern and checksum match) in b, or -1. Text that only looks
// like a key may overlap a real one, so it tries every possible start, not only the pattern's matches, which never
// overlap.
func FindKeyText(b []byte) (start, end int) {
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(KeyPrefix))
		if i < 0 {
			return -1, -1
		}
		start = from + i
		from = start + len(KeyPrefix)
		idEnd := bytes.IndexByte(b[from:min(len(b), from+maxKeyIDLen+1)], '_')
		if idEnd < 0 {
			continue
		}
		end = from + idEnd + 1 + keySecretLen + keyCheckLen
		if end > len(b) {
			continue
		}
		if _, ok := KeyTextID(b[start:end]); ok {
			return start, end
		}
	}
}

// HashKeyText returns the form of a key in files: "sha256:" and 64 hexadecimal digits.
func HashKeyText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ParseKeyHash reads what HashKeyText wrote.
func ParseKeyHash(s string) (h [sha256.Size]byte, err error) {
	digits, ok := strings.CutPrefix(s, "sha256:")
	if b, derr := hex.DecodeString(digits); ok && derr == nil && len(b) == len(h) {
		return [sha256.Size]byte(b), nil
	}
	return h, errors.New(`must be "sha256:" and 64 hexadecimal digits, as "fingerpost keys create" prints`)
}

var (
	keyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	keyID   = regexp.MustCompile(`^[a-z0-9]{6,16}$`)
)

// CheckKeyName returns what is wrong with the name of a key, "" for nothing.
func CheckKeyName(name string) string {
	if keyName.MatchString(name) {
		return ""
	}
	return "a key's name has 1 to 64 of letters, digits, dots, underscores and hyphens"
}

// CheckOwner returns what is wrong with the owner of projects, "" for nothing.
func CheckOwner(owner string) string {
	if keyName.MatchString(owner) {
		return ""
	}
	return "an owner has 1 to 64 of letters, digits, dots, underscores and hyphens"
}

// Validate checks the values.
func (k *Key) Validate() Problems {
	var ps Problems
	if msg := CheckKeyName(k.Name); msg != "" {
		ps.Addf("name", "%s", msg)
	}
	if !keyID.MatchString(k.ID) {
		ps.Addf("id", "must be 6 to 16 lower-case letters and digits: the part of the key between the first two underscores")
	}
	if k.Allow == 0 {
		ps.Addf("allow", "must name at least one of %s", strings.Join(Permissions, ", "))
	}
	if msg := CheckOwner(k.Owner); k.Owner != "" && msg != "" {
		ps.Addf("owner", "%s", msg)
	}
	if k.Allow&MayCreate != 0 && k.Owner == "" {
		ps.Addf("allow", `has "create", which needs an owner: owner = %q gives it to the projects that the key creates`, "app")
	}
	empty := "the key reaches no project"
	if k.Owner != "" {
		empty = "" // it reaches those that it has made
	}
	ps.checkProjects(k.Projects, "key", empty)
	return ps
}
