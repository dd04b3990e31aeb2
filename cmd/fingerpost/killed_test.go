package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/resolver"
)

var createdUpdated = regexp.MustCompile(`"(created|updated)At":"[^"]*"`)

// tellAll returns everything that a server answers about its projects, except for the times.
func tellAll(base, key string) (string, error) {
	var all strings.Builder
	ask := func(target string) (string, error) {
		req, err := http.NewRequest(http.MethodGet, base+target, nil)
		if err != nil {
			return "", err
		}
		req.Header.Set("X-PLATFORM-KEY", key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		fmt.Fprintf(&all, "%s %d %s\n", target, res.StatusCode, createdUpdated.ReplaceAllString(stampOf.ReplaceAllString(string(b), ""), ""))
		return string(b), err
	}
	const projects = "/api/platform/projects"
	list, err := ask(projects)
	if err != nil {
		return "", err
	}
	var listed struct{ Data []struct{ ID int64 } }
	if err := json.Unmarshal([]byte(list), &listed); err != nil {
		return "", fmt.Errorf("%w in %s", err, list)
	}
	for _, p := range listed.Data {
		for _, part := range []string{"domains", "service-settings", "auth-settings"} {
			if _, err := ask(fmt.Sprintf("%s/%d/%s", projects, p.ID, part)); err != nil {
				return "", err
			}
		}
	}
	return all.String(), nil
}

// filesSay returns the answers of a server that has only the files.
func (r *rig) filesSay() (string, error) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	res, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20, StoreCacheBytes: 1 << 20, Logger: log})
	if err != nil {
		return "", err
	}
	defer res.Close()
	source := configsrc.New(configsrc.Options{Dir: r.path("."), Sink: res, Logger: log, ReadOnly: true, MaxDelete: 1})
	if err := source.Load(context.Background()); err != nil {
		return "", err
	}
	server, err := api.New(api.Options{Resolver: res, Logger: log})
	if err != nil {
		return "", err
	}
	ln, err := api.Listen("127.0.0.1:0")
	if err != nil {
		return "", err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln, api.Platform) }()
	says, err := tellAll("http://"+ln.Addr().String(), r.keys["all"])
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = server.Shutdown(ctx) // idle connections of ours may outlast it
	<-served
	return says, err
}

// agrees checks that the running server answers what the files declare, that all files are valid, and that no leftover
// files exist.
func (r *rig) agrees() error {
	says, err := tellAll(r.url, r.keys["all"])
	if err != nil {
		return err
	}
	should, err := r.filesSay()
	if err != nil {
		return err
	}
	if says != should {
		return fmt.Errorf("it says\n%s\nand from the files alone\n%s", says, should)
	}
	if state, all, err := r.problems(); state != "ok" || len(all) > 0 || err != nil {
		return fmt.Errorf("state %s, %v, %v", state, all, err)
	}
	for name := range r.tree() {
		if ext := filepath.Ext(name); ext != ".hcl" && ext != ".html" { // a body that file() names
			return fmt.Errorf("%s was left behind", name)
		}
	}
	return nil
}

