package jwks

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"fingerpost/resolver/catalog"
)

// A Set is the content of a key set. It is shared and must not be changed.
type Set struct {
	Keys     []*catalog.PublicKey // at least one
	Identity [sha256.Size]byte    // changes with the Keys

	note []byte // what the ledger keeps
}

// A note is a set in the ledger.
type note struct {
	URL  string    `json:"url"`
	Keys []noteKey `json:"keys"`
}

type noteKey struct {
	ID  string `json:"kid,omitempty"`
	PEM string `json:"pem"`
}

// parse reads an answer of an address.
func parse(url string, text []byte) (*Set, error) {
	keys, unfit, err := catalog.ParseKeySet(text)
	switch {
	case err != nil:
		return nil, err
	case len(keys) == 0:
		return nil, fmt.Errorf("the key set has no key that verifies tokens (%s unfit)", catalog.Count(unfit, "key"))
	}
	n := note{URL: url}
	for _, k := range keys {
		der, err := x509.MarshalPKIXPublicKey(k.Key)
		if err != nil {
			return nil, fmt.Errorf("write a key: %w", err)
		}
		n.Keys = append(n.Keys, noteKey{k.ID, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))})
	}
	return newSet(n, keys)
}

func newSet(n note, keys []*catalog.PublicKey) (*Set, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("write a key set: %w", err)
	}
	return &Set{Keys: keys, Identity: sha256.Sum256(text), note: text}, nil
}

// parseNote reads what the ledger keeps.
func parseNote(text []byte) (url string, s *Set, err error) {
	var n note
	if err := json.Unmarshal(text, &n); err != nil {
		return "", nil, fmt.Errorf("read a key set: %w", err)
	}
	var keys []*catalog.PublicKey
	for _, x := range n.Keys {
		k, err := catalog.ParsePublicKey(x.PEM)
		if err != nil {
			return "", nil, fmt.Errorf("read a key set: a key %w", err)
		}
		k.ID = x.ID
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return "", nil, errors.New("read a key set: it has no keys")
	}
	s, err = newSet(n, keys)
	return n.URL, s, err
}

// notePrefix begins the names of the notes. A name is not longer than a hash: addresses are.
const notePrefix = "keyset/"

func noteName(url string) string {
	sum := sha256.Sum256([]byte(url))
	return notePrefix + base64.RawURLEncoding.EncodeToString(sum[:])
}
