// Package signedlink makes and opens the parts of URLs by which somebody without a key may see or do one thing: a
// customer sees a domain (Customers), a recipient of mail leaves a list (Recipients).
//
// What it promises. A link opens to exactly what it was made of: another spelling, another length or another bit is refused.
// It carries its content with an HMAC-SHA-256, so nothing is stored for a link. Two kinds of links have a key and a context
// each, so a link of one kind never opens as one of the other.
//
// What it needs. A Store that keeps the key of each kind durably: with another key, every link is unknown.
//
// What it does not do. It knows no HTTP, and does not look up whether what a link names is still there. The caller limits
// guesses.
package signedlink

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
)

// A Store keeps small values by name, durably; *resolver.Resolver is one.
type Store interface {
	Named(name string) (value []byte, found bool, err error)
	SetNamed(values map[string][]byte) error
}

// ErrUnknown is the error of Open for a link that was not made here.
var ErrUnknown = errors.New("the link was not made here, or all links were ended")

var encoding = base64.RawURLEncoding

// links makes and opens the links of one kind. Safe for concurrent use.
type links struct {
	store            Store
	keyName, context string
	mu               sync.Mutex // held while a key is made
}

// newLinks returns the links whose key is in a store under keyName. context is a text that only links of this kind have.
func newLinks(store Store, keyName, context string) *links {
	return &links{store: store, keyName: keyName, context: context}
}

// Make returns the link with a content, for a URL. It is the same at each call until EndAll.
func (l *links) Make(content []byte) (link string, err error) {
	key, found, err := l.key()
	if err == nil && !found {
		key, err = l.firstKey()
	}
	if err != nil {
		return "", err
	}
	return encoding.EncodeToString(append(l.sign(key, content), content...)), nil
}

// Open returns the content of a link. Contents have at least least bytes, and at most most. Errors other than ErrUnknown are
// the Store's.
func (l *links) Open(link string, least, most int) (content []byte, err error) {
	if len(link) > encoding.EncodedLen(sha256.Size+most) {
		return nil, ErrUnknown
	}
	raw, err := encoding.DecodeString(link)
	spelt := encoding.EncodeToString(raw) == link // the decoder ignores line ends and unused bits
	if err != nil || !spelt || len(raw) < sha256.Size+least {
		return nil, ErrUnknown
	}
	key, found, err := l.key()
	if err != nil {
		return nil, err
	}
	if content = raw[sha256.Size:]; !found || !hmac.Equal(raw[:sha256.Size], l.sign(key, content)) {
		return nil, ErrUnknown
	}
	return content, nil
}

// EndAll ends every link that was made so far.
func (l *links) EndAll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.renew()
	return err
}

func (l *links) key() (key []byte, found bool, err error) {
	if key, found, err = l.store.Named(l.keyName); err != nil {
		return nil, false, fmt.Errorf("read the key of links: %w", err)
	}
	return key, found && len(key) == sha256.Size, nil
}

// firstKey returns the key, and makes one if no other call has made one meanwhile.
func (l *links) firstKey() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key, found, err := l.key(); err != nil || found {
		return key, err
	}
	return l.renew()
}

// renew stores a new key. The caller holds mu.
func (l *links) renew() ([]byte, error) {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	if err := l.store.SetNamed(map[string][]byte{l.keyName: key}); err != nil {
		return nil, fmt.Errorf("store a key of links: %w", err)
	}
	return key, nil
}

func (l *links) sign(key, content []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(l.context))
	mac.Write(content)
	return mac.Sum(nil)
}
