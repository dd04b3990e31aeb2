package signedlink

import (
	"encoding/binary"
	"strings"

	"fingerpost/resolver/catalog"
)

// RecipientPath is where links of recipients lead on the service's own address. What follows is what Recipients.Make returns.
const RecipientPath = "/u/"

// A Subscription is what a link of a recipient ends: mail of a category from a project to an address.
type Subscription struct {
	ProjectID int64
	Address   string // canonical
	Category  string
}

// maxContent is longer than the content of any link of a recipient: an id, a category and an address.
const maxContent = 512

// Recipients makes and opens the links by which a recipient ends mail of one category from one project, and nothing else.
// They never end. Safe for concurrent use.
type Recipients struct{ signed *links }

// NewRecipients returns the Recipients whose key is in a store.
func NewRecipients(store Store) *Recipients {
	return &Recipients{newLinks(store, "mail/unsubscribe-links", "fingerpost unsubscribe link 1\n")}
}

// Make returns the text of a link. It is the same at each call.
func (r *Recipients) Make(of Subscription) (link string, err error) {
	content := binary.BigEndian.AppendUint64(nil, uint64(of.ProjectID))
	content = append(content, of.Category...)
	return r.signed.Make(append(append(content, 0), of.Address...))
}

// Open returns what a link ends. Errors other than ErrUnknown are the Store's.
func (r *Recipients) Open(link string) (of Subscription, err error) {
	content, err := r.signed.Open(link, 9, maxContent)
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
