package hcledit

import (
	"fmt"
	"time"

	"fingerpost/resolver/catalog"
)

// KeyBlock returns the block that declares k, formatted.
func KeyBlock(k *catalog.Key) string {
	block := fmt.Sprintf("key %s {\nid = %s\nhash = %s\nallow = %s\n",
		Quote(k.Name), Quote(k.ID), Quote(k.HashText()), QuoteList(k.Allow.Words()))
	if k.Owner != "" {
		block += fmt.Sprintf("owner = %s\n", Quote(k.Owner))
	}
	if k.Projects != nil && (len(k.Projects) > 0 || k.Owner == "") {
		block += fmt.Sprintf("projects = %s\n", QuoteList(k.Projects))
	}
	if !k.ExpiresAt.IsZero() {
		block += fmt.Sprintf("expires_at = %s\n", quoteTime(k.ExpiresAt))
	}
	return formattedBlock(block + "}\n")
}

func quoteTime(t time.Time) string { return Quote(catalog.FileMoment(t)) }

// QuoteList returns a list of quoted strings.
func QuoteList(words []string) string {
	return listText(quoteAll(words))
}

// AddKey appends a key to the file.
func AddKey(src []byte, k *catalog.Key) ([]byte, error) { return AppendBlock(src, KeyBlock(k)) }

// RotateKey makes a rotation of the key with the name: its block gets the old key's name and end, and the new key
// follows at the end of the file.
func RotateKey(src []byte, name string, r *catalog.Rotation) ([]byte, error) {
	at := BlockPath{"key", name}
	if !r.Old.ExpiresAt.Equal(r.New.ExpiresAt) {
		var err error
		if src, err = SetAttribute(src, at, "expires_at", quoteTime(r.Old.ExpiresAt)); err != nil {
			return nil, err
		}
	}
	src, err := RenameLabel(src, at, r.Old.Name)
	if err != nil {
		return nil, err
	}
	return AddKey(src, &r.New)
}

// RemoveKey removes the key with the name, see RemoveBlock.
func RemoveKey(src []byte, name string) ([]byte, error) { return RemoveBlock(src, "key", name) }
