package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain lets the test binary be the programs that bench starts, such as the floor: arguments that are no test flags
// are a command of bench. Otherwise each such program would run the tests, and start itself again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// standIn answers as fingerpost would, from the files, which it reads again for every question.
type standIn struct {
	corpus *corpus
	mu     sync.Mutex
	good   map[int][2]string // per project: description and smsEnabled as last read whole
	hits   atomic.Int64
	deaf   bool           // answers a write and does not do it
	byURL  map[string]int // projects
}

var (
	descriptionLine = regexp.MustCompile(`description = "(.*)"`)
	smsLine         = regexp.MustCompile(`sms_enabled +  *= (true|false)`)
)

func (f *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/metrics" {
		fmt.Fprintf(w, "fingerpost_resolve_cache_total{result=\"hit\"} %d\nfingerpost_resolve_cache_total{result=\"miss\"} 1\n", f.hits.Load())
		return
	}
	if r.Header.Get("X-PLATFORM-KEY") != f.corpus.key {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.URL.Path == "/api/platform/events" {
		f.follow(w, r)
		return
	}
	if r.Method == http.MethodPut {
		f.put(w, r)
		return
	}
	f.hits.Add(1)
	host := r.URL.Query().Get("domain")
	project := projectNumber([]byte(host))
	if project < 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	fields := f.read(project)
	etag := fmt.Sprintf("%q", f.corpus.slugs[project]+fields[1])
	w.Header()["ETag"] = []string{etag} // as fingerpost writes it
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	fmt.Fprintf(w, `{"success":true,"data":{"project":{"slug":"%s","description":"%s"},"serviceSettings":{"smsEnabled":%s}}}`,
		f.corpus.slugs[project], fields[0], fields[1])
}

// put takes a new description.
func (f *standIn) put(w http.ResponseWriter, r *http.Request) {
	var body struct{ Description string }
	project, ok := f.byURL[r.URL.Path]
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || !ok || !f.corpus.Writes || r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if !f.deaf {
		line := fmt.Appendf(nil, "description = %q", body.Description)
		b, err := os.ReadFile(f.corpus.path(project))
		if err == nil {
			err = saveByRename(f.corpus.path(project), descriptionLine.ReplaceAll(b, line))
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
	}
	fmt.Fprintf(w, `{"success":true,"data":{"slug":"%s","description":"%s"}}`, f.corpus.slugs[project], f.read(project)[0])
}

// follow sends an event for each save, which it finds by reading all files repeatedly.
func (f *standIn) follow(w http.ResponseWriter, r *http.Request) {
	last := make([][2]string, f.corpus.Projects)
	for i := range last {
		last[i] = f.read(i)
	}
	fmt.Fprint(w, "retry: 2000\n\n")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for out := http.NewResponseController(w); out.Flush() == nil; {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
		for i := range last {
			if now := f.read(i); now != last[i] {
				last[i] = now
				fmt.Fprintf(w, "event: project.changed\ndata: {\"slug\":\"%s\"}\n\n", f.corpus.slugs[i])
			}
		}
	}
}

// read keeps what it had where a file is just being written.
func (f *standIn) read(project int) [2]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, err := os.ReadFile(f.corpus.path(project))
	description, sms := descriptionLine.FindSubmatch(b), smsLine.FindSubmatch(b)
	if err == nil && description != nil && sms != nil {
		f.good[project] = [2]string{string(description[1]), string(sms[1])}
	}
	return f.good[project]
}

func startStandIn(t *testing.T, c *corpus) *server {
	t.Helper()
	return (&standIn{corpus: c}).start(t)
}

func (f *standIn) start(t *testing.T) *server {
	t.Helper()
	f.good, f.byURL = map[int][2]string{}, map[string]int{}
	for i := range f.corpus.Projects {
		f.read(i)
		f.byURL[projectURL(f.corpus.slugs[i])] = i
	}
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	return &server{name: "stand-in", addr: strings.TrimPrefix(web.URL, "http://"), ops: web.URL, pid: os.Getpid()}
}

func smallBench(t *testing.T) *bench {
	t.Helper()
	o := defaultOptions()
	o.work = t.TempDir()
	o.corpus = corpusParams{Projects: 40, Domains: 120, Seed: 7}
	o.load.connections, o.load.rounds, o.load.round = 4, 2, 50*time.Millisecond
	o.load.warmUp, o.saves, o.unknown = 300, 3, 500
	o.peers, o.sweep, o.clients = false, intList{1, 3}, intList{1}
	return &bench{options: o, progress: new(bytes.Buffer)}
}

