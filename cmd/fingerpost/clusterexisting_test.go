package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/cluster"
	"fingerpost/configsrc/cluster/natsd"
	"fingerpost/resolver/catalog"
)

// existingNATS is a NATS server of somebody else, which lets everybody in.
func existingNATS(t *testing.T) (url string) {
	t.Helper()
	s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		NoSigs: true, NoLog: true, MaxPayload: natsd.MaxPayload, AlwaysEnableNonce: true}) // for clients with nkeys
	must(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(testrig.Patience) {
		t.Fatal("the NATS server does not start")
	}
	return s.ClientURL()
}

// TestTakeOver: a second authority on an existing NATS is refused and names the first; with --take-over it waits until
// that one has ended, and the edge follows it.
func TestTakeOver(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	url := existingNATS(t)
	c := &clusterRig{rig: idleRig(t, t.TempDir(), nil), seeds: map[string]string{}, addr: strings.TrimPrefix(url, "nats://")}
	c.flags = []string{"--cluster", url}
	c.start()
	c.seeds["fra1"], _ = newEdgeKey(t, c.dir)
	fra := c.edge("fra1", "")
	c.catchesUp(fra)

	second := idleRig(t, t.TempDir(), map[string]string{"second.hcl": "project \"second\" {\n  name = \"Second\"\n  domain \"second.example\" {}\n}\n"})
	for name := range rigKeys { // its files are a copy of the first one's
		b, err := os.ReadFile(c.path("key-" + name + ".hcl"))
		must(t, err)
		second.put("key-"+name+".hcl", string(b))
	}
	second.keys = c.keys
	out, code := second.run("serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--cluster", url)
	holder := regexp.MustCompile(`"holder":"(authority-[0-9a-f]+)"`).FindStringSubmatch(c.logged()) // names no machine: edges read it
	if code != cli.ExitFailed || holder == nil || !strings.Contains(out, holder[1]+" in its log") || !strings.Contains(out, "--take-over") {
		t.Fatalf("a second authority ended with %d:\n%s", code, out)
	}
	to := newReceivers(t)
	second.flags = []string{"--cluster", url, "--take-over"}
	to.serve(second)
	ready := second.launch()
	if err := poll(testrig.Patience, func() error {
		if !strings.Contains(second.logged(), "another authority may be alive") {
			return fmt.Errorf("it does not wait:\n%s", second.logged())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c.create("made") // the first one writes meanwhile
	c.catchesUp(fra)
	select {
	case <-ready:
		t.Fatal("it has not waited")
	default:
	}
	if testrig.Full() {
		_ = c.cmd.Process.Kill() // its lease has to run out
		<-c.exited
	} else {
		c.halt() // it gives its lease back
	}
	select {
	case <-ready:
	case <-second.exited:
		t.Fatalf("it ended: %v\n%s", second.err, second.logged())
	}
	fra.resolves("second.example")
	if got := fra.get(resolvePath + "shop.acme.example"); got.status != http.StatusOK {
		t.Errorf("the edge answers %d %s", got.status, got.body)
	}
	if got := fra.writes(http.MethodPost, "/api/platform/projects", `{"name":"Forwarded"}`); got.status != http.StatusCreated {
		t.Errorf("a write at the edge: %d %s", got.status, got.body)
	}
	if _, err := os.Stat(second.path("forwarded.hcl")); err != nil {
		t.Error("the write is not the new authority's: ", err)
	}
	testrig.Eventually(t, "a webhook is told that the former authority's events may be missing, and gets the new one's", func() bool {
		var types []string
		for _, v := range to.all["steady"].events() {
			types = append(types, v.Type)
		}
		return slices.Contains(types, "gap") && slices.Contains(types, "project.create")
	})
}

// TestAuthorityCutOff cuts an authority off its existing NATS: it refuses API writes before its lease can be another's,
// answers and takes saved files, and has the edge catch up after the cut.
func TestAuthorityCutOff(t *testing.T) {
	t.Parallel()
	testrig.Campaign(t) // it waits for two thirds of a lease, 7 s
	url := existingNATS(t)
	w := newWire(t, strings.TrimPrefix(url, "nats://"))
	c := &clusterRig{rig: idleRig(t, t.TempDir(), nil), seeds: map[string]string{}, addr: strings.TrimPrefix(url, "nats://")}
	c.flags = []string{"--cluster", "nats://" + w.addr()}
	c.start()
	c.seeds["fra1"], _ = newEdgeKey(t, c.dir)
	fra := c.edge("fra1", "")
	c.catchesUp(fra)
	for round, cut := range []func(){w.freeze, w.cut} {
		cut()
		n := 0
		if err := poll(testrig.Patience, func() error {
			n++
			switch got := c.writes(http.MethodPost, "/api/platform/projects", fmt.Sprintf(`{"name":"N","slug":"n%d-%d"}`, round, n)); got.status {
			case http.StatusServiceUnavailable:
				return nil
			case http.StatusCreated:
				return fmt.Errorf("it still writes: %+v", c.clusterStatus())
			default:
				t.Errorf("a write is answered %d %s", got.status, got.body)
				return nil
			}
		}); err != nil {
			t.Fatal(err)
		}
		domain := fmt.Sprintf("saved%d.example", round)
		c.put(fmt.Sprintf("saved%d.hcl", round), fmt.Sprintf("project \"saved%d\" {\n  name = \"S\"\n  domain %q {}\n}\n", round, domain))
		c.resolves(domain)
		fra.resolves("shop.acme.example")
		w.heal()
		fra.resolves(domain)
		if err := poll(testrig.Patience, func() error {
			if got := c.writes(http.MethodPost, "/api/platform/projects", fmt.Sprintf(`{"name":"A","slug":"after-%d"}`, round)); got.status != http.StatusCreated {
				return fmt.Errorf("a write after the cut: %d %s", got.status, got.body)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		c.catchesUp(fra)
	}
}

// TestWritesWithoutAPause: however fast writes come, the authority renews its lease, and refuses none of them.
func TestWritesWithoutAPause(t *testing.T) {
	testrig.Campaign(t) // it lasts for three leases
	for _, flags := range [][]string{{"--cluster-listen", "127.0.0.1:0"}, {"--cluster"}} {
		t.Run(flags[0], func(t *testing.T) {
			t.Parallel()
			if flags[0] == "--cluster" {
				flags = append(flags, existingNATS(t))
			}
			r := idleRig(t, t.TempDir(), nil)
			r.flags = flags
			r.start()
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for i := range 300 {
				<-tick.C
				body := fmt.Sprintf(`{"name":"N","slug":"n%d"}`, i)
				if got := r.writes(http.MethodPost, "/api/platform/projects", body); got.status != http.StatusCreated {
					t.Fatalf("write %d is answered %d %s", i, got.status, got.body)
				}
			}
		})
	}
}

// newerTree is the tree of an authority of a later release: it accepts files that this release refuses.
type newerTree struct {
	mu       sync.Mutex // guards the fields below
	files    map[string]string
	position catalog.Position
}

func (x *newerTree) Position() catalog.Position {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.position
}

func (x *newerTree) Tree(yield func(string, []byte) bool) error {
	x.mu.Lock()
	files := maps.Clone(x.files)
	x.mu.Unlock()
	for path, text := range files {
		if !yield(path, []byte(text)) {
			break
		}
	}
	return nil
}

func (x *newerTree) TreeFile(path string) (catalog.TreeFile, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	text, found := x.files[path]
	if !found {
		return catalog.TreeFile{}, &catalog.Error{Code: catalog.CodeNotFound}
	}
	return catalog.TreeFile{Path: path, Bytes: []byte(text)}, nil
}

// commit replaces files in one generation.
func (x *newerTree) commit(a *cluster.Authority, files map[string]string) {
	x.mu.Lock()
	maps.Copy(x.files, files)
	x.position.Generation++
	change := catalog.TreeChange{Position: x.position}
	for path, text := range files {
		change.Put = append(change.Put, catalog.TreeFile{Path: path, Bytes: []byte(text)})
	}
	x.mu.Unlock()
	a.Committed(change)
}

// TestEdgeOfAnOlderRelease: a file with a block that the edge does not know keeps its last good state there. All else of
// the same generation is applied, and the file follows again once it has no such block.
func TestEdgeOfAnOlderRelease(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	url := existingNATS(t)
	c := &clusterRig{rig: idleRig(t, t.TempDir(), nil), seeds: map[string]string{}, addr: strings.TrimPrefix(url, "nats://")}
	x := &newerTree{files: map[string]string{}, position: catalog.Position{Epoch: catalog.NewEpoch()}}
	a := cluster.NewAuthority(cluster.AuthorityOptions{Cluster: "default", Connection: cluster.Connection{URLs: []string{url}}, Tree: x,
		Logger: slog.New(slog.DiscardHandler), Holder: "newer", Version: "99.0.0"})
	files := map[string]string{}
	names, err := filepath.Glob(c.path("*.hcl"))
	must(t, err)
	for _, name := range names {
		b, err := os.ReadFile(name)
		must(t, err)
		files[filepath.Base(name)] = string(b)
	}
	x.commit(a, files)
	must(t, a.Claim(t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = a.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	c.seeds["fra1"], _ = newEdgeKey(t, c.dir)
	dir := t.TempDir()
	fra := c.edge("fra1", dir)
	follows := func() {
		t.Helper()
		want := x.Position().String()
		fra.until("the edge has "+want, resolvePath+"other.example", func(got reply) bool { return got.header.Get("X-Config-Position") == want })
	}
	says := func(domain, name string) {
		t.Helper()
		if got := fra.get(resolvePath + domain); got.status != http.StatusOK || !strings.Contains(got.body, `"name":"`+name+`"`) {
			t.Errorf("%s is answered %d %s, want %s", domain, got.status, got.body, name)
		}
	}
	follows()
	renamed := strings.Replace(files["acme.hcl"], "Acme Shop", "Acme Two", 1)
	x.commit(a, map[string]string{
		"acme.hcl":  renamed + "\nhologram \"x\" {\n  depth = 3\n}\n",
		"other.hcl": strings.Replace(files["other.hcl"], `"Other"`, `"Other Two"`, 1),
	})
	follows()
	says("other.example", "Other Two")
	says("shop.acme.example", "Acme Shop")
	told := func(want string) {
		t.Helper()
		must(t, poll(testrig.Patience, func() error {
			if edges := a.Status(nil).Edges; len(edges) != 1 || !strings.HasPrefix(edges[0].Problem, want) {
				return fmt.Errorf("the authority knows of %+v", edges)
			}
			return nil
		}))
	}
	quarantined := func() {
		t.Helper()
		told("refuses 1 file ")
		_, all, err := fra.problems()
		if err != nil || len(all) != 1 || all[0].File != "acme.hcl" || !strings.Contains(all[0].Summary, "hologram") {
			t.Errorf("it reports %v, %v", all, err)
		}
	}
	quarantined()
	fra.halt()
	fra.start() // it has kept both
	says("shop.acme.example", "Acme Shop")
	quarantined()
	x.commit(a, map[string]string{"acme.hcl": renamed})
	follows()
	says("shop.acme.example", "Acme Two")
	if _, all, err := fra.problems(); err != nil || len(all) > 0 {
		t.Errorf("it still reports %v, %v", all, err)
	}
	told("the NATS server has no users")
}
