package signedlink_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"fingerpost/resolver/signedlink"
)

// A memory is a Store.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
	err    error
}

func newMemory() *memory { return &memory{values: map[string][]byte{}} }

func (m *memory) Named(name string) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, found := m.values[name]
	return v, found, m.err
}

func (m *memory) SetNamed(values map[string][]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		maps.Copy(m.values, values)
	}
	return m.err
}

const most = 64

var content = []byte("\x00what a link is made of")

func links(store signedlink.Store) *signedlink.Links { return signedlink.New(store, "key", "a kind\n") }

// TestForged: no change of a link opens it: each bit, each length, each spelling; nor do another key or another kind.
func TestForged(t *testing.T) {
	t.Parallel()
	store := newMemory()
	l := links(store)
	refused := func(text string) {
		t.Helper()
		if got, err := l.Open(text, 1, most); !errors.Is(err, signedlink.ErrUnknown) || got != nil {
			t.Errorf("%q opens %q, %v", text, got, err)
		}
	}
	refused("") // there is no key yet, which is not one of zeros
	zeros := base64.RawURLEncoding.EncodeToString(make([]byte, 40))
	refused(zeros)
	link, err := l.Make(content)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := links(store).Open(link, 1, most); !bytes.Equal(got, content) || err != nil { // after a restart
		t.Errorf("%q, %v", got, err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(link)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range len(raw) * 8 {
		raw[bit/8] ^= 1 << (bit % 8)
		refused(base64.RawURLEncoding.EncodeToString(raw))
		raw[bit/8] ^= 1 << (bit % 8)
	}
	for n := range link {
		refused(link[:n])
	}
	for _, text := range []string{link + "A", link + "=", link + "\n", strings.Repeat("A", 2000)} {
		refused(text)
	}
	for name, other := range map[string]*signedlink.Links{"key": links(newMemory()),
		"kind": signedlink.New(store, "key", "another kind\n"), "key of a kind": signedlink.New(store, "other", "a kind\n")} {
		text, err := other.Make(content)
		if err != nil || text == link {
			t.Fatalf("another %s: %q, %v", name, text, err)
		}
		refused(text)
	}
	if _, err := l.Open(link, len(content)+1, most); !errors.Is(err, signedlink.ErrUnknown) {
		t.Errorf("a content that is too short: %v", err)
	}
	if _, err := l.Open(link, 1, len(content)-1); !errors.Is(err, signedlink.ErrUnknown) {
		t.Errorf("a content that is too long: %v", err)
	}
}

// TestKey: the first links of many calls at the same time have one key, EndAll makes another one, and a Store that fails is
// no unknown link.
func TestKey(t *testing.T) {
	t.Parallel()
	store := newMemory()
	l := links(store)
	made := make([]string, 8)
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() { made[i], _ = l.Make(content) })
	}
	all.Wait()
	for _, link := range made {
		if got, err := l.Open(link, 1, most); link != made[0] || !bytes.Equal(got, content) || err != nil {
			t.Errorf("%q: %q, %v", link, got, err)
		}
	}
	if err := l.EndAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Open(made[0], 1, most); !errors.Is(err, signedlink.ErrUnknown) {
		t.Errorf("after the end: %v", err)
	}
	store.err = errors.New("the disk is full")
	_, err1 := l.Make(content)
	_, err2 := l.Open(made[0], 1, most)
	if err3 := l.EndAll(); !errors.Is(err1, store.err) || !errors.Is(err2, store.err) || !errors.Is(err3, store.err) {
		t.Errorf("without a store: %v, %v, %v", err1, err2, err3)
	}
}

// FuzzOpen: no text but the link that was made opens.
func FuzzOpen(f *testing.F) {
	l := links(newMemory())
	link, err := l.Make(content)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(link)
	f.Add("")
	f.Add(link[:20])
	f.Fuzz(func(t *testing.T, text string) {
		got, err := l.Open(text, 1, most)
		if (err == nil) != (text == link) || err == nil && !bytes.Equal(got, content) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	})
}
