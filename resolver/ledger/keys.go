package ledger

import (
	"bytes"
	"encoding/binary"
	"time"
)

// The first byte of every key; see the table in doc.go.
const (
	prefixAudit       = 'A'
	prefixAuditChain  = 'C'
	prefixEnded       = 'B'
	prefixAuditGap    = 'D'
	prefixMessage     = 'E'
	prefixGap         = 'G'
	prefixHook        = 'H'
	prefixIdempotency = 'I'
	prefixMailLog     = 'L'
	prefixMailState   = 'M'
	prefixMailCount   = 'N'
	prefixAuditOf     = 'P'
	prefixProposal    = 'O'
	prefixQueue       = 'Q'
	prefixEvents      = 'R'
	prefixDelivery    = 'T'
	prefixKeyUse      = 'U'
	prefixListHead    = 'K'
	prefixListed      = 'J'
	prefixSuppression = 'S'
	prefixCommit      = 'V'
	prefixPending     = 'W'
	prefixExpiry      = 'X'
	prefixDomainNote  = 'Y'
	prefixNamed       = 'Z'
)

// Keys that exist once. They are read-only.
var (
	keyFormat     = []byte("mformat")
	keyMailState  = []byte{prefixMailState}
	keyAuditState = []byte{prefixAuditChain}
	keyEvents     = []byte{prefixEvents}
)

func appendID(dst []byte, id int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(id)) }

func appendTextKey[T string | []byte](dst []byte, prefix byte, text T) []byte {
	return append(append(dst, prefix), text...)
}

// appendMicros appends a time, to the microsecond, so that earlier ones sort before later ones.
func appendMicros(dst []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(t.UnixMicro())^1<<63)
}

func microsOf(b []byte) time.Time {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b) ^ 1<<63)).UTC()
}

// A mailPos is the position of an entry in its project's mail log: createdAt, then id.
type mailPos [16]byte

func posOf(created time.Time, id int64) (p mailPos) {
	appendID(appendMicros(p[:0], created), id)
	return p
}

func (p mailPos) created() time.Time    { return microsOf(p[:8]) }
func (p mailPos) id() int64             { return int64(binary.BigEndian.Uint64(p[8:])) }
func (p mailPos) compare(q mailPos) int { return bytes.Compare(p[:], q[:]) }

func appendMailKey(dst []byte, project int64, p mailPos) []byte {
	return append(appendID(append(dst, prefixMailLog), project), p[:]...)
}

// appendCountKey appends the key of a project's counts.
func appendCountKey(dst []byte, project int64) []byte {
	return appendID(append(dst, prefixMailCount), project)
}

// posIn returns the position at the end of a mail log key.
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

// lastID returns the id at the end of a key.
func lastID(key []byte) (int64, error) {
	if len(key) < 9 {
		return 0, errRecord
	}
	return int64(binary.BigEndian.Uint64(key[len(key)-8:])), nil
}
