package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/cmd/testrig/history"
	"fingerpost/resolver/catalog"
)

// A clusterSiege is a cluster under load, with a history of what its clients see. Each writer changes the name of one
// project, again and again; readers resolve the domains of projects at the edges.
type clusterSiege struct {
	*clusterRig
	edges  []*rig
	wires  []*wire // of each edge to the NATS server
	client *http.Client
	ids    map[string]string        // by project
	spare  atomic.Int64             // number of the next project that no writer has had
	busy   atomic.Pointer[[]string] // projects that readers ask for

	history.History
	answered chan struct{} // takes a value for each answered request, while somebody waits for one
	stop     chan struct{}
	load     sync.WaitGroup
	end      func() // the load
	pair     int    // generations of the pair
}

// The domains of the two projects whose names one generation changes together.
const leftName, rightName = "left", "right"

// newClusterSiege makes a cluster with spare projects for writers.
func newClusterSiege(t *testing.T, spare int) *clusterSiege {
	t.Helper()
	c := &clusterSiege{client: &http.Client{Timeout: time.Minute}, ids: map[string]string{}, answered: make(chan struct{}), stop: make(chan struct{})}
	c.clusterRig = idleCluster(t, "fra1", "ams1")
	for i := range spare {
		c.putProject(fmt.Sprintf("w%d", i), "begin")
	}
	c.putProject(leftName, "begin")
	c.putProject(rightName, "begin")
	c.clusterRig.begin()
	fixed := func(r *rig) { r.flags = append(r.flags, "--listen", strings.TrimPrefix(r.url, "http://")) } // also after a restart
	fixed(c.rig)
	for _, name := range []string{"fra1", "ams1"} {
		w := newWire(t, c.addr)
		e := c.idleEdge(name, "")
		e.flags[1] = "nats://" + w.addr()
		e.start()
		fixed(e)
		c.edges, c.wires = append(c.edges, e), append(c.wires, w)
	}
	var listed struct {
		Data []struct {
			ID   int64
			Slug string
		}
	}
	if err := json.Unmarshal([]byte(c.get("/api/platform/projects").body), &listed); err != nil {
		t.Fatal(err)
	}
	for _, p := range listed.Data {
		c.ids[p.Slug] = strconv.FormatInt(p.ID, 10)
		c.End(c.Begin("begin", p.Slug), history.Acknowledged, catalog.Position{})
	}
	c.busy.Store(&[]string{leftName, rightName})
	return c
}

func (c *clusterSiege) putProject(slug, name string) {
	c.t.Helper()
	c.put(slug+".hcl", fmt.Sprintf("project %q {\n  name = %q\n  domain \"%s.example\" {}\n}\n", slug, name, slug))
}

// again does something until the load ends, at a bounded rate: the tests share the machine.
func (c *clusterSiege) again(do func(i int)) {
	c.load.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-c.stop:
				return
			case <-tick.C:
				do(i)
			}
		}
	})
}

// begin starts the load, which ends with end, or with the test.
func (c *clusterSiege) begin() {
	c.end = sync.OnceFunc(func() {
		close(c.stop)
		c.load.Wait()
	})
	c.t.Cleanup(c.end)
	for i, node := range append([]*rig{c.rig}, c.edges...) {
		c.writer(i, node)
	}
	for _, e := range c.edges {
		url := e.url // a restart replaces what e has
		c.again(func(int) {
			slugs := *c.busy.Load()
			c.read(url, slugs[rand.IntN(len(slugs))], false)
		})
		c.again(func(i int) { c.read(url, []string{leftName, rightName}[i%2], false) })
	}
}

// writer writes at one node, always into the same project until an outcome is unknown.
func (c *clusterSiege) writer(i int, node *rig) {
	slug, url, key := "", node.url, c.keys["write"]
	c.again(func(n int) {
		if slug == "" {
			next := c.spare.Add(1) - 1
			if slug = fmt.Sprintf("w%d", next); c.ids[slug] == "" {
				c.spare.Add(-1)
				slug = ""
				return // the check of the campaign's writes would notice it
			}
			for {
				old := c.busy.Load()
				more := append(append([]string{}, *old...), slug)
				if c.busy.CompareAndSwap(old, &more) {
					break
				}
			}
		}
		content := fmt.Sprintf("%d-%d", i, n)
		number := c.Begin(content, slug)
		res, body, err := c.send(http.MethodPut, url+"/api/platform/projects/"+c.ids[slug], key, `{"name":"`+content+`"}`)
		var op *net.OpError
		switch {
		case err == nil && res.StatusCode == http.StatusOK:
			p, perr := catalog.ParsePosition(res.Header.Get("X-Config-Position"))
			if perr != nil {
				c.t.Errorf("an acknowledged write: %v", perr)
			}
			c.End(number, history.Acknowledged, p)
		case errors.As(err, &op) && op.Op == "dial", err == nil && res.StatusCode == http.StatusServiceUnavailable:
			c.End(number, history.Refused, catalog.Position{}) // nothing was done, and nothing is queued
		case err == nil && res.StatusCode != http.StatusGatewayTimeout:
			c.t.Errorf("a write is answered %d %s", res.StatusCode, body)
			slug = ""
		default:
			slug = ""
		}
	})
}

