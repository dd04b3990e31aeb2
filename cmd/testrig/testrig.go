// Package testrig is what the tests of several rooms share: waiting for a condition, the size of a campaign, the tools
// that a test needs, an SMTP server that keeps its mail, git as a person runs it. Only tests import it; the import plan
// in cmd/fingerpost/house_test.go says so.
//
// Two environment variables decide how much a run proves:
//
//	FINGERPOST_FULL=1              campaigns have their full size, which .ci/campaign sets; without it they are small
//	FINGERPOST_NEED=git,strace     a test that lacks one of these tools fails instead of being skipped; "all" names every
//	                               tool, which both scripts of .ci set; "none" hides every tool but git, and root's
//	                               rights: a test sees a machine with nothing but Go and git
//
// With FINGERPOST_NEED=all those tests run, too, that take seconds of servers and disks, see Thorough. With -short,
// campaigns and whole programs are left out.
//
// Nothing here measures time: Patience is long because machines are slow and busy, and a test that reaches it has
// failed.
package testrig

import (
	"flag"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// Patience is how long a test waits for what must come.
const Patience = 3 * time.Minute

// Main is the TestMain of packages whose tests mostly wait for disks, sockets, processes and clocks: it runs more of
// them at once than there are cores. Campaigns of full size need the cores, and run two at a time.
func Main(m *testing.M) {
	Crowd()
	m.Run()
}

// RaceOptions is the environment variable with the race detector's options. A test that gives a process an environment
// of its own passes it on.
const RaceOptions = "GORACE"

// Crowd is the part of Main before the tests run, for packages with a TestMain of their own.
func Crowd() {
	debug.SetGCPercent(400) // tests make much garbage and little heap
	if os.Getenv(RaceOptions) == "" {
		// The race detector sleeps a second at the end of every process, for reports of other threads. A story ends dozens.
		_ = os.Setenv(RaceOptions, "atexit_sleep_ms=10")
	}
	if !Full() {
		_ = flag.Set("test.parallel", "6")
	}
}

// Full reports whether campaigns have their full size.
func Full() bool { return os.Getenv("FINGERPOST_FULL") != "" }

// Size returns the size of a campaign: full in .ci/campaign, small elsewhere. With -short it skips the test.
func Size[T any](t testing.TB, full, small T) T {
	t.Helper()
	Slow(t)
	if Full() {
		return full
	}
	return small
}

// Part returns n in .ci/run and .ci/campaign, and a fifth of it in "go test": the size of a repetition of which each round
// proves the same.
func Part(n int) int {
	if IsThorough() {
		return n
	}
	return max(1, n/5)
}

// Slow skips the test with -short. It is for tests of more than a third of a second on a quiet machine.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: it takes long")
	}
}

// Thorough skips a test that .ci/run and .ci/campaign run, and that "go test" leaves out: it takes seconds of servers
// and disks, and a smaller test of the same promise is not left out. FINGERPOST_NEED=all runs it.
func Thorough(t testing.TB) {
	t.Helper()
	Slow(t)
	if !IsThorough() {
		t.Skip("left to .ci/run: FINGERPOST_NEED=all runs it")
	}
}

// IsThorough reports whether the tests run that Thorough skips.
func IsThorough() bool { return Full() || Compulsory("all") }

// Campaign skips a test that only .ci/campaign runs, because it proves nothing in a small form.
func Campaign(t testing.TB) {
	t.Helper()
	if !Full() {
		t.Skip("left to .ci/campaign, which sets FINGERPOST_FULL=1")
	}
}

// AtMost fails a campaign in which something took longer than it may. Elsewhere the machine may be busy, and nothing is
// judged: that the thing ends at all is for the test to check.
func AtMost(t testing.TB, took, limit time.Duration) {
	t.Helper()
	if took > limit && Full() {
		t.Errorf("it took %v, more than %v", took, limit)
	}
}

// Figure logs what a campaign has counted or measured. The table of .ci/campaign shows it.
func Figure(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Logf("campaign: "+format, args...)
}

// Eventually waits for a condition that something else brings about. It asks again after a tenth of the time that it has
// waited, and at least each 20 ms, so that a long wait leaves the processors to what it waits for.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); {
		waited := time.Since(began)
		if waited > Patience {
			t.Fatalf("waited %v, and it is still not so: %s", Patience, what)
		}
		<-time.After(min(max(waited/10, 2*time.Millisecond), 20*time.Millisecond))
	}
}

// Need returns the paths of programs. A test that lacks one is skipped, and fails if FINGERPOST_NEED names the program.
func Need(t testing.TB, programs ...string) []string {
	t.Helper()
	var paths []string
	for _, name := range programs {
		path := Find(name)
		if path == "" {
			Missing(t, name, "the program "+name)
		}
		paths = append(paths, path)
	}
	return paths
}

// Find returns the path of a program, or "". Servers are in /usr/sbin, which not everybody has in PATH.
func Find(program string) string {
	if hidden() && program != "git" {
		return ""
	}
	for _, name := range []string{program, "/usr/sbin/" + program, "/sbin/" + program} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// NodePackages returns the folder of the npm packages of .ci/npm, in whose node_modules they are, and the path of Node. It
// skips a test as Need does: FINGERPOST_NPM names the folder, which both scripts of .ci set.
func NodePackages(t testing.TB) (folder, node string) {
	t.Helper()
	node = Need(t, "node")[0]
	if folder = os.Getenv("FINGERPOST_NPM"); folder == "" {
		Missing(t, "npm", "FINGERPOST_NPM with the folder of the packages of .ci/npm")
	}
	return folder, node
}

// NeedRoot is Need for the rights of root: to mount disks and to change users.
func NeedRoot(t testing.TB) {
	t.Helper()
	if !IsRoot() {
		Missing(t, "root", "the rights of root")
	}
}

// IsRoot reports whether tests may use the rights of root.
func IsRoot() bool { return os.Geteuid() == 0 && !hidden() }

// Missing skips a test that lacks a tool, or fails it where FINGERPOST_NEED names the tool.
func Missing(t testing.TB, tool, what string) {
	t.Helper()
	if Compulsory(tool) {
		t.Fatalf("FINGERPOST_NEED names %s, and this machine does not have %s", tool, what)
	}
	t.Skipf("needs %s", what)
}

// Compulsory reports whether FINGERPOST_NEED names a tool.
func Compulsory(tool string) bool {
	needs := strings.Split(os.Getenv("FINGERPOST_NEED"), ",")
	return slices.Contains(needs, tool) || slices.Contains(needs, "all")
}

// hidden reports whether FINGERPOST_NEED hides the machine's tools.
func hidden() bool { return os.Getenv("FINGERPOST_NEED") == "none" }
