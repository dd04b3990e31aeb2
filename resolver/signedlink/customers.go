package signedlink

import (
	"encoding/binary"
	"errors"
	"time"

	"fingerpost/resolver/catalog"
)

// CustomerLife is how long a link of a customer is good.
const CustomerLife = 7 * 24 * time.Hour

// slack is how far ahead the clock may have been that a link was made by; a link of one further ahead has ended.
const slack = time.Hour

// A Domain is what a link of a customer shows.
type Domain struct {
	Project catalog.UUID
	Name    string // canonical, with "*." for a wildcard
}

// ErrEnded is the error of Customers.Open for a link whose time is over.
var ErrEnded = errors.New("the link has ended")

// Customers makes and opens the links by which a customer sees one domain of the console without a key, for seven days. A
// link is bound to the project's uuid and the domain's name; whether the domain is still that project's, the caller looks
// up. Safe for concurrent use.
type Customers struct{ signed *links }

// NewCustomers returns the Customers whose key is in a store.
func NewCustomers(store Store) *Customers {
	return &Customers{newLinks(store, "console/customer-links", "fingerpost customer link 1\n")}
}

// Make returns a link that is good for CustomerLife.
func (c *Customers) Make(of Domain, now time.Time) (link string, err error) {
	content := binary.BigEndian.AppendUint64(nil, uint64(now.Add(CustomerLife).Unix()))
	return c.signed.Make(append(append(content, of.Project[:]...), of.Name...))
}

// Open returns what a link shows. ErrUnknown and ErrEnded are errors of the link, others of the Store.
func (c *Customers) Open(link string, now time.Time) (of Domain, err error) {
	const head = 8 + len(of.Project)
	content, err := c.signed.Open(link, head+1, head+255)
	if err != nil {
		return of, err
	}
	left := int64(binary.BigEndian.Uint64(content)) - now.Unix()
	if left <= 0 || left > int64((CustomerLife+slack).Seconds()) {
		return of, ErrEnded
	}
	copy(of.Project[:], content[8:])
	of.Name = string(content[head:])
	return of, nil
}

// EndAll ends every link that was made so far.
func (c *Customers) EndAll() error { return c.signed.EndAll() }
