package catalog

import (
	"encoding/base32"
	"encoding/binary"
	"regexp"
)

// An Edge is a declared edge of a cluster: a node that follows the files of this one, and proves with its private key
// that it is the one that is meant (configsrc/README.md, edge).
type Edge struct {
	_         struct{} `cbor:",toarray"`
	Name      string   // the block's label
	PublicKey string   // nkey of a user, "U…"
}

var edgeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// CheckEdgeName returns what is wrong with the name of an edge, "" for nothing. A dot is not allowed: it separates the
// parts of a NATS subject.
func CheckEdgeName(name string) string {
	if edgeName.MatchString(name) {
		return ""
	}
	return "an edge's name has 1 to 64 of letters, digits, underscores and hyphens"
}

// Validate checks the values.
func (e *Edge) Validate() Problems {
	var ps Problems
	if msg := CheckEdgeName(e.Name); msg != "" {
		ps.Addf("name", "%s", msg)
	}
	if !IsUserKey(e.PublicKey) {
		ps.Addf("publicKey", `must be the public nkey of a user, "U" and 55 more letters and digits, as "fingerpost edges keygen" prints it`)
	}
	return ps
}

// AllFields lists the fields of an edge.
func (e *Edge) AllFields() []Field {
	return []Field{{Name: "name", Value: &e.Name, Heading: true},
		{Name: "publicKey", Value: &e.PublicKey, Label: "Public key"}}
}

// IsUserKey reports whether s is the public nkey of a user: a type byte, an Ed25519 key and their CRC-16 (XMODEM, low
// byte first), in base32 without padding (docs of NATS, NKeys). It is written here because the nouns import no library
// of a transport; a test compares it with the library's keys.
func IsUserKey(s string) bool {
	const user, keyLen = 20 << 3, 32
	b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(s)
	if err != nil || len(b) != 1+keyLen+2 || b[0] != user {
		return false
	}
	return crc16(b[:1+keyLen]) == binary.LittleEndian.Uint16(b[1+keyLen:])
}

func crc16(b []byte) (crc uint16) {
	for _, c := range b {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
