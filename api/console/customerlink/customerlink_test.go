package customerlink_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"fingerpost/api/console/customerlink"
	"fingerpost/resolver/catalog"
)

// A memory is a Store.
type memory struct {
	values map[string][]byte
	err    error
}

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

var (
	at   = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	shop = customerlink.Domain{Project: catalog.DeriveProjectUUID("acme"), Name: "*.acme.example"}
)

func TestLinks(t *testing.T) {
	t.Parallel()
	store := &memory{values: map[string][]byte{}}
	links := customerlink.New(store)
	open := func(link string, after time.Duration, want error) {
		t.Helper()
		of, err := links.Open(link, at.Add(after))
		if !errors.Is(err, want) || want == nil && of != shop || want != nil && of != (customerlink.Domain{}) {
			t.Errorf("%s after %v: %+v, %v; want %v", link, after, of, err, want)
		}
	}
	open("", 0, customerlink.ErrUnknown) // there is no key yet, which is not one of zeros
	link, err := links.Make(shop, at)
	if err != nil || strings.Contains(link, "/") || len(link) > 600 {
		t.Fatalf("%q, %v", link, err)
	}
	open(link, 0, nil)
	open(link, customerlink.Life-time.Second, nil)
	open(link, customerlink.Life, customerlink.ErrEnded)
	open(link, -time.Minute, nil)                    // on a clock that is a little behind
	open(link, -24*time.Hour, customerlink.ErrEnded) // the clock was ahead, and was set back
	links = customerlink.New(store)                  // a restart
	open(link, time.Hour, nil)
	if err := links.EndAll(); err != nil {
		t.Fatal(err)
	}
	open(link, time.Hour, customerlink.ErrUnknown)
	open(link, customerlink.Life, customerlink.ErrUnknown) // nothing is told of what it was
	store.err = errors.New("the disk is full")
	if _, err := links.Make(shop, at); !errors.Is(err, store.err) {
		t.Errorf("make without a store: %v", err)
	}
	if err := links.EndAll(); !errors.Is(err, store.err) {
		t.Errorf("end without a store: %v", err)
	}
	open(link, 0, store.err)
}
