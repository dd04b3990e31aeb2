package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
)

var projectTimes = regexp.MustCompile(`"createdAt":"([^"]+)","updatedAt":"([^"]+)"`)

// TestBackupOfRunningServer makes a backup while two clients write, restores it over the store of the stopped server
// and starts: everything agrees with the files, and no generation goes back.
func TestBackupOfRunningServer(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	const projects = 40
	files := map[string]string{}
	for i := range projects {
		files[fmt.Sprintf("p%d.hcl", i)] = fmt.Sprintf("project \"p%d\" {\n  name = \"P\"\n  domain \"p%d.example\" {}\n}\n", i, i)
	}
	r := newRig(t, files)
	slugs := func(i int) string { return fmt.Sprintf("/api/platform/projects/by-slug/p%d", i) }
	var created [projects]string
	var ids [projects]string
	for i := range projects {
		body := r.get(slugs(i)).body
		created[i] = projectTimes.FindStringSubmatch(body)[1]
		ids[i] = regexp.MustCompile(`"id":(\d+)`).FindStringSubmatch(body)[1]
	}
	stop, writers := make(chan struct{}), sync.WaitGroup{}
	var writes atomic.Int64
	for w := range 2 {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				i := (2*n + w) % projects
				got := r.ask(http.MethodPut, "/api/platform/projects/"+ids[i], r.keys["write"], fmt.Sprintf(`{"name":"n%d"}`, n))
				if got.status != http.StatusOK {
					t.Errorf("a write during the backup: %d %s", got.status, got.body)
					return
				}
				writes.Add(1)
			}
		})
	}
	expect := func(want int, says string, args ...string) string {
		t.Helper()
		printed, code := r.run(args...)
		if code != want || !strings.Contains(printed, says) {
			t.Errorf("%v ends with %d, want %d and %q: %s", args, code, want, says, printed)
		}
		return printed
	}
	for n := range 3 {
		expect(0, "43 projects", "backup", fmt.Sprintf("b%d.tgz", n), "--ops-url", r.ops)
	}
	expect(0, "43 projects", "backup", "b0.tgz", "--force", "--data", ".fingerpost", "--ops-url", r.ops)
	expect(1, "--force to replace it", "backup", "b0.tgz", "--ops-url", r.ops)
	busy := fmt.Sprintf("process %d", r.pid)
	expect(3, busy, "restore", "b0.tgz", "--force")
	expect(0, "can be restored", "restore", "b0.tgz", "--check")
	close(stop)
	writers.Wait()
	if writes.Load() == 0 {
		t.Fatal("nothing was written meanwhile")
	}
	other := newRig(t, nil)
	expect(3, fmt.Sprintf("of process %d: give --ops-url", other.pid), "backup", "no.tgz", "--data", ".fingerpost", "--ops-url", other.ops)

	before := r.footprint()
	var names [projects]string
	for i := range projects {
		names[i] = r.get(slugs(i)).body
	}
	r.halt()
	expect(1, "--force moves a store that is there aside", "restore", "b1.tgz")
	printed := expect(0, "the former store is in", "restore", "b1.tgz", "--force")
	aside := regexp.MustCompile(`the former store is in (\S+)`).FindStringSubmatch(printed)[1]
	if entries, err := os.ReadDir(filepath.Join(r.dir, aside)); err != nil || len(entries) == 0 {
		t.Errorf("the former store: %v", err)
	}
	r.start()
	after := r.footprint()
	for name, was := range before.files {
		if after.files[name] != was {
			t.Errorf("%s has changed", name)
		}
	}
	older := 0
	for i := range projects {
		body := r.get(slugs(i)).body
		if cutTimes(body) != cutTimes(names[i]) {
			t.Errorf("p%d: %s\nwas %s", i, body, names[i])
		}
		if got := projectTimes.FindStringSubmatch(body)[1]; got != created[i] {
			t.Errorf("p%d: created at %s, and was at %s", i, got, created[i])
		}
		if updated(body) == updated(names[i]) {
			older++
		}
	}
	if older == projects {
		t.Error("every project is as it was when the server stopped: was the backup restored?")
	}
	expect(0, "no.tgz", "backup", "no.tgz", "--ops-url", r.ops)
	if names, _ := filepath.Glob(filepath.Join(r.dir, ".fingerpost-backup-*")); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
	if info, err := os.Stat(filepath.Join(r.dir, "no.tgz")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: others can read it", info, err)
	}
}

func updated(body string) string { return projectTimes.FindStringSubmatch(body)[2] }

func cutTimes(body string) string {
	return stampOf.ReplaceAllString(projectTimes.ReplaceAllString(body, ""), "")
}

// TestRestoreKilled: a restore that is killed half-way leaves the store as it was, and the next one cleans up.
func TestRestoreKilled(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	noise := make([]byte, 200_000) // more than gzip keeps to itself
	rand.NewChaCha8([32]byte{}).Read(noise)
	r := newRig(t, map[string]string{"noise.hcl": fmt.Sprintf("# %x\n", noise)})
	if printed, code := r.run("backup", "b.tgz", "--ops-url", r.ops); code != 0 {
		t.Fatal(printed)
	}
	r.halt()
	archive, err := os.ReadFile(filepath.Join(r.dir, "b.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := r.command(t.Context(), "restore", "-", "--force")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = in.Write(archive[:len(archive)-100])
	}
	if err != nil {
		t.Fatal(err)
	}
	left := func() []string {
		names, _ := filepath.Glob(filepath.Join(r.dir, ".fingerpost.*"))
		return names
	}
	err = poll(testrig.Patience, func() error {
		if files, _ := filepath.Glob(filepath.Join(r.dir, ".fingerpost.restore-*", "store", "*")); len(files) == 0 {
			return fmt.Errorf("it has written %v", files)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(left()) != 1 {
		t.Errorf("next to the store: %v", left())
	}
	r.start()
	r.halt()
	if printed, code := r.run("restore", "b.tgz", "--check"); code != 0 || len(left()) != 0 {
		t.Errorf("%s left behind: %v", printed, left())
	}
}

// TestRestoreOfOthers: the package's store lies in a folder that the service's user may not write. A restore as that user
// says so and changes nothing; one as root gives the new store the owner of the former one.
func TestRestoreOfOthers(t *testing.T) {
	r, binary := rigOfOthers(t)
	r.start()
	if said, code := r.run("backup", "b.tgz", "--ops-url", r.ops); code != 0 {
		t.Fatal(said)
	}
	must(t, os.Chmod(filepath.Join(r.dir, "b.tgz"), 0o644))
	data := filepath.Join(r.dir, "data")
	must(t, os.Mkdir(data, 0o700))
	must(t, os.Chown(data, nobody, nobody))
	cmd := r.command(t.Context(), "restore", "b.tgz", "--data", data)
	cmd.Path = binary
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	said, err := cmd.CombinedOutput()
	if names, _ := os.ReadDir(data); err == nil || !strings.Contains(string(said), "run it as root") || len(names) > 0 {
		t.Errorf("as another user: %v\n%s", err, said)
	}
	if said, code := r.run("restore", "b.tgz", "--data", data); code != 0 {
		t.Fatal(said)
	}
	must(t, filepath.WalkDir(data, func(name string, d fs.DirEntry, err error) error {
		must(t, err)
		info, err := d.Info()
		must(t, err)
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != nobody || owner.Gid != nobody {
			t.Errorf("%s belongs to %d:%d", name, owner.Uid, owner.Gid)
		}
		return nil
	}))
}
