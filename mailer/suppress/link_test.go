package suppress_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"fingerpost/mailer/suppress"
)

// A memory is a Store.
type memory struct {
	values map[string][]byte
	err    error
}

func newMemory() *memory { return &memory{values: map[string][]byte{}} }

func (m *memory) Named(name string) ([]byte, bool, error) {
	v, found := m.values[name]
	return v, found, m.err
}

func (m *memory) SetNamed(values map[string][]byte) error {
	if m.err == nil {
		maps.Copy(m.values, values)
	}
	return m.err
}

var news = suppress.Subscription{ProjectID: 57762359579023, Address: "Ada@example.com", Category: "newsletter"}

// TestLinks: a link opens as long as its key is kept, whatever becomes of the process.
func TestLinks(t *testing.T) {
	t.Parallel()
	store := newMemory()
	links := suppress.NewLinks(store)
	if _, err := links.Open(""); !errors.Is(err, suppress.ErrUnknown) { // there is no key yet, which is not one of zeros
		t.Error(err)
	}
	link, err := links.Make(news)
	if err != nil || strings.Trim(link, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Fatalf("%q, %v", link, err)
	}
	if again, err := suppress.NewLinks(store).Make(news); again != link || err != nil {
		t.Errorf("after a restart %q, %v; want %q", again, err, link)
	}
	if of, err := suppress.NewLinks(store).Open(link); of != news || err != nil {
		t.Errorf("%+v, %v", of, err)
	}
	if of, err := suppress.NewLinks(newMemory()).Open(link); !errors.Is(err, suppress.ErrUnknown) {
		t.Errorf("with another key: %+v, %v", of, err)
	}
	long := suppress.Subscription{ProjectID: 1, Address: strings.Repeat("a", 64) + "@" + strings.Repeat("b", 189),
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
