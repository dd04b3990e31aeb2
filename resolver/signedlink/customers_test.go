package signedlink_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
)

var (
	at   = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	shop = signedlink.Domain{Project: catalog.DeriveProjectUUID("acme"), Name: "*.acme.example"}
)

func TestCustomers(t *testing.T) {
	t.Parallel()
	store := newMemory()
	links := signedlink.NewCustomers(store)
	open := func(link string, after time.Duration, want error) {
		t.Helper()
		of, err := links.Open(link, at.Add(after))
		if !errors.Is(err, want) || want == nil && of != shop || want != nil && of != (signedlink.Domain{}) {
			t.Errorf("%s after %v: %+v, %v; want %v", link, after, of, err, want)
		}
	}
	open("", 0, signedlink.ErrUnknown) // no key was made so far: an empty one must not open anything
	link, err := links.Make(shop, at)
	if err != nil || strings.Contains(link, "/") || len(link) > 600 {
		t.Fatalf("%q, %v", link, err)
	}
	open(link, 0, nil)
	open(link, signedlink.CustomerLife-time.Second, nil)
	open(link, signedlink.CustomerLife, signedlink.ErrEnded)
	open(link, -time.Minute, nil)                  // on a clock that is a little behind
	open(link, -24*time.Hour, signedlink.ErrEnded) // the clock was ahead, and was set back
	links = signedlink.NewCustomers(store)         // a restart
	open(link, time.Hour, nil)
	if err := links.EndAll(); err != nil {
		t.Fatal(err)
	}
	open(link, time.Hour, signedlink.ErrUnknown)
	open(link, signedlink.CustomerLife, signedlink.ErrUnknown) // the error is the same as for a link of others
	store.err = errors.New("the disk is full")
	if _, err := links.Make(shop, at); !errors.Is(err, store.err) {
		t.Errorf("make without a store: %v", err)
	}
	if err := links.EndAll(); !errors.Is(err, store.err) {
		t.Errorf("end without a store: %v", err)
	}
	open(link, 0, store.err)
}
