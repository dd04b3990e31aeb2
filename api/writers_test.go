package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// TestWritersAtTheSameTime lets 64 clients write to projects of their own, which come and go, and 64 others to one
// project in one file. Nothing is lost, nothing fails, ids are unique, and each project has exactly one primary domain,
// at the end and at every moment. Some of the second 64 count up with If-Match: of all that have read the same value
// only one succeeds.
func TestWritersAtTheSameTime(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": "# kept\nproject \"acme\" {\n  name        = \"Acme\" # and this\n  description = \"0\"\n\n" +
		"  domain \"acme.example\" { primary = true }\n}\n"})
	w := &writers{client: newClient(t, d), ids: map[int64]string{}, last: map[string]map[string]bool{}}
	w.patient = true // writers of one file wait for each other, on a slow machine longer than a request may
	w.acme = d.path(t, "/api/platform/projects/@acme")
	w.has("acme", "acme.example", true)
	end := time.Now().Add(testrig.Size(t, time.Minute, 300*time.Millisecond))
	var running sync.WaitGroup
	for i := range testrig.Size(t, 64, 24) {
		running.Go(func() { w.own(i, end) })
		switch {
		case i%4 == 0:
			running.Go(func() { w.count(end) })
		default:
			running.Go(func() { w.share(i, end) })
		}
	}
	running.Go(func() { w.watch(end) })
	running.Wait()
	testrig.Figure(t, "%d writes, of which %d counted; %d were refused for what they had read", w.writes.Load(), w.counted.Load(), w.stale.Load())
	w.check(t, d)
	d.compareFresh(t)
	for path, content := range d.files(t) {
		if strings.HasSuffix(path, ".tmp") {
			t.Errorf("%s was left behind", path)
		}
		if path == "acme.hcl" && !(bytes.HasPrefix([]byte(content), []byte("# kept\n")) && strings.Contains(content, "# and this")) {
			t.Errorf("a comment is gone:\n%s", content)
		}
	}
}

// writers are clients that write at the same time, with the answers that they got.
type writers struct {
	*client
	acme                   string // the shared project's path
	writes, counted, stale atomic.Int64

	mu   sync.Mutex                 // guards what is below
	ids  map[int64]string           // all that were ever given out
	last map[string]map[string]bool // the domains of each project, by slug
}

// madeID records that an id was assigned, which must happen once.
func (w *writers) madeID(id int64, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, taken := w.ids[id]; taken {
		w.t.Errorf("id %d of %s is that of %s", id, to, before)
	}
	w.ids[id] = to
}

// has notes whether a project has a domain.
func (w *writers) has(slug, domain string, now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last[slug] == nil {
		w.last[slug] = map[string]bool{}
	}
	if w.last[slug][domain] = true; !now {
		delete(w.last[slug], domain)
	}
}

// made is what a POST answers with.
type made struct {
	ID     int64
	Domain string
}

// post creates something and notes its id.
func (w *writers) post(path, body string) (m made, ok bool) {
	r, ok := w.want(http.StatusCreated, "POST", path, body)
	if !ok {
		return m, false
	}
	w.writes.Add(1)
	r.into(w.t, &m)
	w.madeID(m.ID, body)
	return m, true
}

// relay adds a primary domain to a project and then takes the one before away, which is primary no more.
func (w *writers) relay(path, slug, name string, before *made) bool {
	now, ok := w.post(path+"/domains", `{"domain":"`+name+`","primary":true}`)
	if !ok {
		return false
	}
	w.has(slug, name, true)
	if before.ID != 0 {
		if _, ok = w.want(http.StatusOK, "DELETE", fmt.Sprintf("%s/domains/%d", path, before.ID), ""); !ok {
			return false
		}
		w.writes.Add(1)
		w.has(slug, before.Domain, false)
	}
	*before = now
	return true
}

// share writes to the shared project.
func (w *writers) share(i int, end time.Time) {
	var last made
	for n := 0; time.Now().Before(end); n++ {
		if !w.relay(w.acme, "acme", fmt.Sprintf("c%d-n%d.acme.example", i, n), &last) {
			return
		}
	}
}