func smallCorpus(t *testing.T, b *bench) *corpus {
	t.Helper()
	c, err := b.openCorpus(b.corpus)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// find returns the row with the name, which must be there.
func find(t *testing.T, rep *report, name string) row {
	t.Helper()
	for _, r := range rep.Rows {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("the report has no row %q: %+v", name, rep.Rows)
	return row{}
}

func TestSmokeResolve(t *testing.T) {
	b := smallBench(t)
	c := smallCorpus(t, b)
	rep, err := b.againstFloor(t.Context(), startStandIn(t, c), c)
	if err != nil {
		t.Fatal(err)
	}
	if r := find(t, rep, "resolve"); r.Figure.Median <= 0 || r.Baseline.Median <= 0 || r.Ratio.Low > r.Ratio.High || r.Goal == nil {
		t.Errorf("row %+v", r)
	}
	if r := find(t, rep, "resolve of what has not changed (304)"); r.Figure.Median <= 0 || r.Baseline.Median <= 0 || r.Goal == nil {
		t.Errorf("row %+v", r)
	}
	if r := find(t, rep, "answered by the cache"); r.Figure.Median != 1 {
		t.Errorf("hit share %v of a stand-in that counts hits only", r.Figure.Median)
	}
	var text bytes.Buffer
	if err := rep.writeText(&text); err != nil || !strings.Contains(text.String(), "floor") {
		t.Errorf("writeText: %v: %s", err, text.String())
	}
}

// A floor that is given another key is no baseline: its refusals must not count as answers.
func TestSmokeWrongKey(t *testing.T) {
	b := smallBench(t)
	c := smallCorpus(t, b)
	other := *c
	other.key = "another"
	f, err := b.floor(t.Context(), &other, 500)
	if err != nil {
		t.Fatal(err)
	}
	defer f.stop()
	if err := b.measureRound(t.Context(), known(f, c, uniformSchedule(c.Domains, 1))); err == nil || !strings.Contains(err.Error(), "status") {
		t.Errorf("measureRound against a floor with another key: %v", err)
	}
}

func TestSmokeReload(t *testing.T) {
	b := smallBench(t)
	c := smallCorpus(t, b)
	rep, err := b.reloads(t.Context(), startStandIn(t, c), c)
	if err != nil {
		t.Fatal(err)
	}
	if r := find(t, rep, "while a file is rewritten every 100 ms: wrong answers"); r.Figure.Median != 0 {
		t.Errorf("row %+v, notes %q", r, rep.Notes)
	}
	if r := find(t, rep, "write and rename: save → visible, p99"); r.Figure.Median <= 0 || !r.Goal.Met {
		t.Errorf("row %+v: the stand-in shows a save at once", r)
	}
	// The corpus is as it was: the next run may use it.
	for i := range c.Projects {
		got, err := os.ReadFile(c.path(i))
		if err != nil || !bytes.Equal(got, c.file(i, 0)) {
			t.Errorf("project %d was not restored: %v", i, err)
		}
	}
	if again := smallCorpus(t, b); again.key != c.key {
		t.Error("the corpus was made anew although it was restored")
	}
}

func TestSmokeFeed(t *testing.T) {
	b := smallBench(t)
	b.streams, b.changeEvery = 3, 80*time.Millisecond
	c := smallCorpus(t, b)
	rep, err := b.feed(t.Context(), startStandIn(t, c), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"resolve with subscribers", "latency p99 at half load"} {
		if r := find(t, rep, name); r.Figure.Median <= 0 || r.Baseline.Median <= 0 || r.Goal == nil {
			t.Errorf("row %+v", r)
		}
	}
	// A subscriber that does not receive each save voids the figures.
	for _, said := range []string{"event: project.changed\ndata: {}\n\n", "event: reset\ndata: {}\n\nevent: project.changed\ndata: {}\n\n"} {
		near, far := net.Pipe()
		go func() {
			io.WriteString(far, said)
			far.Close()
		}()
		if err := (followers{{near, bufio.NewScanner(near)}}).expect(2); err == nil {
			t.Errorf("%q passes for two events", said)
		}
	}
}

func TestSmokeFlood(t *testing.T) {
	b := smallBench(t)
	c := smallCorpus(t, b)
	rep, err := b.floodKnown(t.Context(), startStandIn(t, c), c)
	if err != nil {
		t.Fatal(err)
	}
	if r := find(t, rep, "wrong answers"); r.Figure.Median != 0 {
		t.Errorf("row %+v, notes %q", r, rep.Notes)
	}
}

func TestSmokeCheckout(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	b := smallBench(t)
	r, err := b.openRepository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.branch != "first" {
		t.Fatalf("on branch %q", r.branch)
	}
	rep, err := b.switchUnderLoad(t.Context(), startStandIn(t, r.corpus), r)
	if err != nil {
		t.Fatal(err)
	}
	if row := find(t, rep, "while git switches all files: wrong answers"); row.Figure.Median != 0 {
		t.Errorf("row %+v, notes %q", row, rep.Notes)
	}
	got, err := os.ReadFile(r.corpus.path(3))
	if err != nil || !bytes.Equal(got, r.corpus.file(3, 2)) {
		t.Errorf("the second branch has another file than the generator makes: %v", err)
	}
	// Another run begins where this one ended.
	again, err := b.openRepository(t.Context())
	if err != nil || again.branch != "second" || again.corpus.key != r.corpus.key {
		t.Errorf("opened again: %+v, %v", again, err)
	}
}

func TestUsage(t *testing.T) {
	f := func(want int, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(t.Context(), args, &out, &errs); got != want {
			t.Errorf("run(%q) = %d, want %d: %s", args, got, want, errs.String())
		}
		if out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("run(%q): stdout %q, stderr %q", args, out.String(), errs.String())
		}
	}
	f(2)
	f(2, "nonsense")
	f(0, "resolve", "-h")
	f(2, "resolve", "-connections", "0")
	f(2, "resolve", "-zipf", "1")
	f(2, "resolve", "-domains", "100001")
	f(2, "resolve", "-nonsense")
	f(2, "resolve", "extra")
	f(2, "resolve", "-sweep", "1,0")
	f(2, "scale", "-sizes", "1001")
	f(2, "scale", "-sizes", "990")
	f(2, "all", "-rounds", "0")
	f(2, "report", "extra")
	f(0, "help")
	f(2, "write", "-write-rate", "0")
	f(2, "write", "-projects", "63", "-domains", "63")
	f(2, "mail", "-log-entries", "2000")
	f(3, "resolve", "-work", t.TempDir(), "-projects", "2", "-domains", "2", "-binary", "/nonexistent/fingerpost")
}
