package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/cluster"
	"fingerpost/resolver/catalog"
)

// position is that of an answer.
func (r *rig) position() catalog.Position {
	r.t.Helper()
	p, err := catalog.ParsePosition(r.get(resolvePath + "shop.acme.example").header.Get("X-Config-Position"))
	if err != nil {
		r.t.Error(err)
	}
	return p
}

// catchesUp waits until an edge has the position of the authority.
func (c *clusterRig) catchesUp(e *rig) {
	c.t.Helper()
	want := c.position().String()
	e.until("the edge has "+want, resolvePath+"shop.acme.example", func(got reply) bool { return got.header.Get("X-Config-Position") == want })
}

// create makes a project at a node, which has to say 201.
func (r *rig) create(slug string) {
	r.t.Helper()
	if got := r.writes(http.MethodPost, "/api/platform/projects", `{"name":"Made","slug":"`+slug+`"}`); got.status != http.StatusCreated {
		r.t.Errorf("a write is answered %d %s", got.status, got.body)
	}
}

// TestCutEdge: an edge that the network has cut off answers from what it has, says how old that is, and has the backlog
// right after the cut.
func TestCutEdge(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "fra1")
	w := newWire(t, c.addr)
	fra := c.idleEdge("fra1", "")
	fra.flags[1] = "nats://" + w.addr()
	fra.flags = append(fra.flags, "--stale-after", "1s")
	fra.start()
	c.catchesUp(fra)
	for round, stop := range []func(){w.freeze, w.cut} {
		stop()
		before := fra.position()
		for i := range 30 {
			c.create(fmt.Sprintf("p%d-%d", round, i))
		}
		aged := func(least int) {
			t.Helper()
			fra.until(fmt.Sprintf("it says that its word is %d s old", least), resolvePath+"shop.acme.example", func(got reply) bool {
				if got.status != http.StatusOK {
					t.Errorf("cut off, it answers %d %s", got.status, got.body)
				}
				age, _ := strconv.Atoi(got.header.Get("X-Config-Age"))
				return age >= least
			})
		}
		aged(1)
		aged(2)
		if p := fra.position(); p != before {
			t.Errorf("cut off, it went from %v to %v", before, p)
		}
		w.heal()
		c.catchesUp(fra)
		fra.until("its word is fresh again", resolvePath+"shop.acme.example", func(got reply) bool { return got.header.Get("X-Config-Age") == "" })
		last := fmt.Sprintf("/api/platform/projects/by-slug/p%d-29", round)
		if got := fra.get(last); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", last, got.status, got.body)
		}
	}
}

// TestSlowEdge: an edge on a slow line is behind, answers meanwhile, and holds up nobody.
func TestSlowEdge(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "fra1", "ams1")
	pace := time.NewTicker(4 * time.Millisecond) // 250 KiB a second at most
	t.Cleanup(pace.Stop)
	w := newWireWith(t, c.addr, pace)
	fra, ams := c.idleEdge("fra1", ""), c.edge("ams1", "")
	fra.flags[1] = "nats://" + w.addr()
	fra.start()
	c.catchesUp(fra)
	c.catchesUp(ams)
	before := fra.position()
	noise := make([]byte, 16<<10)
	for i := range 10 {
		for j := range noise {
			noise[j] = byte(rand.Uint32())
		}
		c.put(fmt.Sprintf("p%d.hcl", i), fmt.Sprintf("# %x\nproject \"p%d\" {\n  name = \"P\"\n  domain \"p%d.example\" {}\n}\n", noise, i, i))
	}
	c.resolves("p9.example")
	c.catchesUp(ams)
	if p := fra.position(); p.Generation >= c.position().Generation {
		t.Errorf("the slow edge is at %v already, from %v: nothing was tried", p, before)
	}
	fra.resolves("shop.acme.example")
	c.catchesUp(fra)
	for i := range 10 {
		if got := fra.get(fmt.Sprintf("%sp%d.example", resolvePath, i)); got.status != http.StatusOK {
			t.Errorf("p%d is answered %d", i, got.status)
		}
	}
}

