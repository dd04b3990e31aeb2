// Package customerlink makes and opens the links by which a customer sees one domain of the console without a key.
//
// A link is a bearer token in a URL path: it shows one domain for seven days. It is bound to the project's uuid and the
// domain's name, so a domain that is another project's by now is not shown; the caller looks that up. Nothing is kept for
// a link, see package signedlink. EndAll ends every link.
//
// The package knows no HTTP, and does not limit guesses: the caller does.
package customerlink

import (
	"encoding/binary"
	"errors"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
)

// Life is how long a link is good.
const Life = 7 * 24 * time.Hour

// slack is how far ahead the clock may have been that a link was made by; a link of one further ahead has ended.
const slack = time.Hour

// A Store keeps the key of links.
type Store = signedlink.Store

// A Domain is what a link shows.
type Domain struct {
	Project catalog.UUID
	Name    string // canonical, with "*." for a wildcard
}

// The errors of Open for a link that is not good.
var (
	ErrUnknown = signedlink.ErrUnknown
	ErrEnded   = errors.New("the link has ended")
)

// Links makes and opens links. Safe for concurrent use.
type Links struct{ signed *signedlink.Links }

// New returns the Links whose key is in a store.
func New(store Store) *Links {
	return &Links{signedlink.New(store, "console/customer-links", "fingerpost customer link 1\n")}
}

// Make returns a link that is good for Life.
func (l *Links) Make(of Domain, now time.Time) (link string, err error) {
	content := binary.BigEndian.AppendUint64(nil, uint64(now.Add(Life).Unix()))
	return l.signed.Make(append(append(content, of.Project[:]...), of.Name...))
}

// Open returns what a link shows. ErrUnknown and ErrEnded are errors of the link, others of the Store.
func (l *Links) Open(link string, now time.Time) (of Domain, err error) {
	const head = 8 + len(of.Project)
	content, err := l.signed.Open(link, head+1, head+255)
	if err != nil {
		return of, err
	}
	left := int64(binary.BigEndian.Uint64(content)) - now.Unix()
	if left <= 0 || left > int64((Life+slack).Seconds()) {
		return of, ErrEnded
	}
	copy(of.Project[:], content[8:])
	of.Name = string(content[head:])
	return of, nil
}

// EndAll ends every link that was made so far.
func (l *Links) EndAll() error { return l.signed.EndAll() }
