package suppress

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"

	"fingerpost/resolver/catalog"
)

// Path is where links lead on the service's own address. What follows is the text of Links.Make.
const Path = "/u/"

// A Store keeps small values by name, durably; *resolver.Resolver is one.
type Store interface {
	Named(name string) (value []byte, found bool, err error)
	SetNamed(values map[string][]byte) error
}

// A Subscription is what a link ends: mail of a category from a project to an address.
type Subscription struct {
	ProjectID int64
	Address   string // canonical
	Category  string
}

// ErrUnknown is the error of Open for a link that was not made here.
var ErrUnknown = errors.New("the link was not made here")

const (
	keyName = "mail/unsubscribe-links" // of the key in the Store
	// context begins what is signed, so that no other use of a key has the same signatures.
	context = "fingerpost unsubscribe link 1\n"
	// maxLink is longer than any link: two hashes, an id, a category and an address.
	maxLink = 1024
)

var encoding = base64.RawURLEncoding

// Links makes and opens links. Safe for concurrent use.
type Links struct {
	store Store
	mu    sync.Mutex // held while a key is made
}

// NewLinks returns the Links whose key is in a store.
func NewLinks(store Store) *Links { return &Links{store: store} }

// Make returns the text of a link. It is the same at each call.
func (l *Links) Make(of Subscription) (link string, err error) {
	key, err := l.key()
	if err != nil {
		return "", err
	}
	content := binary.BigEndian.AppendUint64(nil, uint64(of.ProjectID))
	content = append(content, of.Category...)
	content = append(append(content, 0), of.Address...)
	return encoding.EncodeToString(append(sign(key, content), content...)), nil
}

// Open returns what a link ends. Errors other than ErrUnknown are the Store's.
func (l *Links) Open(link string) (of Subscription, err error) {
	const head = sha256.Size + 8
	if len(link) > maxLink {
		return of, ErrUnknown
	}
	raw, err := encoding.DecodeString(link)
	spelt := encoding.EncodeToString(raw) == link // the decoder ignores line ends and unused bits
	if err != nil || !spelt || len(raw) <= head {
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
	category, address, _ := strings.Cut(string(content[8:]), "\x00")
	return Subscription{ProjectID: int64(binary.BigEndian.Uint64(content)), Address: address, Category: category}, nil
}

// Entry is what a recipient's link puts on the list.
func (s *Subscription) Entry() catalog.Suppression {
	return catalog.Suppression{Address: s.Address, Reason: catalog.SuppressUnsubscribe, Category: s.Category}
}

// key returns the key, and makes one if there is none.
func (l *Links) key() ([]byte, error) {
	key, found, err := l.store.Named(keyName)
	if err != nil || found && len(key) == sha256.Size {
		return key, wrapped(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if key, found, err = l.store.Named(keyName); err != nil || found && len(key) == sha256.Size {
		return key, wrapped(err)
	}
	key = make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return key, wrapped(l.store.SetNamed(map[string][]byte{keyName: key}))
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read or make the key of links: %w", err)
}

func sign(key, content []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(context))
	mac.Write(content)
	return mac.Sum(nil)
}
