package store

import (
	"bytes"
	"encoding/binary"
	"time"

	"fingerpost/resolver/catalog"
)

// The first byte of every key; see the table in doc.go.
const (
	prefixMeta          = 'm'
	prefixProject       = 'p'
	prefixSlug          = 's'
	prefixDomain        = 'h'
	prefixProjectHost   = 'o'
	prefixTemplate      = 't'
	prefixTemplateCode  = 'c'
	prefixKey           = 'k'
	prefixDefaults      = 'x'
	prefixSealing       = 'z'
	prefixFile          = 'f'
	prefixBytes         = 'b'
	prefixDomainFormat2 = 'd' // the name itself; until format 3

	// What is kept of mail. Capital letters sort before all others: a table that a flush has filled with mail alone lies
	// apart from what resolve searches.
	prefixMessage     = 'E'
	prefixGap         = 'G'
	prefixIdempotency = 'I'
	prefixMailLog     = 'L'
	prefixMailState   = 'M'
	prefixMailCount   = 'N'
	prefixQueue       = 'Q'
	prefixExpiry      = 'X'
)

// Keys of which there is one. They are only ever read.
var (
	keyFormat     = []byte("mformat")
	keyGeneration = []byte("mgeneration")
	keyDecoder    = []byte("mdecoder")
	keyCounts     = []byte("mcounts")
	keyImporting  = []byte("mimporting")
	keyRemovals   = []byte("mremovals")
	keyDefaults   = []byte{prefixDefaults}
	keySealing    = []byte{prefixSealing}
	keyMailState  = []byte{prefixMailState}
)

func appendID(dst []byte, id int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(id)) }

func appendTextKey[T string | []byte](dst []byte, prefix byte, text T) []byte {
	return append(append(dst, prefix), text...)
}

// appendDomainKey appends the key of a domain: its name, last byte first, so that all names below a suffix lie side by side.
func appendDomainKey[T string | []byte](dst []byte, name T) []byte {
	dst = append(dst, prefixDomain)
	for i := len(name) - 1; i >= 0; i-- {
		dst = append(dst, name[i])
	}
	return dst
}

// nameIn returns the name in a domain's key.
func nameIn(key []byte) []byte { return appendDomainKey(nil, key[1:])[1:] }

func appendProjectKey(dst []byte, id int64) []byte { return appendID(append(dst, prefixProject), id) }

func appendHostKey(dst []byte, project, domain int64) []byte {
	return appendID(appendID(append(dst, prefixProjectHost), project), domain)
}

func appendTemplateKey(dst []byte, project, id int64) []byte {
	return appendID(appendID(append(dst, prefixTemplate), project), id)
}

func appendTemplateCodeKey(dst []byte, project int64, code string) []byte {
	return append(appendID(append(dst, prefixTemplateCode), project), code...)
}

// appendMicros appends a time, to the microsecond, so that earlier ones sort before later ones.
func appendMicros(dst []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(t.UnixMicro())^1<<63)
}

func microsOf(b []byte) time.Time {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b) ^ 1<<63)).UTC()
}

// A mailPos is the place of an entry in its project's mail log: createdAt, then id.
type mailPos [16]byte

func posOf(created time.Time, id int64) (p mailPos) {
	appendID(appendMicros(p[:0], created), id)
	return p
}

func (p mailPos) created() time.Time    { return microsOf(p[:8]) }
func (p mailPos) id() int64             { return int64(binary.BigEndian.Uint64(p[8:])) }
func (p mailPos) compare(q mailPos) int { return bytes.Compare(p[:], q[:]) }
func (p mailPos) before(q mailPos) bool { return p.compare(q) < 0 }

func appendMailKey(dst []byte, project int64, p mailPos) []byte {
	return append(appendID(append(dst, prefixMailLog), project), p[:]...)
}

// appendCountKey names the row of counts that begins at a place, see mailcount.go.
func appendCountKey(dst []byte, project int64, p mailPos) []byte {
	return append(appendID(append(dst, prefixMailCount), project), p[:]...)
}

// posIn returns the place at which a key of the mail log or of its counts ends.
func posIn(key []byte) (p mailPos, err error) {
	if len(key) < len(p) {
		return p, errRecord
	}
	copy(p[:], key[len(key)-len(p):])
	return p, nil
}

func appendQueueKey(dst []byte, prefix byte, id int64) []byte {
	return appendID(append(dst, prefix), id)
}

func appendIdempotencyKey(dst []byte, project int64, key string) []byte {
	return append(appendID(append(dst, prefixIdempotency), project), key...)
}

func appendExpiryKey(dst []byte, expires time.Time, project int64, key string) []byte {
	return append(appendID(appendMicros(append(dst, prefixExpiry), expires), project), key...)
}

// after returns the first key behind all that begin with prefix. An id may end in 0xff, so the carry goes on; a prefix
// begins with a letter, where it ends.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}

// objectID names an object whatever it is called at the moment: by id, or by name where it has none.
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
