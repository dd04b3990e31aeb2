package catalog

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
)

// A Position says which state of the files a node answers from. Generations are comparable within one epoch only.
type Position struct {
	Epoch      string // 16 hexadecimal digits in lower case, made with the store and anew by a restore; "" means none
	Generation uint64
}

var errPosition = errors.New("a position is an epoch of 16 hexadecimal digits in lower case, a dot, and a generation, " +
	`as in "0123456789abcdef.42"`)

// NewEpoch returns a random epoch.
func NewEpoch() string {
	var b [8]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}

// IsEpoch reports whether s has the form of an epoch.
func IsEpoch(s string) bool {
	if len(s) != 16 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// ParsePosition reads what Position.String writes, and nothing else: no spaces, signs or leading zeros.
func ParsePosition(s string) (Position, error) {
	epoch, digits, ok := strings.Cut(s, ".")
	if !ok || !IsEpoch(epoch) || digits == "" || digits[0] == '+' || digits[0] == '0' && digits != "0" {
		return Position{}, errPosition
	}
	generation, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return Position{}, errPosition
	}
	return Position{epoch, generation}, nil
}

// String is the form of the header X-Config-Position: <epoch>.<generation>.
func (p Position) String() string { return p.Epoch + "." + strconv.FormatUint(p.Generation, 10) }
