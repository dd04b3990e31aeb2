package conformance_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// base is what every case begins with, in addition to the keys.
var base = map[string]string{
	"acme.hcl": `project "acme" {
  name   = "Acme Shop"
  status = "ACTIVE"
  labels = { plan = "gold" }
  domain "shop.acme.example" { primary = true }
  domain "*.acme.example" {}
  domain "old.acme.example" { active = false }
  domain "bücher.example" {}
}
`,
	"other.hcl": "project \"other\" {\n  name = \"Other\"\n  domain \"other.example\" {}\n}\n",
	"gone.hcl":  "project \"gone\" {\n  name = \"Gone\"\n  status = \"SUSPENDED\"\n  domain \"gone.example\" {}\n}\n",
}

// A node is a running server.
type node struct {
	cmd    *exec.Cmd
	url    string
	follow string // where edges follow it
	done   chan struct{}
	log    *testrig.Log
}

// A world is a server with its files, perhaps an edge, and the proxy before them.
type world struct {
	t      testing.TB
	dir    string
	keys   map[string]string // texts by name; "admin" is in the files at all times
	base   map[string]string
	proxy  *proxy
	nodes  map[string]*node // authority, edge
	flags  []string
	seed   string // the file of the edge's key
	marker int
}

// newWorld starts a server, with an edge if it is to have one.
func newWorld(t testing.TB, edge bool) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), keys: map[string]string{}, base: maps.Clone(base), nodes: map[string]*node{}}
	for name, rights := range map[string]string{
		"admin": `allow = ["resolve", "read", "write"]`, "all": `allow = ["resolve"]`, "acme": "allow = [\"resolve\"]\n  projects = [\"acme\"]",
	} {
		text, id := catalog.NewKeyText()
		w.keys[name] = text
		w.base["key-"+name+".hcl"] = fmt.Sprintf("key %q {\n  id = %q\n  hash = %q\n  %s\n}\n", name, id, catalog.HashKeyText(text), rights)
	}
	w.keys["ghost"], _ = catalog.NewKeyText()
	if edge {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		seed, _ := pair.Seed()
		public, _ := pair.PublicKey()
		w.seed = filepath.Join(w.dir, "edge.nk")
		if err := os.WriteFile(w.seed, seed, 0o600); err != nil {
			t.Fatal(err)
		}
		w.base["edges.hcl"] = fmt.Sprintf("edge \"one\" {\n  public_key = %q\n}\n", public)
		w.flags = []string{"--cluster-listen", "127.0.0.1:0"}
	}
	for name, text := range w.base {
		w.write(name, text)
	}
	w.proxy = newProxy(t)
	w.start()
	t.Cleanup(func() {
		for name, n := range w.nodes {
			n.signal(syscall.SIGKILL)
			if t.Failed() {
				t.Logf("the log of the %s:\n%s", name, n.log)
			}
		}
	})
	if edge {
		w.nodes["edge"] = w.run("edge", "--follow", "nats://"+w.nodes["authority"].follow, "--edge-name", "one", "--edge-key", w.seed)
	}
	return w
}

var (
	listening = regexp.MustCompile(`(?m)^listening on (\S+)`)
	following = regexp.MustCompile(`edges follow (?:nats|tls)://(\S+)`)
)

// start starts the authority, and leads the proxy to it.
func (w *world) start() {
	w.t.Helper()
	w.nodes["authority"] = w.run("authority", w.flags...)
	w.proxy.lead(w.nodes["authority"].url)
}

func (w *world) run(name string, flags ...string) *node {
	w.t.Helper()
	n := &node{done: make(chan struct{}), log: &testrig.Log{}}
	dir := filepath.Join(w.dir, name)
	if name == "edge" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	n.cmd = exec.Command(server, append([]string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--cache-size", "8MiB"}, flags...)...)
	n.cmd.Dir = dir
	n.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_CONFIG_HOME=" + dir}
	n.cmd.Stderr = n.log
	out, err := n.cmd.StdoutPipe()
	if err == nil {
		err = n.cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var said testrig.Log
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			_, _ = fmt.Fprintln(&said, lines.Text())
		}
		_ = n.cmd.Wait()
		close(n.done)
	}()
	testrig.Eventually(w.t, "the "+name+" is ready", func() bool {
		select {
		case <-n.done:
			w.t.Fatalf("the %s has ended:\n%s", name, n.log)
		default:
		}
		m := listening.FindStringSubmatch(said.String())
		if m == nil {
			return false
		}
		n.url = m[1]
		if f := following.FindStringSubmatch(said.String()); f != nil {
			n.follow = f[1]
		}
		status, _ := w.resolve(n, "shop.acme.example", "admin")
		return status != 0 && status != http.StatusServiceUnavailable && status != http.StatusUnauthorized
	})
	return n
}

func (n *node) signal(s syscall.Signal) {
	_ = n.cmd.Process.Signal(s)
	<-n.done
}

func (n *node) running() bool {
	select {
	case <-n.done:
		return false
	default:
		return true
	}
}

// resolve asks a node without the proxy. It returns 0 if none comes.
func (w *world) resolve(n *node, host, key string) (status int, body string) {
	req, err := http.NewRequest(http.MethodGet, n.url+"/api/platform/projects/resolve?labels=1&domain="+url.QueryEscape(host), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("X-PLATFORM-KEY", w.keys[key])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(b)
}

func (w *world) path(name string) string {
	return filepath.Join(w.dir, "authority", "projects.d", name)
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := w.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		w.t.Fatal(err)
	}
}

// change writes or removes files, and waits until all running nodes have them.
func (w *world) change(files map[string]*string) {
	w.t.Helper()
	for name, text := range files {
		switch {
		case text == nil:
			if err := os.Remove(w.path(name)); err != nil {
				w.t.Fatal(err)
			}
		case *text == "same":
			w.write(name, w.base[name])
		default:
			w.write(name, *text)
		}
	}
	w.await()
}

// await waits until what is in the files is what all running nodes answer from: they read the marker last.
func (w *world) await() {
	w.t.Helper()
	w.marker++
	host := fmt.Sprintf("n%d.marker.example", w.marker)
	w.write("zz-marker.hcl", fmt.Sprintf("project \"marker\" {\n  name = \"Marker\"\n  domain %q {}\n}\n", host))
	for name, n := range w.nodes {
		if !n.running() {
			continue
		}
		testrig.Eventually(w.t, "the "+name+" has the files", func() bool {
			status, _ := w.resolve(n, host, "admin")
			return status == http.StatusOK
		})
	}
}

// restore brings the world back to its base for the next case.
func (w *world) restore(t testing.TB) {
	w.t = t
	w.t.Helper()
	w.proxy.set("pass")
	w.proxy.cut()
	for name, text := range w.base {
		if b, err := os.ReadFile(w.path(name)); err != nil || string(b) != text {
			w.write(name, text)
		}
	}
	present, err := filepath.Glob(w.path("*.hcl"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range present {
		if name := filepath.Base(path); w.base[name] == "" && name != "zz-marker.hcl" {
			if err := os.Remove(path); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if !w.nodes["authority"].running() {
		w.start()
	}
	w.proxy.lead(w.nodes["authority"].url)
	w.await()
	w.proxy.asked()
}

// alike waits for f, which returns "" once all is as it should be.
func alike(t testing.TB, f func() string) {
	t.Helper()
	var last string
	for end := time.Now().Add(testrig.Patience / 3); ; {
		if last = f(); last == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(last)
		}
		<-time.After(5 * time.Millisecond)
	}
}
