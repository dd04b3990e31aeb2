package configsrc_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A file or folder that comes and goes, as with tools that remove it before they write it again, answers at every
// moment: it is away at nearly all looks, but never for long. Whatever else happens in the folder neither ends that nor
// keeps a true removal from being accepted.
func TestComesAndGoes(t *testing.T) {
	t.Parallel()
	whole := project("acme", "acme.example")
	ways := map[string]func(dir string) error{ // each brings it back for a moment
		"removed": func(dir string) error {
			at := filepath.Join(dir, "teams", "acme.hcl")
			return errors.Join(os.WriteFile(at, []byte(whole), 0o644), os.Remove(at))
		},
		"renamed": func(dir string) error {
			at := filepath.Join(dir, "teams", "acme.hcl")
			return errors.Join(os.Rename(at+".old", at), os.Rename(at, at+".old"))
		},
		"folder": func(dir string) error {
			at := filepath.Join(dir, "teams")
			return errors.Join(os.Rename(at+".old~", at), os.Rename(at, at+".old~"))
		},
	}
	first := map[string]func(dir string) error{
		"removed": func(dir string) error { return os.Remove(filepath.Join(dir, "teams", "acme.hcl")) },
		"renamed": func(dir string) error {
			at := filepath.Join(dir, "teams", "acme.hcl")
			return os.Rename(at, at+".old")
		},
		"folder": func(dir string) error {
			return os.Rename(filepath.Join(dir, "teams"), filepath.Join(dir, "teams.old~"))
		},
	}
	noises := map[string]func(dir string, i int) error{
		"quiet": func(string, int) error { return nil },
		"saves": func(dir string, i int) error {
			return os.WriteFile(filepath.Join(dir, "other.hcl"), []byte(named("other", "Other "+string(rune('a'+i%26)))), 0o644)
		},
		"files": func(dir string, i int) error {
			at := filepath.Join(dir, "lock")
			return errors.Join(os.WriteFile(at, nil, 0o644), os.Remove(at))
		},
		"folders": func(dir string, i int) error {
			at := filepath.Join(dir, "work")
			return errors.Join(os.Mkdir(at, 0o755), os.Remove(at))
		},
	}
	for way, comeAndGo := range ways {
		for noise, disturb := range noises {
			t.Run(way+"/"+noise, func(t *testing.T) {
				if noise != "quiet" {
					testrig.Thorough(t)
				}
				t.Parallel()
				dir := t.TempDir()
				must(t, os.Mkdir(filepath.Join(dir, "teams"), 0o755))
				write(t, filepath.Join(dir, "teams", "acme.hcl"), whole)
				write(t, filepath.Join(dir, "other.hcl"), named("other", "Other"))
				n := newNode(t, dir, nodeOptions{accept: true})
				stop := noisy(t, dir, disturb)
				defer stop()
				var running sync.WaitGroup
				var back, away atomic.Int64 // when it was back last, and the longest time without it, in nanoseconds
				back.Store(time.Now().UnixNano())
				end := time.Now().Add(time.Duration(testrig.Size(t, 6000, 1500)) * time.Millisecond)
				must(t, first[way](dir))
				running.Go(func() {
					tick := time.NewTicker(100 * time.Millisecond)
					defer tick.Stop()
					for time.Now().Before(end) {
						<-tick.C
						if err := comeAndGo(dir); err != nil {
							t.Error(err)
							return
						}
						now := time.Now().UnixNano()
						away.Store(max(away.Load(), now-back.Swap(now)))
					}
				})
				asked := 0
				for ; time.Now().Before(end); asked++ {
					if !testrig.Full() {
						<-time.After(time.Millisecond) // other tests need the cores, too
					}
					got := n.name("acme.example")
					if got == "acme" {
						continue
					}
					longest := time.Duration(max(away.Load(), time.Now().UnixNano()-back.Load()))
					running.Wait()
					if longest < 400*time.Millisecond {
						t.Fatalf("question %d: %s, and it was never away for longer than %v", asked, got, longest)
					}
					t.Logf("it was away for %v on this busy machine: rightly not found", longest)
					break
				}
				running.Wait()
				n.untilName("acme.example", string(catalog.CodeNotFound)) // it stays away now
			})
		}
	}
}

// noisy makes noise every 10 ms until stop is called.
func noisy(t *testing.T, dir string, noise func(dir string, i int) error) (stop func()) {
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			if err := noise(dir, i); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return func() {
		close(end)
		running.Wait()
	}
}
