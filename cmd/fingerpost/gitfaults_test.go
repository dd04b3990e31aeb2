package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// gitOnADisk returns a clone whose .git is a file system of 4 MiB of its own, at disk.
func gitOnADisk(t *testing.T) (r *rig, g *gitRig, disk string) {
	t.Helper()
	testrig.Need(t, "git")
	if !canMount() {
		t.Skip("needs root, to mount a small file system")
	}
	r = idleRig(t, t.TempDir(), nil)
	disk = filepath.Join(r.dir, ".git")
	must(t, os.Mkdir(disk, 0o755))
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatalf("mount a tmpfs, which needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	return r, newGitRig(t, r), disk
}

// TestGitDiskFull: while the disk of .git is full, writes are answered as --git-ack says and are live, and /status tells
// why they have no commit. A process that is killed meanwhile loses none. Once there is room, each is committed, once.
func TestGitDiskFull(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r, g, disk := gitOnADisk(t)
	r.flags = []string{"--git", "--git-domain", "svc.example"}
	r.start()
	filler := filepath.Join(disk, "filler")
	for size := 1 << 20; size > 0; size /= 2 { // up to the last byte
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		must(t, err)
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		must(t, f.Close())
	}
	g.create("While full", "full-1")
	g.untilGit("the status says why", func(st gitrepo.Status) bool {
		return st.Pending == 1 && strings.Contains(st.CommitError, "No space left")
	})
	if got := r.get("/api/platform/projects/by-slug/while-full"); got.status != http.StatusOK {
		t.Errorf("the write is not live: %d %s", got.status, got.body)
	}
	must(t, r.cmd.Process.Kill())
	<-r.exited
	r.flags = append(r.flags, "--git-ack", "commit", "--git-ack-timeout", "200ms")
	r.start()
	if got := g.create("Waits for its commit", "full-2"); got.header.Get("X-Commit") != "" {
		t.Errorf("the answer names the commit %s, which cannot be made", got.header.Get("X-Commit"))
	}
	g.untilGit("both wait", func(st gitrepo.Status) bool { return st.Pending == 2 && st.CommitError != "" })
	must(t, os.Remove(filler))
	g.untilGit("both are committed", func(st gitrepo.Status) bool { return st.Pending == 0 && st.CommitError == "" })
	g.whole("full-1", "full-2")
}

// TestGitReadOnly: on a file system that is read-only, the service starts and answers, and says that nothing is committed.
// Once the file system can be written, all is committed.
func TestGitReadOnly(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r, g, disk := gitOnADisk(t)
	must(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	r.flags = []string{"--git", "--git-domain", "svc.example", "--git-push", "--git-pull", "1h"}
	r.start()
	r.resolves("shop.acme.example")
	g.create("While read-only", "read-only-1")
	g.untilGit("the status says why", func(st gitrepo.Status) bool {
		return st.Pending == 1 && strings.Contains(st.CommitError, "read-only file system")
	})
	must(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT, ""))
	g.untilGit("it is committed", func(st gitrepo.Status) bool { return st.Pending == 0 && st.CommitError == "" })
	g.whole("read-only-1")
}

// TestGitLockStays: while the service cannot remove its lock on git's index, /status says so, and writes are told to try
// again. Once it can, the lock goes by itself, and what was answered is committed.
func TestGitLockStays(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "git", "strace")
	r := idleRig(t, t.TempDir(), nil)
	g := newGitRig(t, r)
	r.flags = []string{"--git", "--git-domain", "svc.example"}
	r.start()
	lock := filepath.Join(r.dir, ".git", "index.lock")
	x := r.inject("unlinkat:error=EIO", lock)
	g.create("Locks", "lock-1")
	g.untilGit("the status says why", func(st gitrepo.Status) bool {
		return st.Pending == 0 && strings.Contains(st.LockError, "input/output error") && strings.Contains(st.LockError, "index.lock")
	})
	if got := r.ask(http.MethodPost, "/api/platform/projects", r.keys["write"], `{"name":"Refused"}`); got.status != http.StatusServiceUnavailable {
		t.Errorf("while the lock is there: %d %s", got.status, got.body)
	}
	x.end()
	g.untilGit("the lock is gone", func(st gitrepo.Status) bool { return st.LockError == "" })
	if _, err := os.Lstat(lock); !os.IsNotExist(err) {
		t.Errorf("the lock is still there: %v", err)
	}
	g.create("Works again", "lock-2")
	g.untilGit("it is committed", func(st gitrepo.Status) bool { return st.Pending == 0 && st.Commits == 2 })
	g.whole("lock-1", "lock-2")
}

