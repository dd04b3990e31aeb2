package configsrc_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

func allowed() error { return nil }

func newKey(name string) *catalog.Key {
	k := &catalog.Key{Name: name, Allow: catalog.MayRead | catalog.MaySecrets}
	k.Renew()
	return k
}

// The first key makes keys.hcl; all others follow it, also when many come at once, and a name is given once.
func TestKeysCreatedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "acme.hcl"), project("acme"))
	n := newNode(t, dir, nodeOptions{})
	const names = 10
	var made, taken atomic.Int64
	var wg sync.WaitGroup
	for i := range 2 * names {
		wg.Go(func() {
			err := createKey(context.Background(), n.source, newKey(fmt.Sprintf("key-%d", i%names)), allowed)
			switch e := (*catalog.Error)(nil); {
			case err == nil:
				made.Add(1)
			case errors.As(err, &e) && e.Code == catalog.CodeConflict && e.Problems[0].Path == "name":
				taken.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != names || taken.Load() != names || n.resolver.Keys().Len() != names {
		t.Errorf("%d keys made, %d refused, %d served, want %d each", made.Load(), taken.Load(), n.resolver.Keys().Len(), names)
	}
	onlyFiles(t, dir, "acme.hcl", "keys.hcl")
	if got := strings.Count(read(t, filepath.Join(dir, "keys.hcl")), "\nkey "); got != names-1 { // the first begins the file
		t.Errorf("%d keys after the first, want %d", got, names-1)
	}
}

// permit sees the keys as the change before has left them: of two keys, in different files, one stays.
func TestKeysRevokedAtOnce(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir := t.TempDir()
	n := newNode(t, dir, nodeOptions{})
	last := errors.New("the last key")
	for round := range 20 {
		names := []string{"first", "second"}
		for _, name := range names {
			write(t, filepath.Join(dir, name+".hcl"), hcledit.KeyBlock(newKey(name)))
		}
		// The resolver serves a key a moment before the Source knows its file.
		n.until("both keys are served", func() bool { return n.resolver.Keys().Len() == 2 && n.source.Status().Files == 2 })
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for i, name := range names {
			wg.Go(func() {
				errs[i] = revokeKey(context.Background(), n.source, name, func() error {
					if n.resolver.Keys().Len() == 1 {
						return last
					}
					return nil
				})
			})
		}
		wg.Wait()
		if n.resolver.Keys().Len() != 1 || !slices.Contains(errs, nil) || !slices.Contains(errs, last) {
			t.Fatalf("round %d: %v, %d keys are served", round, errs, n.resolver.Keys().Len())
		}
	}
}

// After a crash at any step, a change of keys is in its file as a whole, or not at all.
func TestKeyChangeDies(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	ctx := context.Background()
	stays, goes, comes := newKey("stays"), newKey("goes"), newKey("comes")
	before := map[string]string{"a/goes.hcl": hcledit.KeyBlock(goes), "keys.hcl": "# who may call\n" + hcledit.KeyBlock(stays)}
	rotation, err := stays.Rotate(time.Now(), time.Hour)
	must(t, err)
	rotated, err := hcledit.RotateKey([]byte(before["keys.hcl"]), "stays", &rotation)
	must(t, err)
	for name, c := range map[string]struct {
		change func(*configsrc.Source) error
		path   string
		after  string // of the file, "" if it goes
	}{
		"create": {func(s *configsrc.Source) error { return createKey(ctx, s, comes, allowed) },
			"a/goes.hcl", before["a/goes.hcl"] + "\n" + hcledit.KeyBlock(comes)},
		"revoke": {func(s *configsrc.Source) error { return revokeKey(ctx, s, "goes", allowed) }, "a/goes.hcl", ""},
		"rotate": {func(s *configsrc.Source) error {
			return rotateKey(ctx, s, "stays", func(catalog.Key) (*catalog.Rotation, error) { return &rotation, nil }, allowed)
		}, "keys.hcl", string(rotated)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for steps := int64(0); ; steps++ {
				dir := t.TempDir()
				for name, text := range before {
					put(t, filepath.Join(dir, name), text)
				}
				left := new(atomic.Int64)
				left.Store(1 << 40)
				_, s, end := openDying(t, dir, dyingDisk{left: left})
				left.Store(steps)
				err := c.change(s)
				alive := left.Load() >= 0
				end()
				_, _, end = openDying(t, dir, atomicfile.OSDisk{})
				got := filesIn(t, dir)
				end()
				if is := got[c.path]; is != c.after && (is != before[c.path] || err == nil) {
					t.Errorf("after %d steps (%v): %q", steps, err, is)
				}
				if alive {
					if err != nil || steps < 3 {
						t.Errorf("with %d steps: %v", steps, err)
					}
					return
				}
			}
		})
	}
}
