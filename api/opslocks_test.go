package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"testing"

	"fingerpost/api"
	"fingerpost/api/ops"
	"fingerpost/cmd/testrig"
)

// waitForLock is a function name to look for in a profile.
func waitForLock(mu *sync.Mutex, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
			mu.Lock()
			for range 100 {
				runtime.Gosched()
			}
			mu.Unlock()
		}
	}
}

// The lock profiles show what waits while they are taken, and cost nothing afterwards.
func TestLockProfiles(t *testing.T) {
	testrig.Thorough(t)
	testrig.Slow(t)
	h := start(t)
	o, err := ops.New(ops.Options{Resolver: h.resolver, Figures: h.server, Streams: h.server.EventStreams(), Config: &config{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- o.Serve(ln) }()
	var mu sync.Mutex
	var waiting sync.WaitGroup
	stop := make(chan struct{})
	for range 2 { // with more the queue may never be empty, see lockProfiles
		waiting.Go(func() { waitForLock(&mu, stop) })
	}
	var asked sync.WaitGroup
	for _, name := range []string{"mutex", "block"} {
		asked.Go(func() { // both at once: the end of one must not switch the other off
			resp, err := http.Get("http://" + ln.Addr().String() + "/debug/pprof/" + name + "?seconds=1")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			unpacked, err := gzip.NewReader(resp.Body)
			if err != nil {
				t.Errorf("%s: %d, %v", name, resp.StatusCode, err)
				return
			}
			profile, err := io.ReadAll(unpacked)
			if err != nil || !bytes.Contains(profile, []byte("waitForLock")) { // in its table of names
				t.Errorf("%s: %v: the profile of %d bytes does not show who waited", name, err, len(profile))
			}
		})
	}
	asked.Wait()
	close(stop)
	waiting.Wait()
	if fraction := runtime.SetMutexProfileFraction(-1); fraction != 0 {
		t.Errorf("the profile is still on: fraction %d", fraction)
	}
	if err := o.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
