package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/cluster"
	"fingerpost/configsrc/gitrepo"
)

// A clusterRig is an authority with the built-in NATS server and edges, each the real binary on a folder of its own.
type clusterRig struct {
	*rig  // the authority
	seeds map[string]string
	addr  string // of the NATS server
}

// newCluster starts an authority that declares edges.
func newCluster(t *testing.T, edges ...string) *clusterRig {
	t.Helper()
	c := idleCluster(t, edges...)
	c.begin()
	return c
}

// idleCluster is newCluster without the start.
func idleCluster(t *testing.T, edges ...string) *clusterRig {
	t.Helper()
	c := &clusterRig{rig: idleRig(t, t.TempDir(), nil), seeds: map[string]string{}}
	publics := map[string]string{}
	for _, name := range edges {
		c.seeds[name], publics[name] = newEdgeKey(t, c.dir)
	}
	c.declare(publics)
	c.flags = []string{"--cluster-listen", "127.0.0.1:0"}
	return c
}

func newEdgeKey(t *testing.T, dir string) (file, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, public+".nk")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, public
}

// declare writes the edges into the authority's files.
func (c *clusterRig) declare(publics map[string]string) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(publics)) {
		fmt.Fprintf(&b, "edge %q {\n  public_key = %q\n}\n", name, publics[name])
	}
	c.put("edges.hcl", b.String())
}

var followAt = regexp.MustCompile(`edges follow (?:nats|tls)://(\S+)`)

// begin starts the authority, on the address that it had before.
func (c *clusterRig) begin() {
	c.t.Helper()
	c.start()
	m := followAt.FindStringSubmatch(c.announcement())
	if m == nil {
		c.t.Fatalf("it does not say where edges follow:\n%s", c.announcement())
	}
	c.addr = m[1]
	c.flags[1] = c.addr
}

// edge starts an edge with the keys of the authority. dir is its folder; "" makes one.
func (c *clusterRig) edge(name, dir string) *rig {
	c.t.Helper()
	e := c.idleEdge(name, dir)
	e.start()
	return e
}

func (c *clusterRig) idleEdge(name, dir string) *rig {
	c.t.Helper()
	if dir == "" {
		dir = c.t.TempDir()
	}
	e := idleRig(c.t, dir, nil)
	if err := os.RemoveAll(e.path(".")); err != nil { // an edge has no config folder
		c.t.Fatal(err)
	}
	e.keys = c.keys
	e.flags = []string{"--follow", "nats://" + c.addr, "--edge-name", name, "--edge-key", c.seeds[name]}
	return e
}

