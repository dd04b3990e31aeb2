package resolver

import (
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// A KeyRow is a key as the API shows it. It has no hash.
type KeyRow struct {
	Key       *catalog.Key
	CreatedAt time.Time // zero: not known
	LastUsed  time.Time // to the minute; zero: never
	Text      string    // of a new key, in the answer that makes it; else ""
	Replaced  *catalog.Key
}

var keyOrders = []order[KeyRow]{
	{"name", func(a, b *KeyRow) int { return strings.Compare(a.Key.Name, b.Key.Name) }},
	{"id", func(a, b *KeyRow) int { return strings.Compare(a.Key.ID, b.Key.ID) }},
	{"expiresAt", func(a, b *KeyRow) int { return a.Key.ExpiresAt.Compare(b.Key.ExpiresAt) }},
	{"createdAt", func(a, b *KeyRow) int { return a.CreatedAt.Compare(b.CreatedAt) }},
	{"lastUsedAt", func(a, b *KeyRow) int { return a.LastUsed.Compare(b.LastUsed) }},
}

// ArrangeKeys returns the rows of the page that q selects. rows must be sorted by name, which is the default order.
func ArrangeKeys(rows []*KeyRow, q Query) ([]*KeyRow, error) { return arrange(rows, keyOrders, q) }

// AppendKey appends a key as JSON: with its text and the key that it replaces, if there are any.
func AppendKey(dst []byte, row *KeyRow) []byte {
	k := row.Key
	fields := []any{
		"name", k.Name,
		"id", k.ID,
		"allow", k.Allow.Words(),
		"projects", nullIf(k.Projects == nil, k.Projects),
		"expiresAt", nullIf(k.ExpiresAt.IsZero(), k.ExpiresAt),
		"createdAt", nullIf(row.CreatedAt.IsZero(), row.CreatedAt),
		"lastUsedAt", nullIf(row.LastUsed.IsZero(), row.LastUsed),
	}
	if row.Text != "" {
		fields = append(fields, "key", row.Text)
	}
	dst = appendObject(dst, fields...)
	if old := row.Replaced; old != nil {
		dst = append(dst[:len(dst)-1], `,"replaced":`...)
		dst = appendObject(dst, "name", old.Name, "id", old.ID, "expiresAt", old.ExpiresAt)
		dst = append(dst, '}')
	}
	return dst
}

// AppendStillGood appends the end of an object to dst: "stillGood", a list of old keys that are good until they expire.
func AppendStillGood(dst []byte, keys []*catalog.Key) []byte {
	dst = append(dst, `"stillGood":[`...)
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendObject(dst, "name", k.Name, "id", k.ID, "expiresAt", k.ExpiresAt)
	}
	return append(dst, "]}"...)
}
