package suppress

import (
	"encoding/binary"
	"strings"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
)

// Path is where links lead on the service's own address. What follows is the text of Links.Make.
const Path = "/u/"

// A Subscription is what a link ends: mail of a category from a project to an address.
type Subscription struct {
	ProjectID int64
	Address   string // canonical
	Category  string
}

// ErrUnknown is the error of Open for a link that was not made here.
var ErrUnknown = signedlink.ErrUnknown

// maxContent is longer than the content of any link: an id, a category and an address.
const maxContent = 512

// Links makes and opens links, which never end. Safe for concurrent use.
type Links struct{ signed *signedlink.Links }

// NewLinks returns the Links whose key is in a store.
func NewLinks(store signedlink.Store) *Links {
	return &Links{signedlink.New(store, "mail/unsubscribe-links", "fingerpost unsubscribe link 1\n")}
}

// Make returns the text of a link. It is the same at each call.
func (l *Links) Make(of Subscription) (link string, err error) {
	content := binary.BigEndian.AppendUint64(nil, uint64(of.ProjectID))
	content = append(content, of.Category...)
	return l.signed.Make(append(append(content, 0), of.Address...))
}

// Open returns what a link ends. Errors other than ErrUnknown are the Store's.
func (l *Links) Open(link string) (of Subscription, err error) {
	content, err := l.signed.Open(link, 9, maxContent)
	if err != nil {
		return of, err
	}
	category, address, _ := strings.Cut(string(content[8:]), "\x00")
	return Subscription{ProjectID: int64(binary.BigEndian.Uint64(content)), Address: address, Category: category}, nil
}

// Entry is what a recipient's link puts on the list.
func (s *Subscription) Entry() catalog.Suppression {
	return catalog.Suppression{Address: s.Address, Reason: catalog.SuppressUnsubscribe, Category: s.Category}
}
