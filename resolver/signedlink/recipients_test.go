package signedlink_test

import (
	"errors"
	"strings"
	"testing"

	"fingerpost/resolver/signedlink"
)

var news = signedlink.Subscription{ProjectID: 57762359579023, Address: "Ada@example.com", Category: "newsletter"}

// TestLinks: a link opens as long as its key is kept, whatever becomes of the process.
func TestRecipients(t *testing.T) {
	t.Parallel()
	store := newMemory()
	links := signedlink.NewRecipients(store)
	if _, err := links.Open(""); !errors.Is(err, signedlink.ErrUnknown) { // no key was made so far: an empty one must not open anything
		t.Error(err)
	}
	link, err := links.Make(news)
	if err != nil || strings.Trim(link, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Fatalf("%q, %v", link, err)
	}
	if again, err := signedlink.NewRecipients(store).Make(news); again != link || err != nil {
		t.Errorf("after a restart %q, %v; want %q", again, err, link)
	}
	if of, err := signedlink.NewRecipients(store).Open(link); of != news || err != nil {
		t.Errorf("%+v, %v", of, err)
	}
	if of, err := signedlink.NewRecipients(newMemory()).Open(link); !errors.Is(err, signedlink.ErrUnknown) {
		t.Errorf("with another key: %+v, %v", of, err)
	}
	long := signedlink.Subscription{ProjectID: 1, Address: strings.Repeat("a", 64) + "@" + strings.Repeat("b", 189),
		Category: strings.Repeat("c", 64)}
	if link, err = links.Make(long); err != nil || len(link) > 700 {
		t.Errorf("the longest link has %d bytes, %v", len(link), err)
	}
	if of, err := links.Open(link); of != long || err != nil {
		t.Errorf("%+v, %v", of, err)
	}
	store.err = errors.New("the disk is full")
	if _, err := links.Make(news); !errors.Is(err, store.err) {
		t.Errorf("make without a store: %v", err)
	}
	if _, err := links.Open(link); !errors.Is(err, store.err) {
		t.Errorf("open without a store: %v", err)
	}
}