// tree reads the config folder.
func (r *rig) tree() map[string]string {
	r.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(r.path("."), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(r.path("."), name)
		found[rel] = string(b)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// kill kills the server with SIGKILL.
func (r *rig) kill() {
	_ = r.cmd.Process.Kill()
	<-r.exited
}

// send makes a request and returns the status, 0 if no answer came, and the id in the answer.
func (r *rig) send(method, path, body string) (status int, id int64) {
	req, err := http.NewRequest(method, r.url+"/api/platform/projects"+path, strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return 0, 0
	}
	req.Header.Set("X-PLATFORM-KEY", r.keys["write"])
	request := r.trail.request()
	req.Header.Set("X-Request-Id", request)
	res, err := r.client.Do(req)
	if err != nil {
		return 0, 0
	}
	defer res.Body.Close()
	var answer struct{ Data struct{ ID int64 } }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return 0, 0
	}
	if res.StatusCode < 300 {
		r.trail.ok(request)
	}
	return res.StatusCode, answer.Data.ID
}

// idOf returns a project's id, 0 for none.
func (r *rig) idOf(slug string) int64 {
	r.t.Helper()
	var found struct{ Data struct{ ID int64 } }
	if err := json.Unmarshal([]byte(r.get("/api/platform/projects/by-slug/"+slug).body), &found); err != nil {
		r.t.Error(err)
	}
	return found.Data.ID
}

// TestKilledAtEveryStep kills the server before each step of each kind of write. Afterwards the write is there
// completely or not at all; and the files, the store and the API agree.
func TestKilledAtEveryStep(t *testing.T) {
	every := testrig.Size(t, 1, 6)
	t.Parallel()
	for name, w := range map[string]struct {
		method, slug, path, body, file string
		fullOnly                       bool
	}{
		"a change":                     {"PUT", "other", "", `{"name":"Another"}`, "other.hcl", false},
		"a new project":                {"POST", "", "", `{"name":"New","slug":"new"}`, "new.hcl", false},
		"a removed project":            {"DELETE", "gone", "", "", "gone.hcl", false},
		"one of two projects":          {"DELETE", "one", "", "", "pair.hcl", true},
		"a new domain":                 {"POST", "other", "/domains", `{"domain":"new.example"}`, "other.hcl", true},
		"settings in a file of others": {"PUT", "two", "/service-settings", `{"mailEnabled":true}`, "pair.hcl", true},
	} {
		t.Run(name, func(t *testing.T) {
			if t.Parallel(); w.fullOnly && !testrig.Full() {
				t.Skip("much like the others, which are enough outside of a campaign")
			}
			r := idleRig(t, t.TempDir(), map[string]string{"pair.hcl": "project \"one\" {\n  name = \"One\"\n}\n\nproject \"two\" {\n  name = \"Two\"\n}\n"})
			before := r.tree()
			killed := 0
			for step := 1; ; step += every {
				r.dies = fmt.Sprint(step)
				r.start()
				path := w.path
				if w.slug != "" {
					path = fmt.Sprintf("/%d%s", r.idOf(w.slug), w.path)
				}
				status, _ := r.send(w.method, path, w.body)
				if status != 0 && (status < 200 || status > 201) {
					t.Fatalf("step %d: status %d", step, status)
				}
				if status == 0 {
					killed++
					<-r.exited
				} else {
					r.kill() // right behind the answer
				}
				at := strings.Join(regexp.MustCompile(`dies before: .*`).FindAllString(r.logged(), -1), "; ")
				r.dies = ""
				r.start()
				if err := r.agrees(); err != nil {
					t.Fatalf("step %d, %s: %v", step, at, err)
				}
				changed := r.tree()[w.file] != before[w.file]
				if status != 0 && !changed {
					t.Fatalf("step %d, %s: answered %d, and lost", step, at, status)
				}
				r.kill()
				if status != 0 && at == "" {
					break // it has no such step
				}
				for file := range r.tree() {
					if _, ok := before[file]; !ok {
						must(t, os.Remove(r.path(file)))
					}
				}
				for file, text := range before {
					r.put(file, text)
				}
			}
			if killed < 6/every {
				t.Errorf("it was killed at %d steps only", killed)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A ledger is what a client knows of its writes. Without an answer both states are possible.
type ledger struct {
	slug     string
	last     int          // number of the last write
	may      map[int]bool // values that the project's name may have; 0: there is no such project
	answered int
}

// write makes the next write, and reports whether it succeeded. Each fourth removes the project or creates it again.
func (l *ledger) write(r *rig, id *int64) bool { return l.next(r, id, l.last%4 == 3) }

// next is write, and removes the project if remove is set and the project exists.
func (l *ledger) next(r *rig, id *int64, remove bool) bool {
	l.last++
	now, status, want, made := l.last, 0, http.StatusOK, int64(0)
	switch {
	case *id == 0:
		want = http.StatusCreated
		status, made = r.send("POST", "", fmt.Sprintf(`{"name":"v%d","slug":%q}`, now, l.slug))
	case remove:
		now = 0
		status, _ = r.send("DELETE", fmt.Sprintf("/%d", *id), "")
	default:
		status, _ = r.send("PUT", fmt.Sprintf("/%d", *id), fmt.Sprintf(`{"name":"v%d"}`, now))
	}
	if status != want {
		l.may[now] = true // it may have been done anyway
		return false
	}
	l.answered++
	l.may = map[int]bool{now: true}
	switch {
	case now == 0:
		*id = 0
	case *id == 0:
		*id = made
	}
	return true
}

// check compares the server's answers with the ledger, and settles its open states.
func (l *ledger) check(r *rig) error {
	got := r.get("/api/platform/projects/by-slug/" + l.slug)
	value := 0
	if m := versionName.FindStringSubmatch(got.body); m != nil {
		fmt.Sscan(m[1], &value)
	} else if got.status != http.StatusNotFound {
		return fmt.Errorf("%s: %d %s", l.slug, got.status, got.body)
	}
	if !l.may[value] {
		return fmt.Errorf("%s has value %d, and may have one of %v; 0 is none", l.slug, value, l.may)
	}
	l.may = map[int]bool{value: true}
	return nil
}

// A siege is clients that write all the time while the server is killed or its power is cut. One more client creates
// and removes several projects at a time, more than the limit on deletions.
type siege struct {
	*rig
	clients []*ledger
	bulk    []*ledger
	checks  int
}

func newSiege(r *rig) *siege {
	s := &siege{rig: r}
	for i := range 4 {
		s.clients = append(s.clients, &ledger{slug: fmt.Sprintf("client-%d", i), may: map[int]bool{0: true}})
	}
	for i := range 10 {
		s.bulk = append(s.bulk, &ledger{slug: fmt.Sprintf("bulk-%d", i), may: map[int]bool{0: true}})
	}
	return s
}

// writeBulk writes to all projects of the bulk at once until a write fails: existing ones are deleted, then all are
// created.
func (s *siege) writeBulk(ids []int64, answered func()) {
	for remove, failed := true, false; !failed; remove = !remove {
		var all sync.WaitGroup
		bad, asked := make([]bool, len(ids)), false
		for i, l := range s.bulk {
			if remove == (ids[i] != 0) {
				asked = true
				all.Go(func() { bad[i] = !l.next(s.rig, &ids[i], remove) })
			}
		}
		all.Wait()
		if failed = slices.Contains(bad, true); asked { // at first there is none to remove
			answered()
		}
	}
}

// round lets the clients write until end is called, and for the given time after their first answer.
func (s *siege) round(after time.Duration, end func()) {
	s.t.Helper()
	var all sync.WaitGroup
	first := make(chan struct{})
	once := sync.OnceFunc(func() { close(first) })
	for _, l := range s.clients {
		id := s.idOf(l.slug)
		all.Go(func() {
			for l.write(s.rig, &id) {
				once()
			}
			once()
		})
	}
	ids := make([]int64, len(s.bulk))
	for i, l := range s.bulk {
		ids[i] = s.idOf(l.slug)
	}
	all.Go(func() { s.writeBulk(ids, once) })
	<-first
	<-time.After(after)
	end()
	all.Wait()
}

func (s *siege) ledgers() []*ledger { return slices.Concat(s.clients, s.bulk) }

// check compares everything with the ledgers, and checks that writes work at once.
func (s *siege) check() error {
	for _, l := range s.ledgers() {
		if err := l.check(s.rig); err != nil {
			return err
		}
	}
	if err := s.agrees(); err != nil {
		return err
	}
	if err := s.checkTrail(); err != nil {
		return err
	}
	s.checks++
	if status, _ := s.send("PUT", fmt.Sprintf("/%d", s.idOf("other")), fmt.Sprintf(`{"name":"Other %d"}`, s.checks)); status != http.StatusOK {
		return fmt.Errorf("right after the start a PUT is answered with %d", status)
	}
	return nil
}

func (s *siege) answered() (n int) {
	for _, l := range s.ledgers() {
		n += l.answered
	}
	return n
}

// TestKilledAtRandom kills the server in the middle of its work, again and again, on the same files and store.
func TestKilledAtRandom(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	s := newSiege(idleRig(t, t.TempDir(), nil))
	s.start()
	n := testrig.Size(t, 200, 3)
	for round := range n {
		s.round(time.Duration(rand.IntN(60000))*time.Microsecond, s.kill)
		s.start()
		if err := s.check(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	s.kill()
	s.chainsHold(filepath.Join(s.dir, ".fingerpost"))
	testrig.Figure(t, "%d writes answered, killed %d times", s.answered(), n)
	if s.answered() < n {
		t.Error("hardly a write was answered; this shows nothing")
	}
}
