package main

import (
	"fingerpost/cmd/testrig"
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
)

// A loopDisk is an ext4 file system in a file whose power can be cut: unsynced data is lost then.
type loopDisk struct {
	dir, device string
}

// newLoopDisk needs root, losetup and mkfs.ext4.
func newLoopDisk(t *testing.T) *loopDisk {
	t.Helper()
	testrig.NeedRoot(t)
	testrig.Need(t, "losetup", "mkfs.ext4")
	tool := func(name string, args ...string) string {
		out, err := exec.Command(testrig.Find(name), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	d := &loopDisk{dir: filepath.Join(t.TempDir(), "disk")}
	image := d.dir + ".img"
	f, err := os.Create(image)
	must(t, err)
	must(t, f.Truncate(256<<20))
	must(t, f.Close())
	must(t, os.Mkdir(d.dir, 0o755))
	tool("mkfs.ext4", "-q", "-F", image)
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
	must(t, syscall.Mount(d.device, d.dir, "ext4", 0, ""))
}

// cut cuts the power: from now on every access fails, and nothing more reaches the disk, including the journal.
func (d *loopDisk) cut(t *testing.T) {
	t.Helper()
	const shutdown, withoutLog = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH
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

// cutRounds cuts the power of a server under load n times, and returns the first problem after a cut. The store has a
// disk of its own if apart is set: otherwise each sync of the ledger commits the journal of the disk, and the changes of
// the config folder with it.
func cutRounds(t *testing.T, leaveOut string, apart bool, n int) (wrong error) {
	files := newLoopDisk(t)
	home := filepath.Join(files.dir, "home")
	disks, data := []*loopDisk{files}, filepath.Join(home, ".fingerpost")
	if apart {
		d := newLoopDisk(t)
		disks, data = append(disks, d), filepath.Join(d.dir, "store")
	}
	s := newSiege(idleRig(t, home, nil))
	syscall.Sync() // what the test has made
	s.dies, s.flags = leaveOut, []string{"--data", data}
	s.start()
	defer func() {
		if s.running() {
			s.kill()
		}
	}()
	for round := range n {
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
		if err := s.check(); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	s.kill()
	s.chainsHold(data)
	testrig.Figure(t, "%d writes answered, the power was cut %d times", s.answered(), n)
	if s.answered() < n {
		t.Error("hardly a write was answered; this shows nothing")
	}
	return nil
}

// TestPowerCut cuts the power of the disks with the files and the store, while clients write.
func TestPowerCut(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for name, apart := range map[string]bool{"one disk": false, "two disks": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := cutRounds(t, "", apart, testrig.Size(t, 75, 3)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPowerCutBites: without the steps that writes rely on, data is lost.
func TestPowerCutBites(t *testing.T) {
	testrig.Thorough(t)
	for _, leaveOut := range []string{"sync of the file", "sync of the folder"} {
		t.Run(leaveOut, func(t *testing.T) {
			t.Parallel()
			// Most cuts fall where nothing is lost: the test ends with the first one that does lose something.
			err := cutRounds(t, leaveOut, true, 300)
			if err == nil {
				t.Fatalf("without the %s nothing was lost", leaveOut)
			}
			t.Logf("as it should be: %.300v", err)
		})
	}
}