// read asks an edge for the domain of a project, and records the answer.
func (c *clusterSiege) read(url, slug string, last bool) {
	a := history.Answer{Edge: url, Name: slug, Began: c.Now(), Last: last}
	res, body, err := c.send(http.MethodGet, url+resolvePath+slug+".example", c.keys["all"], "")
	if err != nil {
		return // it was killed
	}
	a.Ended, a.Status, a.Position = c.Now(), res.StatusCode, res.Header.Get("X-Config-Position")
	if a.Status == http.StatusOK {
		var said struct {
			Data struct{ Project struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(body), &said); err != nil {
			c.t.Errorf("%v in %s", err, body)
		}
		a.Content = said.Data.Project.Name
	}
	c.Answered(a)
}

func (c *clusterSiege) send(method, url, key, body string) (*http.Response, string, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("X-PLATFORM-KEY", key)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil {
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return res, string(text), err
}

// requests waits until n more requests were answered: the moment of a kill is in the middle of what runs.
func (c *clusterSiege) requests(n int) {
	c.t.Helper()
	limit := time.After(testrig.Patience)
	for range n {
		select {
		case <-c.answered:
		case <-limit:
			c.t.Fatalf("nothing is answered:\n%s", c.edges[0].logged())
		}
	}
}

// kill ends a node by SIGKILL.
func (c *clusterSiege) kill(node *rig) {
	_ = node.cmd.Process.Kill()
	<-node.exited
}

// killAuthority also saves the pair of files while the authority is away: its next start makes one generation of both.
func (c *clusterSiege) killAuthority() {
	c.kill(c.rig)
	c.pair++
	content := fmt.Sprint("pair ", c.pair)
	number := c.Begin(content, leftName, rightName)
	c.putProject(leftName, content)
	c.putProject(rightName, content)
	c.clusterRig.begin()
	p, err := catalog.ParsePosition(c.get(resolvePath + leftName + ".example").header.Get("X-Config-Position"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.End(number, history.Acknowledged, p)
}

// killServer kills the process of the NATS server, a child of the authority.
func (c *clusterSiege) killServer() {
	c.t.Helper()
	if err := poll(testrig.Patience, func() error { // it may be between two starts
		pid := childOf(c.cmd.Process.Pid)
		if pid == 0 {
			return errors.New("the authority has no child process")
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}); err != nil {
		c.t.Fatal(err)
	}
}

// childOf returns a child process that runs, 0 if there is none.
func childOf(parent int) int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// "pid (name) state parent": the name may have spaces and parentheses.
		rest := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(rest) > 1 && rest[0] != "Z" && rest[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			return pid
		}
	}
	return 0
}

// settle waits until each edge has the newest acknowledged write, and reads everything that was ever written there.
func (c *clusterSiege) settle(last bool) {
	c.t.Helper()
	newest, names := c.Newest()
	for _, e := range c.edges {
		if err := poll(testrig.Patience, func() error {
			got := e.get(resolvePath + leftName + ".example")
			p, err := catalog.ParsePosition(got.header.Get("X-Config-Position"))
			acknowledged := newest != catalog.Position{} // the first round may be over before the first write is answered
			if err != nil || acknowledged && (p.Epoch != newest.Epoch || p.Generation < newest.Generation) {
				return fmt.Errorf("an edge is at %v, and %v was acknowledged (%v): %+v\n%s", p, newest, err, e.clusterStatus(), cutMiddle(c.logged(), 4000))
			}
			return nil
		}); err != nil {
			c.t.Fatal(err)
		}
		for _, name := range names {
			c.read(e.url, name, last)
		}
	}
}

// TestKillsLoseNothing kills the authority, its NATS server and its edges under load, deletes the bucket, and cuts edges
// off: every acknowledged write reaches every edge, no edge goes back in time or shows half a generation, and no name
// that exists is answered 404.
func TestKillsLoseNothing(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	kills, cuts, deletions := testrig.Size(t, 50, 3), testrig.Size(t, 10, 1), testrig.Size(t, 5, 1)
	c := newClusterSiege(t, 3*(kills+cuts+deletions)+12)
	var rounds []func()
	for i := range kills {
		rounds = append(rounds, []func(){
			c.killAuthority,
			func() { c.kill(c.edges[0]); c.edges[0].start() },
			c.killServer,
			func() { c.kill(c.edges[1]); c.edges[1].start() },
		}[i%4])
	}
	for i := range cuts {
		rounds = append(rounds, func() {
			w := c.wires[i%2]
			if i/2%2 == 0 {
				w.cut()
			} else {
				w.freeze()
			}
			c.requests(20 + rand.IntN(100))
			w.heal()
		})
	}
	for range deletions {
		rounds = append(rounds, func() {
			// In one step: what a removal under the server's hands leaves is damage of the stream, not a deleted bucket.
			gone := filepath.Join(t.TempDir(), "jetstream")
			if err := os.Rename(filepath.Join(c.dir, ".fingerpost", "cluster", "jetstream"), gone); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		})
	}
	rand.Shuffle(len(rounds), func(i, j int) { rounds[i], rounds[j] = rounds[j], rounds[i] })
	c.begin()
	for _, round := range rounds {
		c.requests(1 + rand.IntN(100))
		round()
		c.settle(false)
	}
	c.end()
	c.settle(true)
	for _, v := range c.Check() {
		t.Error(v)
	}
	writes, answers := c.Counts()
	if writes < len(rounds) || answers < 10*len(rounds) {
		t.Errorf("only %d writes were acknowledged, and %d requests answered", writes, answers)
	}
	testrig.Figure(t, "%d kills, %d cuts, %d deletions of the bucket; %d acknowledged writes, %d answers", kills, cuts, deletions, writes, answers)
}
