package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// A history is what clients have seen of a cluster. Safe for concurrent use.
type history struct {
	mu       sync.Mutex                             // guards the fields below
	written  []string                               // slugs of projects whose write was answered 201
	seen     map[string]map[string]catalog.Position // by edge and slug: the newest position of a 200
	position map[string]catalog.Position
	wrong    []string
}

// saw checks an edge's answer about a project against what it has answered before.
func (h *history) saw(edge, slug string, status int, position string) {
	p, err := catalog.ParsePosition(position)
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.position[edge]
	switch {
	case status != http.StatusOK && status != http.StatusNotFound:
		return // it is starting
	case err != nil:
		h.wrong = append(h.wrong, fmt.Sprintf("%s answers without a position: %q", edge, position))
		return
	case p.Epoch == last.Epoch && p.Generation < last.Generation:
		h.wrong = append(h.wrong, fmt.Sprintf("%s went from %v back to %v", edge, last, p))
	case status == http.StatusNotFound && h.seen[edge][slug].Epoch == p.Epoch && p.Generation > h.seen[edge][slug].Generation:
		// An answer is at least as new as its position, so one of the same position may be older.
		h.wrong = append(h.wrong, fmt.Sprintf("%s answers 404 for %s, which it had", edge, slug))
	}
	h.position[edge] = p
	if status == http.StatusOK {
		if h.seen[edge] == nil {
			h.seen[edge] = map[string]catalog.Position{}
		}
		h.seen[edge][slug] = p
	}
}

func (h *history) some() (slug string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.written) == 0 {
		return "acme"
	}
	return h.written[rand.IntN(len(h.written))]
}

// TestKillsLoseNothing kills the authority and its edges under load, again and again: every acknowledged write reaches
// every edge, no edge goes back in time, and none forgets a project.
func TestKillsLoseNothing(t *testing.T) {
	t.Parallel()
	kills := 6
	if os.Getenv("CI") == "true" {
		kills = 50
	}
	c := newCluster(t, "fra1", "ams1")
	fixed := func(r *rig) { r.flags = append(r.flags, "--listen", strings.TrimPrefix(r.url, "http://")) } // also after a restart
	fixed(c.rig)
	nodes := []*rig{c.rig, c.edge("fra1", ""), c.edge("ams1", "")}
	h := &history{seen: map[string]map[string]catalog.Position{}, position: map[string]catalog.Position{}}
	client := &http.Client{Timeout: 20 * time.Second}
	ask := func(method, url, key, body string) (*http.Response, string) {
		req, err := http.NewRequest(method, url, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return nil, ""
		}
		req.Header.Set("X-PLATFORM-KEY", key)
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		if err != nil {
			return nil, "" // it was killed
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res, string(text)
	}
	stop := make(chan struct{})
	var load sync.WaitGroup
	again := func(do func(i int)) {
		load.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
					do(i)
				}
			}
		})
	}
	for i, node := range nodes {
		if i > 0 {
			fixed(node)
		}
		url, read, write := node.url, c.keys["all"], c.keys["write"]
		again(func(n int) {
			slug := fmt.Sprintf("w%d-%d", i, n)
			if res, _ := ask(http.MethodPost, url+"/api/platform/projects", write, `{"name":"Written","slug":"`+slug+`"}`); res != nil && res.StatusCode == http.StatusCreated {
				h.mu.Lock()
				h.written = append(h.written, slug)
				h.mu.Unlock()
			}
		})
		if i > 0 {
			again(func(int) {
				slug := h.some()
				if res, _ := ask(http.MethodGet, url+"/api/platform/projects/by-slug/"+slug, read, ""); res != nil {
					h.saw(url, slug, res.StatusCode, res.Header.Get("X-Config-Position"))
				}
			})
		}
	}
	for k := range kills {
		node := nodes[k%len(nodes)]
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond) // anywhere in what runs
		_ = node.cmd.Process.Kill()
		<-node.exited
		node.start()
	}
	close(stop)
	load.Wait()
	for _, node := range nodes[1:] {
		for _, slug := range h.written {
			node.until("the acknowledged project "+slug+" is there", "/api/platform/projects/by-slug/"+slug, func(got reply) bool {
				return got.status == http.StatusOK && json.Valid([]byte(got.body))
			})
		}
	}
	for _, wrong := range h.wrong {
		t.Error(wrong)
	}
	if len(h.written) < kills {
		t.Errorf("only %d writes were acknowledged", len(h.written))
	}
	t.Logf("%d kills, %d acknowledged writes", kills, len(h.written))
}

// TestHistoryFindsErrors: the checker above is no use if it cannot fail.
func TestHistoryFindsErrors(t *testing.T) {
	h := &history{seen: map[string]map[string]catalog.Position{}, position: map[string]catalog.Position{}}
	at := func(generation uint64) string {
		return catalog.Position{Epoch: "0123456789abcdef", Generation: generation}.String()
	}
	h.saw("fra1", "a", 200, at(5))
	h.saw("fra1", "b", 404, at(5))
	h.saw("fra1", "b", 200, at(6))
	if len(h.wrong) != 0 {
		t.Errorf("it finds %q in a good history", h.wrong)
	}
	h.saw("fra1", "a", 200, at(4))
	h.saw("fra1", "b", 404, at(7))
	h.saw("fra1", "b", 200, "")
	if len(h.wrong) != 3 {
		t.Errorf("it finds only %q", h.wrong)
	}
}