// until waits until a request is answered as is says.
func (r *rig) until(what, target string, is func(reply) bool) reply {
	r.t.Helper()
	var got reply
	if err := poll(testrig.Patience, func() error {
		if got = r.get(target); !is(got) {
			return fmt.Errorf("it is not so that %s: %d %.300s\n%s", what, got.status, got.body, cutMiddle(r.logged(), 3000))
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return got
}

func (r *rig) resolves(domain string) {
	r.t.Helper()
	r.until(domain+" resolves", resolvePath+domain, func(got reply) bool { return got.status == http.StatusOK })
}

func (r *rig) writes(method, target, body string) reply {
	r.t.Helper()
	return r.ask(method, target, r.keys["write"], body, "Content-Type: application/json")
}

// clusterStatus is the part of /status about the cluster.
func (r *rig) clusterStatus() (s cluster.Status) {
	r.t.Helper()
	res, err := r.client.Get(r.ops + "/status")
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	var document struct{ Cluster cluster.Status }
	if err := json.NewDecoder(res.Body).Decode(&document); err != nil {
		r.t.Fatal(err)
	}
	return document.Cluster
}

func (r *rig) untilStatus(what string, is func(cluster.Status) bool) {
	r.t.Helper()
	if err := poll(testrig.Patience, func() error {
		if s := r.clusterStatus(); !is(s) {
			return fmt.Errorf("it is not so that %s: %+v", what, s)
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
}

func TestClusterStory(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "fra1", "ams1")
	fra, ams := c.edge("fra1", ""), c.edge("ams1", "")
	fra.resolves("shop.acme.example")
	ams.resolves("shop.acme.example")

	// Bodies are the same bytes on every node, times included.
	for _, target := range []string{"/api/platform/projects", resolvePath + "x.acme.example", "/api/platform/projects/by-slug/other"} {
		want := c.get(target)
		for _, e := range []*rig{fra, ams} {
			got := e.get(target)
			if stampOf.ReplaceAllString(got.body, "") != stampOf.ReplaceAllString(want.body, "") || got.header.Get("ETag") != want.header.Get("ETag") {
				t.Errorf("%s on an edge is\n%s\nand on the authority\n%s", target, got.body, want.body)
			}
		}
	}

	// A saved file and a write at the authority reach both edges.
	c.put("new.hcl", "project \"fresh\" {\n  name = \"Fresh\"\n  domain \"fresh.example\" {}\n}\n")
	fra.resolves("fresh.example")
	ams.resolves("fresh.example")

	// A write at an edge is the authority's, and there to read at that edge when it is answered.
	got := fra.writes(http.MethodPost, "/api/platform/projects", `{"name":"From Frankfurt"}`)
	if got.status != http.StatusCreated {
		t.Fatalf("a write at an edge: %d %s", got.status, got.body)
	}
	if back := fra.get("/api/platform/projects/by-slug/from-frankfurt"); back.status != http.StatusOK {
		t.Errorf("right after the write the edge answers %d %s", back.status, back.body)
	}
	if text, err := os.ReadFile(c.path("from-frankfurt.hcl")); err != nil || !strings.Contains(string(text), "From Frankfurt") {
		t.Errorf("the authority's file: %v\n%s", err, text)
	}
	refused(t, "a bad write at an edge", fra.writes(http.MethodPost, "/api/platform/projects", `{}`), 400, "VALIDATION_ERROR", "name")
	refused(t, "a write with a key that may not", fra.ask(http.MethodPost, "/api/platform/projects", c.keys["read"], "{}"), 403, "FORBIDDEN")
	granted(t, "the audit trail at an edge", fra.get("/api/platform/audit"))

	generation := c.get(resolvePath + "shop.acme.example").header.Get("X-Config-Generation")
	out, code := c.run("edges", "--key", c.keys["all"], "--url", fra.url, "--wait", generation, "--timeout", "3m")
	if code != 0 || !strings.Contains(out, "fra1") || !strings.Contains(out, "ams1") {
		t.Errorf("edges ended with %d:\n%s", code, out)
	}
	if out, code = c.run("edges", "--key", c.keys["all"], "--url", c.url, "--wait", "99999", "--timeout", "300ms"); code != cli.ExitNot {
		t.Errorf("edges --wait for what does not come ended with %d:\n%s", code, out)
	}

	// The authority dies: edges answer, and refuse writes. One is started again with NATS away.
	_ = c.cmd.Process.Kill()
	<-c.exited
	fra.resolves("fresh.example")
	fra.untilStatus("the edge knows that it is cut off", func(s cluster.Status) bool { return !s.Connected })
	refused(t, "a write without an authority", fra.writes(http.MethodPost, "/api/platform/projects", `{"name":"Lost"}`), 503, "UNAVAILABLE")
	ams.halt()
	ams.start()
	if got := ams.get(resolvePath + "fresh.example"); got.status != http.StatusOK {
		t.Errorf("an edge that started without its authority answers %d %s", got.status, got.body)
	}

	// It comes back, with a file that was saved meanwhile.
	c.put("later.hcl", "project \"later\" {\n  name = \"Later\"\n  domain \"later.example\" {}\n}\n")
	c.begin()
	fra.resolves("later.example")
	ams.resolves("later.example")
}

func TestBucketAndServerHeal(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "fra1")
	fra := c.edge("fra1", "")
	fra.resolves("shop.acme.example")
	if err := os.RemoveAll(filepath.Join(c.dir, ".fingerpost", "cluster", "jetstream")); err != nil {
		t.Fatal(err)
	}
	c.put("new.hcl", "project \"fresh\" {\n  name = \"Fresh\"\n  domain \"fresh.example\" {}\n}\n")
	if err := poll(testrig.Patience, func() error {
		if got := fra.get(resolvePath + "shop.acme.example"); got.status != http.StatusOK {
			t.Fatalf("meanwhile the edge answers %d %s", got.status, got.body)
		}
		if got := fra.get(resolvePath + "fresh.example"); got.status != http.StatusOK {
			return fmt.Errorf("the new file does not arrive: %+v\n%+v\n%s", fra.clusterStatus(), c.clusterStatus(), c.logged())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestSecondAuthorityIsRefused(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t)
	second := idleRig(t, t.TempDir(), nil)
	out, code := second.run("serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--cluster-listen", c.addr)
	if code != cli.ExitFailed || !strings.Contains(out, "address is in use") {
		t.Errorf("a second authority on the same address ended with %d:\n%s", code, out)
	}
}

func TestRevokedEdge(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "fra1")
	fra := c.edge("fra1", "")
	fra.resolves("shop.acme.example")
	c.declare(nil)
	fra.untilStatus("the edge has lost its connection", func(s cluster.Status) bool {
		return !s.Connected && strings.Contains(s.Problem, "refuses the key")
	})
	c.put("new.hcl", "project \"fresh\" {\n  name = \"Fresh\"\n  domain \"fresh.example\" {}\n}\n")
	c.resolves("fresh.example")
	if got := fra.get(resolvePath + "fresh.example"); got.status != http.StatusNotFound {
		t.Errorf("a revoked edge answers %d %s", got.status, got.body)
	}
	fra.resolves("shop.acme.example")
}

func TestEdgeWithAnotherKey(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "fra1")
	c.seeds["fra1"], _ = newEdgeKey(t, c.dir)
	fra := c.idleEdge("fra1", "")
	fra.launch()
	if err := poll(testrig.Patience, func() error {
		if !strings.Contains(fra.announcement(), "ops on") {
			return errors.New("it does not listen")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	fra.untilStatus("the edge says that its key is refused", func(s cluster.Status) bool { return strings.Contains(s.Problem, "refuses the key") })
	if got := fra.get(resolvePath + "shop.acme.example"); got.status != http.StatusServiceUnavailable {
		t.Errorf("an edge without a tree answers %d %s", got.status, got.body)
	}
	res, err := fra.client.Get(fra.ops + "/readyz")
	if err != nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("it is ready: %v, %v", res, err)
	}
}

func TestMaxStale(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "fra1")
	dir := t.TempDir()
	fra := c.edge("fra1", dir)
	fra.resolves("shop.acme.example")
	fra.halt()
	fra.flags = append(fra.flags, "--stale-after", "1s", "--max-stale", "4s")
	fra.start()
	fra.resolves("shop.acme.example")
	_ = c.cmd.Process.Kill()
	<-c.exited
	fra.until("it refuses to answer", resolvePath+"shop.acme.example", func(got reply) bool { return got.status == http.StatusServiceUnavailable })
	c.begin()
	fra.resolves("shop.acme.example")
}

func TestClusterFlags(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	seed, _ := newEdgeKey(t, r.dir)
	for _, c := range []struct {
		args string
		want []string
	}{
		{"--cluster-listen 127.0.0.1:0 --cluster nats://a:4222 --follow nats://b:4222 --config projects.d",
			[]string{"--cluster-listen runs a NATS server of its own", "--follow makes this node an edge", "--follow and --config contradict", "needs --edge-name", "needs --edge-key"}},
		{"--cluster-listen 0.0.0.0:4222", []string{"without TLS"}},
		{"--edge-name x --max-stale 5s", []string{"--edge-name is for an edge", "--max-stale is for an edge"}},
		{"--take-over --cluster-creds x", []string{"--take-over needs", "--cluster-creds needs"}},
		{"--follow http://a --edge-name A.B --edge-key " + seed, []string{"--follow \"http://a\" must be a URL", "--edge-name \"A.B\""}},
		{"--follow nats://u:p@a:1 --edge-name a --edge-key " + seed, []string{"without a password"}},
		{"--follow nats://a:1 --edge-name a --edge-key nowhere.nk", []string{"nowhere.nk"}},
		{"--follow nats://a:1 --edge-name a --edge-key projects.d/acme.hcl", []string{"must hold the seed"}},
		{"--follow nats://a:1 --edge-name a --cluster-ca projects.d/acme.hcl --edge-key " + seed, []string{"no certificate in PEM form"}},
		{"--cluster nats://a:1 --cluster-name a.b", []string{"--cluster-name \"a.b\""}},
		{"--follow nats://a:1 --edge-name a --stale-after 10s --max-stale 1s --edge-key " + seed, []string{"must not be less than --stale-after"}},
	} {
		out, code := r.run(append([]string{"serve"}, strings.Fields(c.args)...)...)
		if code != cli.ExitUsage {
			t.Errorf("%s ended with %d:\n%s", c.args, code, out)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s does not say %q:\n%s", c.args, want, out)
			}
		}
	}
}

// TestKeygenLetsAnEdgeIn: the seed that keygen makes is all that an edge needs, and for its owner only.
func TestKeygenLetsAnEdgeIn(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t)
	out, code := c.run("edges", "keygen", "lon1", "--json")
	var made struct{ Seed string }
	if err := json.Unmarshal([]byte(out), &made); code != 0 || err != nil || made.Seed == "" {
		t.Fatalf("keygen ended with %d, %v:\n%s", code, err, out)
	}
	c.seeds["lon1"] = filepath.Join(c.dir, "lon1.nk")
	if err := os.WriteFile(c.seeds["lon1"], []byte(made.Seed+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.edge("lon1", "").resolves("shop.acme.example")

	seed := filepath.Join(c.dir, "ams9.nk")
	out, code = c.run("edges", "keygen", "ams9", "--out", seed)
	if info, err := os.Stat(seed); code != 0 || err != nil || info.Mode().Perm() != 0o600 || strings.Contains(out, "SU") {
		t.Fatalf("keygen --out ended with %d, %v, %v:\n%s", code, info, err, out)
	}
	if out, code := c.run("edges", "keygen", "ams8", "--out", seed); code == 0 || !strings.Contains(out, "is there already") {
		t.Errorf("over another seed it ended with %d:\n%s", code, out)
	}
	if text, err := os.ReadFile(c.path("edges.hcl")); err != nil || strings.Contains(string(text), "ams8") {
		t.Errorf("the refused edge is declared: %s, %v", text, err)
	}
	if err := os.Chmod(seed, 0o644); err != nil {
		t.Fatal(err)
	}
	c.seeds["ams9"] = seed
	e := c.edge("ams9", "")
	e.resolves("shop.acme.example")
	e.halt()
	if log := e.logged(); !strings.Contains(log, "others on this machine can read") {
		t.Errorf("a seed that everybody can read is not told of:\n%s", log)
	}
}

// A deploy script waits for a commit, of an API write and of a pull, until the edge answers with what it brought.
// TestEdgesWithoutTheAuthority: an edge that cannot ask the authority for the list says how it is itself. A normal start
// of both writes nothing at WARN.
func TestEdgesWithoutTheAuthority(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "fra1")
	c.halt()
	c.begin() // at its first start the NATS server has no edges before the files are read
	fra := c.edge("fra1", "")
	c.catchesUp(fra)
	for name, log := range map[string]string{"authority": c.logged(), "edge": fra.logged()} {
		if strings.Contains(log, `"level":"WARN"`) {
			t.Errorf("the %s warns of a normal start:\n%s", name, log)
		}
	}
	list := func() (string, int) { return fra.run("edges", "--key", c.keys["all"], "--url", fra.url) }
	if out, code := list(); code != cli.ExitOK || !strings.Contains(out, "fra1") || strings.Contains(out, "no users") {
		t.Errorf("it ended with %d:\n%s", code, out)
	}
	position := fra.clusterStatus().Position
	c.halt()
	out, code := list()
	if code == cli.ExitOK || !strings.Contains(out, "the authority of the cluster cannot be reached") ||
		!strings.Contains(out, "edge fra1 itself has position "+position+", and the last word of the authority ") {
		t.Errorf("it ended with %d:\n%s", code, out)
	}
}

func TestEdgesWaitForCommit(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "git")
	c := newCluster(t, "fra1")
	wait := func(commit, within string) (string, int) {
		t.Helper()
		return c.run("edges", "--key", c.keys["all"], "--url", c.url, "--every", "20ms", "--wait", commit, "--timeout", within)
	}
	unknown := strings.Repeat("0123456789", 4)
	if out, code := wait(unknown, "1m"); code == 0 || !strings.Contains(out, "keeps no git history") {
		t.Errorf("without git it ended with %d:\n%s", code, out)
	}
	if out, code := wait("0123456789abcdef", "1m"); code != cli.ExitUsage {
		t.Errorf("with an abbreviated commit it ended with %d:\n%s", code, out)
	}
	c.halt()
	g := newGitRig(t, c.rig)
	c.flags = append(c.flags, "--git", "--git-ack", "commit", "--git-pull", "1s")
	c.begin()
	fra := c.idleEdge("fra1", "")
	fra.flags = append(fra.flags, "--max-delete", "100%") // the brake holds on each node by itself
	fra.start()
	fra.resolves("shop.acme.example")

	got := c.writes(http.MethodPost, "/api/platform/projects", `{"name":"Written"}`)
	if out, code := wait(got.header.Get("X-Commit"), "3m"); code != 0 || !strings.Contains(out, "fra1") {
		t.Errorf("for a write's commit it ended with %d:\n%s", code, out)
	}
	if back := fra.get("/api/platform/projects/by-slug/written"); back.status != http.StatusOK {
		t.Errorf("the edge answers %d %s", back.status, back.body)
	}
	if out, code := wait(unknown, "50ms"); code != cli.ExitNot || !strings.Contains(out, "is not live") {
		t.Errorf("for an unknown commit it ended with %d:\n%s", code, out)
	}
	text := "project \"pushed\" {\n  name = \"Pushed\"\n  domain \"pushed.example\" {}\n}\n"
	for i := range 20 {
		text += fmt.Sprintf("project \"more-%d\" {\n  name = \"More\"\n}\n", i)
	}
	pushed := g.push("pushed.hcl", text)
	if out, code := c.run("edges", "--key", c.keys["all"], "--url", fra.url, "--every", "20ms", "--wait", pushed, "--timeout", "3m"); code != 0 {
		t.Errorf("for a pulled commit, asked at an edge, it ended with %d:\n%s", code, out)
	}
	if back := fra.get(resolvePath + "pushed.example"); back.status != http.StatusOK {
		t.Errorf("the edge answers %d %s", back.status, back.body)
	}
	// The brake holds a pull back: its commit is in the branch, and not live.
	must(t, os.Remove(filepath.Join(g.pats, "projects.d", "pushed.hcl")))
	removed := g.push("note.txt", "removes most projects")
	g.untilGit("it is pulled", func(st gitrepo.Status) bool { return st.Pulls == 2 })
	if out, code := wait(removed, "50ms"); code != cli.ExitNot || !strings.Contains(out, "is not live") {
		t.Errorf("for a commit that the brake holds back it ended with %d:\n%s", code, out)
	}
	if out, code := c.run("reload", "--confirm", "--ops-url", c.ops); code != 0 {
		t.Errorf("%d %s", code, out)
	}
	if out, code := wait(removed, "3m"); code != 0 {
		t.Errorf("for a confirmed commit it ended with %d:\n%s", code, out)
	}
	c.halt()
	if out, code := c.run("edges", "--data", ".fingerpost"); code != 0 || !strings.Contains(out, "fra1") || !strings.Contains(out, "never") {
		t.Errorf("the store of a stopped authority: %d\n%s", code, out)
	}
}