// count adds one to the number in the shared project's description, if it still is the one that was read. It goes on
// when the others have ended, until somebody got through and somebody was too late.
func (w *writers) count(end time.Time) {
	for time.Now().Before(end) || w.counted.Load() == 0 || w.stale.Load() == 0 {
		r, ok := w.want(http.StatusOK, "GET", w.acme, "")
		if !ok {
			return
		}
		var p struct{ Description string }
		r.into(w.t, &p)
		var n int
		if _, err := fmt.Sscan(p.Description, &n); err != nil {
			w.t.Errorf("description %q: %v", p.Description, err)
			return
		}
		switch put := w.ask("PUT", w.acme, fmt.Sprintf(`{"description":"%d"}`, n+1), r.etag); put.status {
		case http.StatusOK:
			w.writes.Add(1)
			w.counted.Add(1)
		case http.StatusPreconditionFailed:
			w.stale.Add(1)
		default:
			w.t.Errorf("PUT with If-Match: %d %s", put.status, put.body)
			return
		}
	}
}

// own writes to a project that no other client uses, and sometimes creates it again.
func (w *writers) own(i int, end time.Time) {
	slug := fmt.Sprintf("own-%d", i)
	var path string
	var last made
	for n := 0; time.Now().Before(end); n++ {
		if n%8 == 0 {
			if path != "" {
				if _, ok := w.want(http.StatusOK, "DELETE", path, ""); !ok {
					return
				}
				w.writes.Add(1)
				w.has(slug, last.Domain, false)
			}
			project, ok := w.post("/api/platform/projects", fmt.Sprintf(`{"name":"Own %d, %d","slug":"%s"}`, i, n, slug))
			if !ok {
				return
			}
			path, last = fmt.Sprintf("/api/platform/projects/%d", project.ID), made{}
		}
		if !w.relay(path, slug, fmt.Sprintf("c%d-n%d.own.example", i, n), &last) {
			return
		}
		// What one's own answer said is what is there.
		domain := fmt.Sprintf("%s/domains/%d", path, last.ID)
		r, ok := w.want(http.StatusOK, "GET", domain, "")
		if !ok {
			return
		}
		for _, want := range []int{http.StatusOK, http.StatusPreconditionFailed} { // the first makes the tag a former one
			if put := w.ask("PUT", domain, fmt.Sprintf(`{"active":%t}`, want != http.StatusOK), r.etag); put.status != want {
				w.t.Errorf("PUT of a domain of one's own: %d, want %d: %s", put.status, want, put.body)
				return
			}
		}
		w.writes.Add(1)
	}
}

// watch repeatedly checks the one primary domain of the shared project.
func (w *writers) watch(end time.Time) {
	for time.Now().Before(end) {
		r, ok := w.want(http.StatusOK, "GET", w.acme+"/domains", "")
		if !ok {
			return
		}
		var domains []struct {
			Domain  string
			Primary bool
		}
		r.into(w.t, &domains)
		if n := len(slices.DeleteFunc(domains, func(d struct {
			Domain  string
			Primary bool
		}) bool {
			return !d.Primary
		})); n != 1 {
			w.t.Errorf("%d primary domains at the same time: %s", n, r.body)
			return
		}
	}
}

// check compares the server's answers with the recorded ones.
func (w *writers) check(t *testing.T, d *desk) {
	seen := map[int64]bool{}
	once := func(id int64) {
		if seen[id] {
			t.Errorf("id %d twice", id)
		}
		seen[id] = true
	}
	projects := 0
	err := d.resolver.EachProject(func(p *catalog.Project) bool {
		projects++
		once(p.ID)
		if p.Slug == "acme" && (p.Description == nil || *p.Description != fmt.Sprint(w.counted.Load())) {
			description, _ := json.Marshal(p.Description)
			t.Errorf("%d have counted, and it stands at %s", w.counted.Load(), description)
		}
		domains, _, err := d.resolver.Domains(p.ID, resolver.Query{})
		if err != nil {
			t.Error(err)
		}
		primaries := 0
		for _, x := range domains {
			if once(x.ID); x.Primary {
				primaries++
			}
			if !w.last[p.Slug][x.Name] {
				t.Errorf("%s has %s, which was taken away", p.Slug, x.Name)
			}
		}
		if primaries != 1 {
			t.Errorf("%s has %d primary domains", p.Slug, primaries)
		}
		if len(domains) != len(w.last[p.Slug]) {
			t.Errorf("%s has %d domains, want %d", p.Slug, len(domains), len(w.last[p.Slug]))
		}
		return true
	})
	if err != nil || projects != len(w.last) {
		t.Errorf("%d projects, want %d, %v", projects, len(w.last), err)
	}
}
