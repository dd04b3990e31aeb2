// Package customerlink makes and opens the links by which a customer sees one domain of the console without a key.
//
// A link is a bearer token in a URL path: it shows one domain for seven days. It is bound to the project's uuid and the
// domain's name, so a domain that is another project's by now is not shown; the caller looks that up. Nothing is kept for
// a link: it carries its content with an HMAC-SHA-256, whose key the Store keeps. EndAll makes another key, and every
// link ends.
//
// The package knows no HTTP, and does not limit guesses: the caller does.
package customerlink

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
)

// Life is how long a link is good.
const Life = 7 * 24 * time.Hour

// slack is how far ahead the clock may have been that a link was made by; a link of one further ahead has ended.
const slack = time.Hour

// A Store keeps small values by name, durably; *resolver.Resolver is one.
type Store interface {
	Named(name string) (value []byte, found bool, err error)
	SetNamed(values map[string][]byte) error
}

// A Domain is what a link shows.
type Domain struct {
	Project catalog.UUID
	Name    string // canonical, with "*." for a wildcard
}

// The errors of Open for a link that is not good.
var (
	ErrUnknown = errors.New("the link was not made here, or all links were ended")
	ErrEnded   = errors.New("the link has ended")
)

// keyName is the name of the key in the Store.
const keyName = "console/customer-links"

// context begins what is signed, so that no other use of a key has the same signatures.
const context = "fingerpost customer link 1\n"

var encoding = base64.RawURLEncoding

// Links makes and opens links. Safe for concurrent use.
type Links struct {
	store Store
	mu    sync.Mutex // held while a key is made
}

// New returns the Links whose key is in a store.
func New(store Store) *Links { return &Links{store: store} }

// Make returns a link that is good for Life.
func (l *Links) Make(of Domain, now time.Time) (link string, err error) {
	key, err := l.key()
	if err != nil {
		return "", err
	}
	content := binary.BigEndian.AppendUint64(nil, uint64(now.Add(Life).Unix()))
	content = append(append(content, of.Project[:]...), of.Name...)
	return encoding.EncodeToString(append(sign(key, content), content...)), nil
}

// Open returns what a link shows. ErrUnknown and ErrEnded are errors of the link, others of the Store.
func (l *Links) Open(link string, now time.Time) (of Domain, err error) {
	const head = sha256.Size + 8 + len(of.Project)
	raw, err := encoding.DecodeString(link)
	spelt := encoding.EncodeToString(raw) == link // the decoder ignores line ends and unused bits
	if err != nil || !spelt || len(raw) <= head || len(raw) > head+255 {
		return of, ErrUnknown
	}
	key, found, err := l.store.Named(keyName)
	if err != nil {
		return of, fmt.Errorf("read the key of links: %w", err)
	}
	content := raw[sha256.Size:]
	if !found || !hmac.Equal(raw[:sha256.Size], sign(key, content)) {
		return of, ErrUnknown
	}
	left := int64(binary.BigEndian.Uint64(content)) - now.Unix()
	if left <= 0 || left > int64((Life+slack).Seconds()) {
		return of, ErrEnded
	}
	copy(of.Project[:], content[8:])
	of.Name = string(content[8+len(of.Project):])
	return of, nil
}

// EndAll ends every link that was made so far.
func (l *Links) EndAll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.renew()
	return err
}

// key returns the key, and makes one if there is none.
func (l *Links) key() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, found, err := l.store.Named(keyName)
	if err != nil {
		return nil, fmt.Errorf("read the key of links: %w", err)
	}
	if found && len(key) == sha256.Size {
		return key, nil
	}
	return l.renew()
}

func (l *Links) renew() ([]byte, error) {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	if err := l.store.SetNamed(map[string][]byte{keyName: key}); err != nil {
		return nil, fmt.Errorf("store a key of links: %w", err)
	}
	return key, nil
}

func sign(key, content []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(context))
	mac.Write(content)
	return mac.Sum(nil)
}
