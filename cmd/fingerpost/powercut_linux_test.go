package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fingerpost/cmd/testrig"
)

// A loopDisk is a file system in a file, ext4 or xfs, whose power can be cut: unsynced data is lost then.
type loopDisk struct {
	dir, device, kind string
}

// newLoopDisk needs root, losetup and the file system's mkfs.
func newLoopDisk(t *testing.T, kind string) *loopDisk {
	t.Helper()
	testrig.NeedRoot(t)
	testrig.Need(t, "losetup", "mkfs."+kind)
	tool := func(name string, args ...string) string {
		out, err := exec.Command(testrig.Find(name), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	d := &loopDisk{dir: filepath.Join(t.TempDir(), "disk"), kind: kind}
	image := d.dir + ".img"
	f, err := os.Create(image)
	must(t, err)
	must(t, f.Truncate(320<<20))
	must(t, f.Close())
	must(t, os.Mkdir(d.dir, 0o755))
	force := map[string]string{"ext4": "-F", "xfs": "-f"}[kind]
	tool("mkfs."+kind, "-q", force, image)
	d.device = tool("losetup", "--find", "--show", image)
	t.Cleanup(func() {
		_ = syscall.Unmount(d.dir, syscall.MNT_DETACH)
		tool("losetup", "--detach", d.device)
	})
	d.mount(t)
	return d
}

func (d *loopDisk) mount(t *testing.T) {
	t.Helper()
	must(t, syscall.Mount(d.device, d.dir, d.kind, 0, ""))
}

// cut cuts the power: from now on every access fails, and nothing more reaches the disk, including the journal.
func (d *loopDisk) cut(t *testing.T) {
	t.Helper()
	const shutdown, withoutLog = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN, their …_FLAGS_NOLOGFLUSH
	f, err := os.Open(d.dir)
	must(t, err)
	defer f.Close()
	must(t, unix.IoctlSetPointerInt(int(f.Fd()), shutdown, withoutLog))
}

// power restores it. No process may have a file of the disk open.
func (d *loopDisk) power(t *testing.T) {
	t.Helper()
	if err := poll(testrig.Patience, func() error { return syscall.Unmount(d.dir, 0) }); err != nil {
		t.Fatal("unmount: ", err)
	}
	d.mount(t)
}

// freeze stops the server: from then on it runs no instruction of its own, but system calls go on. It comes before a cut,
// because ext4 lets an fsync that the cut interrupts return without an error. After a real power cut nobody sees that.
func (r *rig) freeze() {
	r.t.Helper()
	must(r.t, r.cmd.Process.Signal(syscall.SIGSTOP))
	err := poll(testrig.Patience, func() error {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", r.pid))
		for _, name := range stats {
			stat, err := os.ReadFile(name)
			if err != nil {
				continue // the thread has ended
			}
			_, after, _ := strings.Cut(string(stat), ") ")
			if !strings.HasPrefix(after, "T") && !strings.HasPrefix(after, "D") { // stopped, or in a system call that ends first
				return fmt.Errorf("not stopped yet: %s", stat)
			}
		}
		return err
	})
	must(r.t, err)
}

// A powerCut is a server under load on disks whose power is cut.
type powerCut struct {
	kind     string // of the disk with the files
	leaveOut string // the steps that writes leave out
	// apart gives the store a disk of its own: otherwise each sync of the ledger commits the journal of the disk, and the
	// changes of the config folder with it.
	apart  bool
	git    bool // commit the writes
	hooks  bool // deliver to receivers that answer, hang, refuse and lie
	rounds int
}

// run cuts the power again and again, and returns the first problem after a cut.
func (p powerCut) run(t *testing.T) (wrong error) {
	files := newLoopDisk(t, p.kind)
	home := filepath.Join(files.dir, "home")
	disks, data := []*loopDisk{files}, filepath.Join(home, ".fingerpost")
	if p.apart {
		d := newLoopDisk(t, "ext4")
		disks, data = append(disks, d), filepath.Join(d.dir, "store")
	}
	s := newSiege(idleRig(t, home, nil))
	s.dies, s.flags = p.leaveOut, []string{"--data", data}
	check := s.check
	if p.git {
		g := newGitRig(t, s.rig)
		s.flags = append(s.flags, "--git", "--git-domain", "svc.example")
		check = func() error { return errors.Join(s.check(), g.committed()) }
	}
	var to *receivers
	if p.hooks {
		to = newReceivers(t)
		to.serve(s.rig)
	}
	syscall.Sync() // what the test has made
	s.start()
	defer func() {
		if s.running() {
			s.kill()
		}
	}()
	for round := range p.rounds {
		s.round(time.Duration(rand.IntN(60000))*time.Microsecond, func() {
			s.freeze()
			for _, d := range disks {
				d.cut(t)
			}
			s.kill()
		})
		for _, d := range disks {
			d.power(t)
		}
		s.start()
		if err := check(); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	if p.hooks {
		to.check(s.rig)
	}
	s.kill()
	s.chainsHold(data)
	testrig.Figure(t, "%d writes answered, the power was cut %d times", s.answered(), p.rounds)
	if s.answered() < p.rounds {
		t.Error("hardly a write was answered; this shows nothing")
	}
	return nil
}

// committed waits until every write is in a commit, and checks that the history has each write of the audit trail once
// and that git finds nothing broken and nothing to commit.
func (g *gitRig) committed() error {
	err := poll(testrig.Patience, func() error {
		if st := g.gitStatus(); st.Pending > 0 || st.CommitError != "" || st.IndexError != "" {
			return fmt.Errorf("not committed: %+v", st)
		}
		if out, err := testrig.TryGit(g.dir, "--no-optional-locks", "status", "--porcelain"); out != "" || err != nil {
			return fmt.Errorf("git status: %s, %w", out, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if out, err := testrig.TryGit(g.dir, "fsck", "--strict", "--no-dangling"); err != nil {
		return fmt.Errorf("git fsck: %w\n%s", err, out)
	}
	seen := map[string]int{}
	for id := range strings.FieldsSeq(g.git(g.dir, "log", "--format=%(trailers:key=Fingerpost-Request,valueonly)")) {
		seen[id]++
	}
	for id := range g.trail.seen {
		if seen[id] != 1 {
			return fmt.Errorf("the write %s is %d times in the history", id, seen[id])
		}
	}
	return nil
}

// TestPowerCut cuts the power of the disks with the files and the store, while clients write.
func TestPowerCut(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	rounds := testrig.Size(t, 100, 3)
	for name, p := range map[string]powerCut{
		"one disk":    {kind: "ext4", rounds: rounds},
		"two disks":   {kind: "ext4", apart: true, rounds: rounds},
		"git on ext4": {kind: "ext4", apart: true, git: true, rounds: rounds},
		"git on xfs":  {kind: "xfs", apart: true, git: true, rounds: rounds},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := p.run(t); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWebhooksOutliveThePower cuts the power while events go out: no receiver misses one, or is told of one that is lost.
func TestWebhooksOutliveThePower(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	p := powerCut{kind: "ext4", apart: true, hooks: true, rounds: testrig.Size(t, 100, 3)}
	if err := p.run(t); err != nil {
		t.Error(err)
	}
}

// TestPowerCutBites: without the steps that writes rely on, data is lost.
func TestPowerCutBites(t *testing.T) {
	testrig.Thorough(t)
	for _, leaveOut := range []string{"sync of the file", "sync of the folder"} {
		t.Run(leaveOut, func(t *testing.T) {
			t.Parallel()
			// Most cuts fall where nothing is lost: the test ends with the first one that does lose something.
			err := powerCut{kind: "ext4", leaveOut: leaveOut, apart: true, rounds: 300}.run(t)
			if err == nil {
				t.Fatalf("without the %s nothing was lost", leaveOut)
			}
			t.Logf("as it should be: %.300v", err)
		})
	}
}
