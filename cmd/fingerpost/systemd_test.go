package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
)

// A managerRig hears what systemd would hear of a unit with Type=notify.
type managerRig struct {
	t     *testing.T
	mu    sync.Mutex // guards heard
	heard []string
}

// newManager listens on a notification socket, and returns the variable that names it.
func newManager(t *testing.T) (m *managerRig, variable string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	m = &managerRig{t: t}
	go func() {
		message := make([]byte, 4096)
		for {
			n, err := conn.Read(message)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.heard = append(m.heard, string(message[:n]))
			m.mu.Unlock()
		}
	}()
	return m, "NOTIFY_SOCKET=" + socket
}

// count returns how many of the messages have a match.
func (m *managerRig) count(pattern string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, message := range m.heard {
		if regexp.MustCompile(pattern).MatchString(message) {
			n++
		}
	}
	return n
}

// wait waits until n messages have a match.
func (m *managerRig) wait(n int, pattern string) {
	m.t.Helper()
	testrig.Eventually(m.t, pattern, func() bool { return m.count(pattern) >= n })
}

// TestSystemd: a unit of Type=notify is active when /readyz says so, shows its generation, says that it reloads and that it
// stops, and is not taken for hung by a watchdog.
func TestSystemd(t *testing.T) {
	t.Parallel()
	m, socket := newManager(t)
	r := idleRig(t, t.TempDir(), nil)
	r.env = []string{socket, "WATCHDOG_USEC=20000"}
	r.start()
	m.wait(1, `(?m)^READY=1\nSTATUS=generation 1: 3 projects, 8 domains$`)
	m.wait(3, `(?m)^WATCHDOG=1$`)
	r.put("more.hcl", `project "more" { name = "More" }`)
	m.wait(1, `(?m)^STATUS=generation \d+: 4 projects`)
	r.put("more.hcl", `project "more" {`)
	m.wait(1, `(?m)^STATUS=generation \d+: 4 projects, 8 domains; the files have 1 error$`)
	testrig.Eventually(t, "the log has the condition", func() bool {
		return strings.Contains(r.logged(), `"msg":"condition","condition":"files-broken","severity":"warning","sentence":"The files have 1 error`)
	})
	must(t, os.Remove(r.path("more.hcl")))
	testrig.Eventually(t, "the log has its end", func() bool {
		return strings.Contains(r.logged(), `"msg":"condition ended","condition":"files-broken"`)
	})
	if err := r.cmd.Process.Signal(signals["HUP"]); err != nil {
		t.Fatal(err)
	}
	m.wait(1, `^RELOADING=1$`)
	m.wait(2, `(?m)^READY=1$`)
	r.halt()
	m.wait(1, `^STOPPING=1\nEXTEND_TIMEOUT_USEC=\d+$`)
}

// TestSystemdEdgeWaits: an edge without its first tree asks for more time again and again, and is not active.
func TestSystemdEdgeWaits(t *testing.T) {
	t.Parallel()
	m, socket := newManager(t)
	r := idleRig(t, t.TempDir(), nil)
	if out, code := r.run("edges", "keygen", "fra1", "--out", "fra1.nk"); code != 0 {
		t.Fatal(out)
	}
	r.env = []string{socket, "WATCHDOG_USEC=20000"}
	r.flags = []string{"--follow", "nats://127.0.0.1:1", "--edge-name", "fra1", "--edge-key", "fra1.nk"}
	r.launch()
	m.wait(5, `(?m)^STATUS=waits for a whole tree from the authority\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=\d+$`)
	// A reload ends with READY=1, which would be the answer to the start.
	if err := r.cmd.Process.Signal(signals["HUP"]); err != nil {
		t.Fatal(err)
	}
	m.wait(m.count(`EXTEND_TIMEOUT_USEC`)+20, `EXTEND_TIMEOUT_USEC`)
	r.halt()
	m.wait(1, `^STOPPING=1`)
	if n := m.count(`(?m)^(READY|RELOADING)=1`); n > 0 {
		t.Errorf("an edge without a tree has said %d times that it is ready or reloads", n)
	}
}
