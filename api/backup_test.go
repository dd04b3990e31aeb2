package api_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fingerpost/api"
	"fingerpost/api/ops"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/datadir"
	"fingerpost/resolver/store"
)

// opsOn serves an Ops for a resolver and returns its address.
func opsOn(t *testing.T, r *resolver.Resolver) string {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	server, err := api.New(api.Options{Resolver: r, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	o, err := ops.New(ops.Options{Resolver: r, Figures: server, Streams: server.EventStreams(), Config: new(config), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go o.Serve(ln)
	t.Cleanup(func() { o.Shutdown(t.Context()) })
	return ln.Addr().String()
}

func TestBackupEndpoint(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	broken := false
	log := slog.New(slog.DiscardHandler)
	r, err := resolver.Open(resolver.Options{DataDir: dir, CacheBytes: 1 << 20, Logger: log, Disk: resolver.DiskOptions{
		Store: func(dir string, o store.Options) (*store.Store, error) {
			if broken {
				return nil, store.ErrUnavailable
			}
			return store.Open(dir, o)
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	addr := opsOn(t, r)
	ask := func(method, host string) (*http.Response, []byte) {
		t.Helper()
		req, _ := http.NewRequest(method, "http://"+addr+"/backup", nil)
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, b
	}
	res, b := ask("POST", "")
	if res.StatusCode != 200 || res.Header.Get("Fingerpost-Pid") != strconv.Itoa(os.Getpid()) || res.Header.Get("Content-Type") != "application/gzip" {
		t.Errorf("%s, %v", res.Status, res.Header)
	}
	if _, err := datadir.CheckArchive(bytes.NewReader(b)); err != nil {
		t.Error(err)
	}
	if res, _ := ask("POST", "localhost:9090"); res.StatusCode != 200 {
		t.Errorf("as localhost: %s", res.Status)
	}
	if res, _ := ask("GET", ""); res.StatusCode != 405 {
		t.Errorf("GET: %s", res.Status)
	}
	// A page's own name that points here.
	if res, b := ask("POST", "evil.example:9090"); res.StatusCode != 403 || !strings.Contains(string(b), "no address or name of this machine") {
		t.Errorf("by a name: %s %s", res.Status, b)
	}
	broken = true
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	testrig.Eventually(t, "the store to be found gone", func() bool {
		_, bad := r.Degraded()
		return bad
	})
	if res, b := ask("POST", ""); res.StatusCode != 503 || !strings.Contains(string(b), "cannot be used") {
		t.Errorf("of a store in memory: %s %s", res.Status, b)
	}
}