// TestNATSDiskFull: without room for the NATS server's files the authority's writes go on, it says that the cluster is
// behind, and with room again the edge catches up.
func TestNATSDiskFull(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	if !canMount() {
		t.Skip("needs root, to mount a small file system")
	}
	c := idleCluster(t, "fra1")
	disk := filepath.Join(c.dir, ".fingerpost", "cluster")
	must(t, os.MkdirAll(disk, 0o700))
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=16m"); err != nil {
		t.Fatalf("mount a tmpfs, which needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	c.begin()
	fra := c.edge("fra1", "")
	c.catchesUp(fra)
	ballast := filepath.Join(disk, "ballast")
	f, err := os.Create(ballast)
	must(t, err)
	block := make([]byte, 1<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	must(t, f.Close())
	for i := range 20 { // the first ones may find room in a page
		c.create(fmt.Sprint("p", i))
	}
	c.untilStatus("the authority says that the cluster is behind", func(s cluster.Status) bool {
		return strings.Contains(s.Problem, "disk") && s.Position != s.Published
	})
	c.create("last")
	fra.resolves("shop.acme.example")
	must(t, os.Remove(ballast))
	c.catchesUp(fra)
	if got := fra.get("/api/platform/projects/by-slug/last"); got.status != http.StatusOK {
		t.Errorf("the edge answers %d %s", got.status, got.body)
	}
	c.untilStatus("the authority has no problem any more", func(s cluster.Status) bool { return s.Problem == "" })
}

// TestTwoEdgesWithOneKey: both work, and the list of edges says what is wrong.
func TestTwoEdgesWithOneKey(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "fra1")
	one, two := c.edge("fra1", ""), c.edge("fra1", "")
	if err := poll(testrig.Patience, func() error {
		out, code := c.run("edges", "--key", c.keys["all"], "--url", c.url)
		if code != 0 || !strings.Contains(out, "two processes use the key of this edge") {
			return fmt.Errorf("edges ended with %d:\n%s", code, out)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	c.create("made")
	c.catchesUp(one)
	c.catchesUp(two)
}

// TestRestoredAuthority: a restored store is another epoch, which the edges follow; what the files have is not lost.
func TestRestoredAuthority(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	c := newCluster(t, "fra1", "ams1")
	fra, ams := c.edge("fra1", ""), c.edge("ams1", "")
	c.create("before")
	if out, code := c.run("backup", "b.tgz", "--ops-url", c.ops); code != 0 {
		t.Fatalf("backup ended with %d:\n%s", code, out)
	}
	for i := range 5 {
		c.create(fmt.Sprint("after-", i))
	}
	c.catchesUp(fra)
	ams.halt()
	before := c.position()
	c.halt()
	if out, code := c.run("restore", "b.tgz", "--force"); code != 0 {
		t.Fatalf("restore ended with %d:\n%s", code, out)
	}
	c.begin()
	ams.start() // it was away meanwhile
	if now := c.position(); now.Epoch == before.Epoch {
		t.Errorf("the epoch is %s as before", now.Epoch)
	}
	for _, e := range []*rig{fra, ams} {
		c.catchesUp(e)
		for _, slug := range []string{"before", "after-0", "after-4"} {
			if got := e.get("/api/platform/projects/by-slug/" + slug); got.status != http.StatusOK {
				t.Errorf("%s: %d %s", slug, got.status, got.body)
			}
		}
		if got := e.get(resolvePath+"shop.acme.example", "X-Min-Position: "+before.String()); got.status != http.StatusConflict {
			t.Errorf("a position of the epoch before is answered %d %s", got.status, got.body)
		}
	}
	c.create("last")
	c.catchesUp(fra)
	c.catchesUp(ams)
}
