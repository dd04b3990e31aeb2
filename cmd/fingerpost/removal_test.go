package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// A removalRig is a server with enough projects for the limit on deletions. Four of them exceed it.
type removalRig struct {
	*rig
	slugs []string // that the rounds remove and make again
	put   int      // number of the last answered PUT
}

func newRemovalRig(t *testing.T) *removalRig {
	r := &removalRig{}
	files := map[string]string{}
	for i := range 9 { // with the three of every rig: 12
		slug := fmt.Sprintf("bulk-%d", i)
		r.slugs = append(r.slugs, slug)
		files[slug+".hcl"] = bulkFile(slug)
	}
	r.rig = newRig(t, files)
	r.halt()
	r.start()
	return r
}

func bulkFile(slug string) string {
	return fmt.Sprintf("project %q {\n  name = \"Bulk\"\n  domain \"%s.example\" {}\n}\n", slug, slug)
}

// status is the answer to a GET of a project.
func (r *removalRig) status(slug string) int {
	return r.get("/api/platform/projects/by-slug/" + slug).status
}

// change makes a PUT that must succeed.
func (r *removalRig) change() error {
	r.put++
	if status, _ := r.send("PUT", fmt.Sprintf("/%d", r.idOf("other")), fmt.Sprintf(`{"name":"v%d"}`, r.put)); status != http.StatusOK {
		return fmt.Errorf("PUT v%d: status %d", r.put, status)
	}
	return nil
}

// remove deletes projects over the API, all at once, and returns those whose deletion was answered.
func (r *removalRig) remove(slugs []string, then func()) (answered []string) {
	ids := make([]int64, len(slugs))
	for i, slug := range slugs {
		ids[i] = r.idOf(slug)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	first := make(chan struct{})
	once := sync.OnceFunc(func() { close(first) })
	for i, slug := range slugs {
		all.Go(func() {
			defer once()
			if status, _ := r.send("DELETE", fmt.Sprintf("/%d", ids[i]), ""); status == http.StatusOK {
				mu.Lock()
				defer mu.Unlock()
				answered = append(answered, slug)
			}
		})
	}
	if <-first; then != nil {
		then()
	}
	all.Wait()
	return answered
}

// again kills the server, starts it, and checks the answered writes: these projects are gone, the last PUT is served,
// and writes work at once. It then creates all projects again.
func (r *removalRig) again(removed []string) error {
	if r.running() {
		r.kill()
	}
	r.start()
	if state, all, err := r.problems(); state != "ok" || len(all) > 0 || err != nil {
		return fmt.Errorf("state %s, %v, %v; %s", state, all, err, r.logged())
	}
	for _, slug := range removed {
		if status := r.status(slug); status != http.StatusNotFound {
			return fmt.Errorf("%s was removed, and GET answers %d", slug, status)
		}
	}
	var found struct{ Data struct{ Name string } }
	if err := json.Unmarshal([]byte(r.get("/api/platform/projects/by-slug/other").body), &found); err != nil {
		return err
	}
	if want := fmt.Sprintf("v%d", r.put); found.Data.Name != want {
		return fmt.Errorf("the name is %q, and %q was answered", found.Data.Name, want)
	}
	if err := r.change(); err != nil {
		return fmt.Errorf("right after the start: %w", err)
	}
	for _, slug := range r.slugs {
		if r.status(slug) == http.StatusOK {
			continue
		}
		body := fmt.Sprintf(`{"name":"Bulk","slug":%q}`, slug)
		if status, _ := r.send("POST", "", body); status != http.StatusCreated {
			return fmt.Errorf("POST %s: status %d", slug, status)
		}
	}
	r.halt() // in order, so that the store knows all of them
	r.start()
	return nil
}

// within waits for a random part of the second in which the store used to lag behind the files.
func within(d time.Duration) { <-time.After(time.Duration(rand.Int64N(int64(d)))) }

// TestKilledAfterRemovals removes more than the limit on deletions and kills the server within a second.
func TestKilledAfterRemovals(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for name, removals := range map[string]func(r *removalRig) (removed []string, err error){
		"over the API, one after another": func(r *removalRig) ([]string, error) {
			for _, slug := range r.slugs[:4] {
				if got := r.remove([]string{slug}, nil); len(got) != 1 {
					return nil, fmt.Errorf("DELETE %s was refused", slug)
				}
			}
			within(600 * time.Millisecond)
			return r.slugs[:4], nil
		},
		"over the API, all at once": func(r *removalRig) ([]string, error) {
			return r.remove(r.slugs, func() {
				within(5 * time.Millisecond)
				r.kill()
			}), nil
		},
		"by hand, each below the brake": func(r *removalRig) ([]string, error) {
			// The store is synced a second after the PUT, so after the first of the three; each takes half a second.
			for _, few := range [][]string{r.slugs[:1], r.slugs[1:3], r.slugs[3:6]} {
				if err := r.removeFiles(few); err != nil {
					return nil, err
				}
			}
			return r.slugs[:6], nil
		},
		"by hand and confirmed": func(r *removalRig) ([]string, error) {
			go func() {
				for range 100 {
					if state, _, _ := r.problems(); state == "held" {
						break
					}
					<-time.After(20 * time.Millisecond)
				}
				r.run("reload", "--confirm", "--ops-url", r.ops)
			}()
			return r.slugs[:6], r.removeFiles(r.slugs[:6])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemovalRig(t)
			n, removed := testrig.Size(t, 100, 1), 0
			for round := range n {
				err := r.change()
				var gone []string
				if err == nil {
					gone, err = removals(r)
				}
				if err == nil {
					err = r.again(gone)
				}
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				removed += len(gone)
			}
			testrig.Figure(t, "%d removals, killed %d times", removed, n)
			if removed < n {
				t.Error("hardly anything was removed; this shows nothing")
			}
		})
	}
}

// removeFiles removes projects by hand and waits until the server has seen it.
func (r *removalRig) removeFiles(slugs []string) error {
	for _, slug := range slugs {
		if err := os.Remove(r.path(slug + ".hcl")); err != nil {
			return err
		}
	}
	return poll(testrig.Patience, func() error {
		for _, slug := range slugs {
			if status := r.status(slug); status != http.StatusNotFound {
				return fmt.Errorf("%s: status %d", slug, status)
			}
		}
		return nil
	})
}
