package configsrc_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"fingerpost/cmd/testrig"
)

// Links that come and go between two steps of a call are not followed either.
func TestCloneWithFlippingLink(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for _, replaced := range []string{"in/conf", "in", "in/conf/ne"} {
		t.Run(strings.ReplaceAll(replaced, "/", "-"), func(t *testing.T) {
			t.Parallel()
			c := newCloneRig(t, true)
			before := filesIn(t, c.outside)
			at, link := filepath.Join(c.top, replaced), filepath.Join(c.top, "link")
			must(t, os.Symlink(c.outside, link))
			stop := make(chan struct{})
			var flipping sync.WaitGroup
			flipping.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						if n%2 == 0 {
							return
						}
					default:
					}
					if err := unix.Renameat2(unix.AT_FDCWD, at, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
						t.Error(err)
						return
					}
				}
			})
			names := slices.Sorted(maps.Keys(calls))
			made := 0
			for i := range testrig.Size(t, 3000, 150) {
				if calls[names[i%len(names)]](c) == nil {
					made++
				}
				if t.Failed() {
					break
				}
			}
			close(stop)
			flipping.Wait()
			c.intact(before)
			t.Logf("%d calls succeeded", made)
		})
	}
}
