package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"fingerpost/resolver/catalog"
)

// A Sum is the SHA-256 of a file's path and content.
type Sum [sha256.Size]byte

// SumOf hashes a path and a content. The length of the path comes first, so that no two pairs have the same bytes.
func SumOf(path string, content []byte) (s Sum) {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(path))))
	h.Write([]byte(path))
	h.Write(content)
	h.Sum(s[:0])
	return s
}

// A Root is the sum modulo 2^256 of the Sums of a tree's files. It costs one addition a changed file, whatever the size
// of the tree, and does not depend on their order.
type Root [4]uint64 // the least significant first

// Add adds a file.
func (r *Root) Add(s Sum) {
	var carry uint64
	for i := range r {
		r[i], carry = bits.Add64(r[i], s.word(i), carry)
	}
}

// Remove takes a file away.
func (r *Root) Remove(s Sum) {
	var borrow uint64
	for i := range r {
		r[i], borrow = bits.Sub64(r[i], s.word(i), borrow)
	}
}

func (s *Sum) word(i int) uint64 { return binary.BigEndian.Uint64(s[24-8*i:]) }

// String returns 64 hexadecimal digits.
func (r Root) String() string { return fmt.Sprintf("%016x%016x%016x%016x", r[3], r[2], r[1], r[0]) }

// Keys of the bucket, apart from those of files: "f." and the encoded path.
const (
	keyMarker  = "marker"
	keyLease   = "lease"
	prefixFile = "f."
)

// maxKeyPath bounds an encoded path: a NATS server refuses protocol lines of more than 4 KiB.
const maxKeyPath = 1024

// encodePath writes a path as one token of a NATS subject that a person can read: letters, digits, "/", "-" and "_"
// stay, every other byte is "=" and two hexadecimal digits. A path that gets too long is its hash; the value has it in
// full.
func encodePath(path string) string {
	var b strings.Builder
	for i := range len(path) {
		switch c := path[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '/', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	if b.Len() > maxKeyPath {
		sum := sha256.Sum256([]byte(path))
		return "=h" + hex.EncodeToString(sum[:]) // no escape begins with "h"
	}
	return b.String()
}

// decodePath is the reverse of encodePath; ok is false for a hash, and for what encodePath does not write.
func decodePath(encoded string) (path string, ok bool) {
	b := make([]byte, 0, len(encoded))
	for i := 0; i < len(encoded); i++ {
		c := encoded[i]
		if c == '=' {
			if i+2 >= len(encoded) {
				return "", false
			}
			n, err := strconv.ParseUint(encoded[i+1:i+3], 16, 8)
			if err != nil {
				return "", false
			}
			c, i = byte(n), i+2
		}
		b = append(b, c)
	}
	return string(b), encodePath(string(b)) == encoded
}

// magicFile begins the value of a file; its last byte is the format.
const magicFile = "fpt\x02"

// Limits of a value. The largest config file has 1 MiB, the largest body 512 KiB (configsrc/README.md).
const (
	maxContent = 4 << 20
	maxValue   = 6 << 20
)

// An entry is a decoded value of a file's key.
type entry struct {
	sum     Sum
	packed  []byte // zstd
	encoded string // the path in the key
}

// Both are made when they are first used, because most nodes have no cluster, and are safe for concurrent use. They
// fail for bad options only.
var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		return e
	})
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxContent))
		return d
	})
)

// A message is a key with its new value.
type message struct {
	key   string
	value []byte // nil: the key is removed
}

// pack returns the message that puts a file. It fits into any server that checkPayload lets pass.
func pack(f *catalog.TreeFile) (m message, sum Sum) {
	payload := binary.AppendUvarint(nil, uint64(len(f.Path)))
	payload = append(payload, f.Path...)
	payload = binary.AppendUvarint(payload, uint64(len(f.Times)))
	for i := range f.Times {
		t := &f.Times[i]
		payload = binary.AppendUvarint(payload, uint64(len(t.Kind)))
		payload = append(append(payload, t.Kind...), t.UUID[:]...)
		payload = binary.AppendVarint(payload, t.CreatedAt.UnixMicro())
		payload = binary.AppendVarint(payload, t.UpdatedAt.UnixMicro())
	}
	packed := packer().EncodeAll(append(payload, f.Bytes...), nil)
	sum = SumOf(f.Path, f.Bytes)
	return message{prefixFile + encodePath(f.Path), slices.Concat([]byte(magicFile), sum[:], packed)}, sum
}

// parseEntry reads the value of a file's key, without unpacking it.
func parseEntry(key string, value []byte) (e entry, err error) {
	e.encoded = strings.TrimPrefix(key, prefixFile)
	switch {
	case len(value) == 0:
		return e, errors.New("the message is empty")
	case len(value) > maxValue:
		return e, fmt.Errorf("the message has %d bytes, more than any file needs", len(value))
	case !bytes.HasPrefix(value, []byte(magicFile)) || len(value) < len(magicFile)+len(e.sum):
		return e, errors.New("the message is no file of this format")
	}
	e.packed = value[len(magicFile)+copy(e.sum[:], value[len(magicFile):]):]
	return e, nil
}

// errSum is for a message of which content or hash is damaged; nobody can tell which.
var errSum = errors.New("the content does not have the hash that the message names")

// unpack returns the file, and an error if it is not what the key and the sum say.
func (e *entry) unpack() (f catalog.TreeFile, err error) {
	payload, err := unpacker().DecodeAll(e.packed, nil)
	if err != nil {
		return f, fmt.Errorf("the message cannot be unpacked: %w", err)
	}
	r := reading{b: payload}
	f.Path = string(r.nextBytes(r.length()))
	for n := r.length(); n > 0 && !r.cut; n-- {
		var t catalog.ObjectTime
		t.Kind = catalog.KnownKind(catalog.Kind(r.nextBytes(r.length())))
		copy(t.UUID[:], r.nextBytes(len(t.UUID)))
		t.CreatedAt, t.UpdatedAt = r.time(), r.time()
		f.Times = append(f.Times, t)
	}
	f.Bytes = r.b
	switch {
	case r.cut:
		return f, errors.New("the message is cut off")
	case len(f.Bytes) > maxContent:
		return f, fmt.Errorf("the file has %d bytes, more than any file may have", len(f.Bytes))
	case !fs.ValidPath(f.Path) || encodePath(f.Path) != e.encoded:
		return f, fmt.Errorf("the message belongs to another path, %q", f.Path)
	case SumOf(f.Path, f.Bytes) != e.sum:
		return f, errSum
	}
	return f, nil
}

// A reading takes values off the front of b. After cut, all values are zero.
type reading struct {
	b   []byte
	cut bool
}

func (r *reading) length() int {
	n, k := binary.Uvarint(r.b)
	if k <= 0 || n > uint64(len(r.b)) {
		r.cut, r.b = true, nil
		return 0
	}
	r.b = r.b[k:]
	return int(n)
}

func (r *reading) nextBytes(n int) []byte {
	if n > len(r.b) {
		r.cut, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reading) time() time.Time {
	n, k := binary.Varint(r.b)
	if k <= 0 {
		r.cut, r.b = true, nil
		return time.Time{}
	}
	r.b = r.b[k:]
	return time.UnixMicro(n).UTC()
}
