package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/api/ops"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

// An afterRig runs a command in a folder of its own.
type afterRig struct {
	*afterWrite
	t   *testing.T
	dir string
	log bytes.Buffer
}

func newAfterRig(t *testing.T, command string, limit time.Duration) *afterRig {
	t.Helper()
	r := &afterRig{t: t, dir: t.TempDir()}
	var err error
	if r.afterWrite, err = newAfterWrite(command, r.dir, limit, slog.New(slog.NewTextHandler(&r.log, nil))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r.finish(ctx)
	})
	return r
}

func (r *afterRig) until(what string, cond func() bool) {
	r.t.Helper()
	if err := poll(testrig.Patience, func() error {
		if !cond() {
			return errors.New("timed out waiting for " + what)
		}
		return nil
	}); err != nil {
		r.t.Fatalf("%v; status %+v", err, r.Status())
	}
}

func (r *afterRig) file(name string) string {
	b, _ := os.ReadFile(filepath.Join(r.dir, name))
	return string(b)
}

func (r *afterRig) touch(name string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), nil, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func wrote(path, key, id string) []configsrc.Written {
	return []configsrc.Written{{Path: path, By: catalog.Author{Key: key, RequestID: id}}}
}

// record writes one run's variables as a line, and checks that no other run is active.
const record = `mkdir alone || exit 9
printf '%s|%s|%s\n' "$(printf %s "$FINGERPOST_PATHS" | tr '\n' ,)" "$FINGERPOST_KEYS" "$FINGERPOST_REQUEST_IDS" >>runs
`

// TestAfterWriteGathers: writes during a run go into one run after it, each word once; pending writes still run at the
// end.
func TestAfterWriteGathers(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	r := newAfterRig(t, record+`while [ ! -e go ]; do sleep 0.01; done; rmdir alone`, time.Minute)
	r.add(wrote("a.hcl", "ci", "1"))
	r.until("the first run", func() bool { return r.file("runs") != "" })
	r.add(wrote("b.hcl", "ci", "2"))
	r.add(wrote("a.hcl", "desk", "3"))
	r.add(wrote("b.hcl", "ci", "4"))
	if st := r.Status(); !st.Running || st.Pending != 4 {
		t.Errorf("while it runs: %+v", st)
	}
	r.touch("go")
	r.until("the second run", func() bool { return r.Status().Runs == 2 })
	r.add(wrote("last.hcl", "ci", "5"))
	r.finish(t.Context())
	want := "a.hcl|ci|1\nb.hcl,a.hcl|ci desk|2 3 4\nlast.hcl|ci|5\n"
	if got := r.file("runs"); got != want {
		t.Errorf("runs:\n%swant:\n%s", got, want)
	}
	if st := r.Status(); st.Runs != 3 || st.Failures != 0 || st.Pending != 0 || st.Running || st.LastRun.IsZero() || st.LastError != "" {
		t.Errorf("at the end: %+v", st)
	}
}

// TestAfterWriteFails: no write is forgotten, the reason is in the status, and the output kept is bounded.
func TestAfterWriteFails(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := newAfterRig(t, record+`rmdir alone; [ -e good ] || { head -c 100000 /dev/zero | tr '\0' x; echo the reason >&2; exit 7; }`, time.Minute)
	r.add(wrote("a.hcl", "ci", "1"))
	r.until("a failure", func() bool { return r.Status().Failures > 0 })
	st := r.Status()
	if !strings.HasPrefix(st.LastError, "exit status 7: ") || !strings.HasSuffix(st.LastError, "xthe reason") || len(st.LastError) > maxOutput+100 || st.Pending != 1 {
		t.Errorf("after a failure: %.40s … (%d bytes), %d pending", st.LastError, len(st.LastError), st.Pending)
	}
	r.add(wrote("b.hcl", "ci", "2"))
	r.touch("good")
	r.until("success", func() bool { return r.Status().Pending == 0 })
	if st := r.Status(); st.LastError != "" || st.Failures == 0 || st.Failures >= st.Runs {
		t.Errorf("after success: %.200s", fmt.Sprintf("%+v", st))
	}
	if !strings.HasSuffix(r.file("runs"), "\na.hcl,b.hcl|ci|1 2\n") {
		t.Errorf("runs:\n%s", r.file("runs"))
	}
	r.finish(t.Context())
	if log := r.log.String(); !strings.Contains(log, "the reason") || len(log) > 10*maxOutput {
		t.Errorf("log of %d bytes", len(log))
	}
}

