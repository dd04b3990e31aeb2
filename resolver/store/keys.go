package store

import (
	"encoding/binary"
	"slices"

	"fingerpost/resolver/catalog"
)

// The first byte of every key; see the table in doc.go.
const (
	prefixMeta         = 'm'
	prefixProject      = 'p'
	prefixSlug         = 's'
	prefixDomain       = 'h'
	prefixProjectHost  = 'o'
	prefixTemplate     = 't'
	prefixTemplateCode = 'c'
	prefixKey          = 'k'
	prefixDefaults     = 'x'
	prefixSealing      = 'z'
	prefixFile         = 'f'
	prefixBytes        = 'b'
	prefixEdge         = 'e'
	prefixWebhook      = 'w'
	prefixLogin        = 'l'
	prefixInbound      = 'i'
	prefixText         = 'y'
	prefixRefused      = 'q'
	prefixKeySet       = 'j'
)

// Keys that exist once. They are read-only.
var (
	keyFormat     = []byte("mformat")
	keyGeneration = []byte("mgeneration")
	keyDecoder    = []byte("mdecoder")
	keyCounts     = []byte("mcounts")
	keyImporting  = []byte("mimporting")
	keyRemovals   = []byte("mremovals")
	keyAudit      = []byte("maudit")
	keyEpoch      = []byte("mepoch")
	keyReserved   = []byte("mreserved")
	keyDefaults   = []byte{prefixDefaults}
	keySealing    = []byte{prefixSealing}
)

// idKey returns the key of what ids identify, see the table in doc.go.
func idKey(prefix byte, ids ...int64) []byte {
	key := make([]byte, 1, 1+8*len(ids))
	key[0] = prefix
	for _, id := range ids {
		key = binary.BigEndian.AppendUint64(key, uint64(id))
	}
	return key
}

// textKey returns the key of what text identifies.
func textKey(prefix byte, text string) []byte {
	return append(append(make([]byte, 0, 1+len(text)), prefix), text...)
}

// appendDomainKey appends the key of a domain: its name, last byte first, so that all names below a suffix are
// adjacent.
func appendDomainKey[T string | []byte](dst []byte, name T) []byte {
	dst = append(slices.Grow(dst, 1+len(name)), prefixDomain)
	for i := len(name) - 1; i >= 0; i-- {
		dst = append(dst, name[i])
	}
	return dst
}

// nameIn returns the name in a domain's key.
func nameIn(key []byte) []byte { return appendDomainKey(nil, key[1:])[1:] }

// templateCodeKey returns the key of a template's code; project is 0 for a default template.
func templateCodeKey(project int64, code string) []byte {
	return append(idKey(prefixTemplateCode, project), code...)
}

// after returns the first key behind all keys with the prefix. An id may end in 0xff, so the carry propagates; it ends
// at the letter that begins a prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}

// objectID identifies an object independently of its present name: by id, or by name if it has no id.
type objectID struct {
	kind catalog.Kind
	id   int64
	name string
}

func identify(r *catalog.Ref) objectID {
	switch r.Kind {
	case catalog.KindProject, catalog.KindDomain, catalog.KindTemplate:
		return objectID{kind: r.Kind, id: r.ID}
	}
	return objectID{kind: r.Kind, name: r.Name}
}
