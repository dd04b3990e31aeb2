package api_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/api/console"
	"fingerpost/api/platform"
	"fingerpost/api/platform/webhooks"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

const storyKeyFile = "zz-key.hcl"

// A desk is a server over a folder of files.
type desk struct {
	*house
	dir   string
	key   string
	seal  string          // the file with the identity that opens what is sealed
	disk  atomicfile.Disk // for writes; nil: the disk
	store resolver.Options
	// verifier knows the verification of domains. Nil: nobody does.
	verifier platform.Verifier
	engine   func(*resolver.Resolver) webhooks.Engine // makes what delivers events; nil: nothing does
	console  *console.Options                         // nil: the server has no console
	trace    *trace.Exporter                          // nil: nothing is traced
	// publicURL is where recipients find the service. "": no template can be given a category.
	publicURL string
	edge      api.Edge // the way to the authority; nil: the server is no edge

	source *configsrc.Source
}

// newDesk serves the given files, by path.
func newDesk(t testing.TB, files map[string]string) *desk {
	t.Helper()
	d := &desk{dir: t.TempDir()}
	d.open(t, files)
	return d
}

func (d *desk) open(t testing.TB, files map[string]string) {
	t.Helper()
	text, id := catalog.NewKeyText()
	d.key = text
	d.seal = filepath.Join(t.TempDir(), "seal.key")
	recipient, err := seal.Keygen(d.seal)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if strings.Contains(content, "{{recipient}}") { // else others may be reading the same map
			files[name] = strings.ReplaceAll(content, "{{recipient}}", recipient)
		}
	}
	d.save(t, files)
	d.save(t, map[string]string{storyKeyFile: fmt.Sprintf("key \"story\" {\n  id    = %q\n  hash  = %q\n  allow = [\"resolve\", \"read\", \"write\", \"mail\", \"secrets\"]\n}\n",
		id, catalog.HashKeyText(text))})
	res, _ := d.load(t, true)
	d.source = res.source
	h := &house{t: t, resolver: res.resolver, log: &testrig.Log{}, served: make(chan error, 1)}
	config := api.Config{Files: res.source, Explainer: res.source, Plan: planFiles, Verifier: d.verifier,
		PublicURL: d.publicURL}
	if d.engine != nil {
		config.WebhookEngine = d.engine(res.resolver)
	}
	if h.server, err = api.New(api.Options{Resolver: res.resolver, Config: config, Console: d.console, Trace: d.trace, Cluster: api.Cluster{Edge: d.edge},
		Logger: slog.New(slog.NewJSONHandler(h.log, nil))}); err != nil {
		t.Fatal(err)
	}
	h.addr = h.listen(api.Platform | api.Mail)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		hangUp(h.server)
		h.server.Shutdown(ctx)
		if t.Failed() {
			t.Log(h.log.String())
		}
	})
	d.house = h
}

type loaded struct {
	resolver *resolver.Resolver
	source   *configsrc.Source
}

// load loads the folder as a new service does; run keeps it up to date.
func (d *desk) load(t testing.TB, run bool) (loaded, error) {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	o := resolver.Options{}
	if run {
		o = d.store
	}
	o.Logger, o.CacheBytes = logger, 4<<20
	r, err := resolver.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	s := configsrc.New(configsrc.Options{Dir: d.dir, Sink: r, Logger: logger, MaxDelete: 0.3, Disk: d.disk, OpenSecret: d.secrets(t).Open})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	err = s.Load(ctx)
	if err != nil {
		t.Error(err)
	}
	go func() {
		defer close(done)
		if run {
			s.Run(ctx)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		r.Close()
	})
	return loaded{r, s}, err
}

// secrets opens the secrets of the files.
func (d *desk) secrets(t testing.TB) *seal.Secrets {
	t.Helper()
	identities, err := seal.Load(d.seal)
	if err != nil {
		t.Fatal(err)
	}
	return &seal.Secrets{Dir: d.dir, Identities: identities}
}

// save writes files in place, as some editors do.
func (d *desk) save(t testing.TB, files map[string]string) {
	t.Helper()
	for name, content := range files {
		name = filepath.Join(d.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// files reads the folder back, without the key's file.
func (d *desk) files(t testing.TB) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(d.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == storyKeyFile {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(d.dir, name)
		found[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
