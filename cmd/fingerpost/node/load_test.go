package node

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// TestAwaitLoad: a signal and the failure of a part end the first load; nobody waits for its end.
func TestAwaitLoad(t *testing.T) {
	t.Parallel()
	broken := errors.New("accept: the listener is gone")
	f := func(begin func(n *service, loaded chan error), wantDone bool, want error) {
		t.Helper()
		n := &service{failed: make(chan error, 1), end: make(chan os.Signal, 1)}
		loaded := make(chan error, 1)
		begin(n, loaded)
		done, err := n.awaitLoad(loaded, func() { loaded <- errors.New("canceled") })
		if done != wantDone || !errors.Is(err, want) {
			t.Errorf("%v, %v", done, err)
		}
	}
	f(func(n *service, _ chan error) { n.failed <- broken }, false, broken)
	f(func(n *service, _ chan error) { n.end <- syscall.SIGTERM }, true, nil)
	f(func(_ *service, loaded chan error) { loaded <- nil }, false, nil)
	f(func(_ *service, loaded chan error) { loaded <- broken }, false, broken)
}
