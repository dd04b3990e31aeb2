package rowjson

import (
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

// AppendKey appends a key as JSON: with its text and the key that it replaces, if there are any.
func AppendKey(dst []byte, row *KeyRow) []byte {
	k := row.Key
	fields := []any{
		"name", k.Name,
		"id", k.ID,
		"allow", k.Allow.Words(),
		"projects", nullIf(k.Projects == nil, k.Projects),
		"owner", nullIf(k.Owner == "", k.Owner),
		"expiresAt", nullIf(k.ExpiresAt.IsZero(), k.ExpiresAt),
		"createdAt", nullIf(row.CreatedAt.IsZero(), row.CreatedAt),
		"lastUsedAt", nullIf(row.LastUsed.IsZero(), row.LastUsed),
	}
	if row.Text != "" {
		fields = append(fields, "key", row.Text)
	}
	if old := row.Replaced; old != nil {
		fields = append(fields, "replaced", replaced(old))
	}
	return AppendObject(dst, fields...)
}

func replaced(k *catalog.Key) raw {
	return object("name", k.Name, "id", k.ID, "expiresAt", k.ExpiresAt)
}

// AppendStillGood appends the end of an object to dst: "stillGood", a list of old keys that are good until they expire.
func AppendStillGood(dst []byte, keys []*catalog.Key) []byte {
	list := make([]raw, len(keys))
	for i, k := range keys {
		list[i] = replaced(k)
	}
	return append(appendValue(append(dst, `"stillGood":`...), list), '}')
}
