package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// tornText is a file of three projects, so that some of its cuts parse without an error.
func tornText(file, version int) string {
	text := fmt.Sprintf("# File %d.\n", file)
	for p := range 3 {
		text += fmt.Sprintf("project \"p%d-%d\" {\n  name = \"v%d\"\n  domain \"p%d-%d.example\" {}\n}\n", file, p, version, file, p)
	}
	return text
}

var versionName = regexp.MustCompile(`"name":"v(\d+)"`)

// A tornWatch resolves the projects of the files all the time: each shows the name of the previous save or of the
// current one, is never missing, and never goes back.
type tornWatch struct {
	r       *rig
	files   int
	version atomic.Int64 // that is being saved
	seen    []int64
}

func (w *tornWatch) ask(file, project int) (version int64, ok bool) {
	got := w.r.get(fmt.Sprintf("%sp%d-%d.example", resolvePath, file, project))
	m := versionName.FindStringSubmatch(got.body)
	if got.status != 200 || m == nil {
		w.r.t.Errorf("p%d-%d: %d %.300s", file, project, got.status, got.body)
		return 0, false
	}
	version, err := strconv.ParseInt(m[1], 10, 64)
	return version, err == nil
}

func (w *tornWatch) run(end <-chan struct{}) {
	w.seen = make([]int64, 3*w.files)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n = (n + 1) % len(w.seen) {
		before := w.version.Load() - 1
		version, ok := w.ask(n/3, n%3)
		if !ok {
			return
		}
		if version < max(before, w.seen[n]) || version > w.version.Load() {
			w.r.t.Errorf("p%d-%d is of save %d, after %d, and %d is the last complete one", n/3, n%3, version, w.seen[n], before)
			return
		}
		w.seen[n] = version
		select {
		case <-end:
			return
		case <-tick.C:
		}
	}
}

// TestTornFile saves files in place with a pause after each byte in turn, long enough for the service to read the file,
// and short enough not to count as a change of its own.
func TestTornFile(t *testing.T) {
	every := testrig.Size(t, 1, 16)
	t.Parallel()
	const files = 12
	more := map[string]string{}
	for file := range files {
		more[fmt.Sprintf("torn%d.hcl", file)] = tornText(file, 0)
	}
	r := newRig(t, more)
	w := &tornWatch{r: r, files: files}
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { w.run(end) })
	length := len(tornText(files, 10))
	for cut := 0; cut <= length && !t.Failed(); cut += files * every {
		version := w.version.Add(1)
		open := make([]*os.File, files)
		for file := range open {
			f, err := os.Create(r.path(fmt.Sprintf("torn%d.hcl", file)))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			open[file] = f
			text := tornText(file, int(version))
			if _, err := f.WriteString(text[:min(cut+file, len(text))]); err != nil {
				t.Fatal(err)
			}
		}
		watched(t, 60*time.Millisecond) // the cut files stand for longer than the 25 ms of quiet
		for file, f := range open {
			text := tornText(file, int(version))
			if _, err := f.WriteString(text[min(cut+file, len(text)):]); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		for file := range files {
			err := poll(testrig.Patience, func() error {
				if got, ok := w.ask(file, 2); ok && got != version {
					return fmt.Errorf("file %d, cut at %d: save %d is not seen, still %d", file, cut+file, version, got)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	close(end)
	wg.Wait()
}

// TestDrippingFile saves a file byte by byte, for longer than the longest debounce.
func TestDrippingFile(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := newRig(t, map[string]string{"torn0.hcl": tornText(0, 0)})
	w := &tornWatch{r: r, files: 1}
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { w.run(end) })
	w.version.Store(1)
	f, err := os.Create(r.path("torn0.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, b := range []byte(tornText(0, 1)) {
		<-tick.C
		if _, err := f.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	err = poll(testrig.Patience, func() error {
		if got, ok := w.ask(0, 2); ok && got != 1 {
			return fmt.Errorf("still save %d", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	close(end)
	wg.Wait()
	if state, all, err := r.problems(); state != "ok" || len(all) > 0 || err != nil {
		t.Errorf("state %s, %v, %v", state, all, err)
	}
}

// watched lets the watch of a test run for d, or until it has failed.
func watched(t *testing.T, d time.Duration) {
	t.Helper()
	enough := time.Now().Add(d)
	_ = poll(d, func() error {
		if t.Failed() || time.Now().After(enough) {
			return nil
		}
		return fmt.Errorf("goes on")
	})
}
