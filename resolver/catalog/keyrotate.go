package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Renew gives k a new id and hash, and returns the new text, which exists nowhere else.
func (k *Key) Renew() (text string) {
	text, k.ID = NewKeyText()
	k.Hash = sha256.Sum256([]byte(text))
	return text
}

// HashText is the form of k.Hash in files, as HashKeyText returns it.
func (k *Key) HashText() string { return "sha256:" + hex.EncodeToString(k.Hash[:]) }

// Expired reports whether the key has ended by now.
func (k *Key) Expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

// Full reports whether the key is good, and has every permission on every project.
func (k *Key) Full(now time.Time) bool {
	return k.Allow&MayAll == MayAll && k.Projects == nil && !k.Expired(now)
}

// A Rotation is the two keys that take the place of one: New has its name and rights and another text; Old has its
// text, the name NAME-<id>, and an end.
type Rotation struct {
	Old, New Key
	Text     string // of New
}

// Rotate replaces k by a new key. The old one stays good for the overlap, in whole seconds, but no longer than before.
func (k *Key) Rotate(now time.Time, overlap time.Duration) (r Rotation, err error) {
	if k.Expired(now) {
		return r, fmt.Errorf("key %q has expired, and the new one would have with it: revoke it and create another", k.Name)
	}
	r.Old, r.New = *k, *k
	if r.Old.Name = k.replacedName(); r.Old.Name == k.Name {
		return r, fmt.Errorf("key %q is the old one of a rotation: rotate the key that has replaced it, or revoke this one",
			k.Name)
	}
	if end := now.Add(overlap).UTC().Truncate(time.Second); k.ExpiresAt.IsZero() || end.Before(k.ExpiresAt) {
		r.Old.ExpiresAt = end
	}
	r.Text = r.New.Renew()
	return r, nil
}

// replacedName is the name of a key after its rotation. A long name is cut, so that the id fits behind it.
func (k *Key) replacedName() string {
	suffix := "-" + k.ID
	if n := len(k.Name) - len(suffix); n > 0 && k.Name[n:] == suffix {
		return k.Name
	}
	return k.Name[:min(len(k.Name), maxKeyName-len(suffix))] + suffix
}

// ReplacedBy reports whether k is the old key of a rotation of the key with a name: it stays good when that is revoked.
func (k *Key) ReplacedBy(name string) bool {
	now := Key{Name: name, ID: k.ID}
	return name != k.Name && k.Name == now.replacedName()
}

// SameHolder reports whether k and other are one key, or the old and new keys of rotations of one: who has one of them
// has had, or was given, the other. A key that was made again under the name counts as the same.
func (k *Key) SameHolder(other *Key) bool {
	now := func(k *Key) string { return strings.TrimSuffix(k.Name, "-"+k.ID) } // the name of the key that has replaced k
	return k.ID == other.ID || now(k) == now(other) || k.ReplacedBy(other.Name) || other.ReplacedBy(k.Name)
}

// ParseSpan parses a length of time that is not negative: 90d, 2w, or what time.ParseDuration accepts.
func ParseSpan(s string) (time.Duration, error) {
	units := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if n := len(s); n > 1 && units[s[n-1]] > 0 {
		days, err := strconv.ParseUint(s[:n-1], 10, 16)
		if err != nil || days == 0 || days > 36500 {
			return 0, fmt.Errorf("%q is no number of days or weeks", s)
		}
		return time.Duration(days) * units[s[n-1]], nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q must be a length of time such as 90d, 2w, 12h or 30m", s)
	}
	return d, nil
}