// TestAfterWriteIsCut: a run that exceeds its time is killed with everything that it has started, even if that ignores
// the first signal.
func TestAfterWriteIsCut(t *testing.T) {
	testrig.Thorough(t)
	if testing.Short() {
		t.Skip("it waits twice for what ignores the first signal")
	}
	t.Parallel()
	command := `trap "" TERM; sleep 1000 & echo $! >child.tmp; mv child.tmp child; while :; do sleep 0.1; done`
	gone := func(r *afterRig) {
		t.Helper()
		pid, err := strconv.Atoi(strings.TrimSpace(r.file("child")))
		if err != nil {
			t.Fatal(err)
		}
		r.until("its child to end", func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return syscall.Kill(pid, 0) == syscall.ESRCH || err == nil && strings.Contains(string(stat), ") Z ")
		})
	}
	r := newAfterRig(t, command, 300*time.Millisecond)
	r.add(wrote("a.hcl", "ci", "1"))
	r.until("the end", func() bool { return r.Status().Failures > 0 })
	if st := r.Status(); !strings.Contains(st.LastError, "ended after 300ms (--after-write-timeout)") || st.Pending != 1 {
		t.Errorf("%+v", st)
	}
	gone(r)

	// The end of the grace period, or a second signal.
	r = newAfterRig(t, command, time.Hour)
	r.add(wrote("a.hcl", "ci", "1"))
	r.until("the run", func() bool { return r.file("child") != "" })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.finish(ctx)
	gone(r)
	if st := r.Status(); st.Pending != 1 || !strings.Contains(r.log.String(), "has not succeeded for the last writes") {
		t.Errorf("%+v\n%s", st, r.log.String())
	}

	r = newAfterRig(t, `sleep 1000 & echo $! >child`, time.Minute)
	r.add(wrote("a.hcl", "ci", "1"))
	r.until("the end", func() bool { return r.Status().Failures > 0 })
	if st := r.Status(); !strings.Contains(st.LastError, "left a process behind") {
		t.Errorf("%+v", st)
	}
	gone(r)
}

// TestAfterWriteVariables: text that callers choose is not in the command, and too much for one run is split.
func TestAfterWriteVariables(t *testing.T) {
	t.Parallel()
	r := newAfterRig(t, `printf '%s\n' "$FINGERPOST_PATHS" >>paths; printf %s "$FINGERPOST_REQUEST_IDS" | wc -c >>sizes; pwd >where; echo "$FINGERPOST_CONFIG" >>where`, time.Minute)
	evil := "$(touch evil)`touch evil`; touch evil #'\".hcl"
	var all []configsrc.Written
	const writes = 3000
	for i := range writes {
		all = append(all, wrote(fmt.Sprintf("%s-%d", evil, i), "ci", fmt.Sprintf("%0120d", i))...)
	}
	r.add(all)
	r.until("all runs", func() bool { return r.Status().Pending == 0 })
	r.finish(t.Context())
	if _, err := os.Stat(filepath.Join(r.dir, "evil")); err == nil {
		t.Error("a path was run")
	}
	lines := strings.Split(strings.TrimSpace(r.file("paths")), "\n")
	if len(lines) != writes || lines[writes-1] != all[writes-1].Path {
		t.Errorf("%d paths, the last is %s", len(lines), lines[len(lines)-1])
	}
	for _, size := range strings.Fields(r.file("sizes")) {
		if n, _ := strconv.Atoi(size); n == 0 || n > maxVariable {
			t.Errorf("a variable of %s bytes", size)
		}
	}
	if where := strings.Fields(r.file("where")); len(where) != 2 || where[0] != where[1] {
		t.Errorf("it ran in %v", where)
	}
}

func TestNewestOfEach(t *testing.T) {
	var all []configsrc.Written
	for i := range 9 {
		all = append(all, wrote(fmt.Sprintf("p%d", i%3), "ci", fmt.Sprint(i))...)
	}
	all = append(all, wrote("p0", "desk", "9")...)
	got := fmt.Sprint(newestOfEach(all))
	if want := "[{p0 {  ci 6 }} {p1 {  ci 7 }} {p2 {  ci 8 }} {p0 {  desk 9 }}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAfterWriteStatus(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := newRig(t, nil)
	r.halt()

	// A failing command is in the status, and fails no write.
	r.flags = []string{"--after-write", "echo no such luck; false"}
	r.start()
	if got := r.ask(http.MethodPost, "/api/platform/projects", r.keys["write"], `{"name":"Once more"}`); got.status != http.StatusCreated {
		t.Errorf("%d %s", got.status, got.body)
	}
	var st struct{ AfterWrite ops.AfterWriteStatus }
	err := poll(testrig.Patience, func() error {
		res, err := http.Get(r.ops + "/status")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&st); err != nil {
			return err
		}
		if st.AfterWrite.Failures == 0 {
			return errors.New("no failure in the status")
		}
		return nil
	})
	if err != nil || st.AfterWrite.LastError != "exit status 1: no such luck" || st.AfterWrite.Pending != 1 {
		t.Errorf("%v, %+v", err, st.AfterWrite)
	}
}