// TestGitBadRemotes: a remote that never answers, and one that answers nonsense, delay no write and no commit. /status
// tells of them in printable text, and the service ends in time. Once the remote is a good one again, all is pushed.
func TestGitBadRemotes(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "git")
	r := idleRig(t, t.TempDir(), nil)
	g := newGitRig(t, r)
	var silentAsked atomic.Int64
	silent := listening(t, func(net.Conn) { silentAsked.Add(1) })
	garbage := listening(t, func(c net.Conn) {
		fmt.Fprintf(c, "\x1b[31mnonsense\x00\xff\xfe\r\n")
		c.Close()
	})
	r.flags = []string{"--git", "--git-push", "--git-pull", "1h", "--git-ack", "push", "--git-ack-timeout", "300ms"}
	// The push waits 300 ms for a remote that is no good, and on a busy machine the commit takes longer than that.
	committed := func(got reply) {
		t.Helper()
		commit := got.header.Get("X-Commit")
		if got.header.Get("X-Git-Pushed") != "false" || commit != "" && commit != g.git(r.dir, "rev-parse", "HEAD") {
			t.Errorf("answered with %v, HEAD is %s", got.header, g.git(r.dir, "rev-parse", "HEAD"))
		}
		g.untilGit("it is committed", func(st gitrepo.Status) bool { return st.Pending == 0 })
	}

	g.git(r.dir, "remote", "set-url", "origin", "git://"+silent+"/remote.git")
	r.start()
	must(t, poll(testrig.Patience, func() error {
		if silentAsked.Load() == 0 {
			return fmt.Errorf("nobody asks the remote: %+v", g.gitStatus())
		}
		return nil
	}))
	committed(g.create("Silent", "silent"))
	r.halt() // in the middle of the call, which has no end

	g.git(r.dir, "remote", "set-url", "origin", "git://"+garbage+"/remote.git")
	r.start()
	st := g.untilGit("the status tells of the remote", func(st gitrepo.Status) bool { return st.SyncError != "" })
	if strings.ContainsFunc(st.SyncError, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		t.Errorf("control characters in %q", st.SyncError)
	}
	committed(g.create("Garbage", "garbage"))

	g.git(r.dir, "remote", "set-url", "origin", g.remote)
	if res, err := r.client.Post(r.ops+"/hooks/git", "", nil); err != nil || res.StatusCode != http.StatusAccepted {
		t.Errorf("%v, %v", res, err)
	}
	g.untilGit("all is pushed", func(st gitrepo.Status) bool { return st.SyncError == "" && st.Ahead == 0 && st.Pushes > 0 })
	if head, there := g.git(r.dir, "rev-parse", "HEAD"), g.git(g.remote, "rev-parse", "main"); head != there {
		t.Errorf("HEAD is %s, the remote has %s", head, there)
	}
	g.whole("silent", "garbage")
}

// listening accepts connections until the end of the test, and gives each to f.
func listening(t *testing.T, f func(c net.Conn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var open []net.Conn
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			open = append(open, c)
			f(c)
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-ended
		for _, c := range open {
			c.Close()
		}
	})
	return ln.Addr().String()
}
