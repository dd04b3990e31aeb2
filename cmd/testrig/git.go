package testrig

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Person is who works with git in the tests.
const Person = "Pat <pat@people.example>"

// GitCommand is a git command of Person in a folder, without the settings of who runs the test.
func GitCommand(folder string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = folder
	name, email, _ := strings.Cut(strings.TrimSuffix(Person, ">"), " <")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true", "LC_ALL=C",
		"GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+email, "GIT_COMMITTER_NAME="+name, "GIT_COMMITTER_EMAIL="+email)
	return cmd
}

// TryGit runs GitCommand. It returns what git printed, to stdout and stderr, without the newline at the end.
func TryGit(folder string, args ...string) (string, error) {
	out, err := GitCommand(folder, args...).CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

// Git is TryGit for a command that must succeed.
func Git(t testing.TB, folder string, args ...string) string {
	t.Helper()
	out, err := TryGit(folder, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// PatientGit is Git for a command that may meet somebody else's lock: it tries again, as a person does.
func PatientGit(t testing.TB, folder string, args ...string) string {
	t.Helper()
	for until := time.Now().Add(Patience); ; <-time.After(10 * time.Millisecond) {
		out, err := TryGit(folder, args...)
		if err == nil {
			return out
		}
		if !strings.Contains(out, ".lock") || time.Now().After(until) {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
