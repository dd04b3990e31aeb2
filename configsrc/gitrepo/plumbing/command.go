package plumbing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Limits of calls.
const (
	LocalLimit  = time.Minute // of a call that does not leave the machine
	RemoteLimit = 2 * time.Minute
	killWait    = 3 * time.Second // for a call that was told to end
	maxStderr   = 2 << 10         // bytes of an error's text
)

// A Command runs the git command in one work tree.
type Command struct {
	Dir    string
	env    []string
	config []string // -c name=value, before the subcommand
	shared *os.File // see Share
}

// passed are the variables that git gets from the service: what it needs to find programs and credentials.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "TMPDIR", "SSH_AUTH_SOCK", "SSH_ASKPASS",
	"GIT_SSH",
	"GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy",
	"no_proxy",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "KRB5CCNAME", "TZ"}

func environment() []string {
	env := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C", "GIT_PAGER=cat",
		"GIT_EDITOR=false"}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); slices.Contains(passed, name) {
			env = append(env, v)
		}
	}
	if !slices.ContainsFunc(env, func(v string) bool {
		return strings.HasPrefix(v, "GIT_SSH_COMMAND=") || strings.HasPrefix(v, "GIT_SSH=")
	}) {
		env = append(env, "GIT_SSH_COMMAND=ssh -o BatchMode=yes")
	}
	return env
}

// settings are the settings that each call gets. Hooks and fsmonitor are programs, which run only if they are asked
// for.
func settings(hooks bool) []string {
	s := []string{"core.fsync=committed,reference", "core.fsmonitor=false", "core.quotePath=false", "gc.auto=0",
		"maintenance.auto=false",
		"protocol.allow=never", "submodule.recurse=false", "fetch.recurseSubmodules=false", "commit.gpgSign=false",
		"tag.gpgSign=false",
		"push.gpgSign=false", "core.sparseCheckout=false", "advice.detachedHead=false"}
	if !hooks {
		s = append(s, "core.hooksPath="+os.DevNull)
	}
	return s
}

// A failure is a call of git that has failed.
type failure struct {
	args   []string
	code   int
	stderr string
	err    error
}

func (f *failure) Error() string {
	text := f.stderr
	if text == "" {
		text = f.err.Error()
	}
	args := f.args
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	if len(args) > 1 && args[0] == "--literal-pathspecs" {
		args = args[1:]
	}
	return "git " + args[0] + ": " + text
}

func (f *failure) Unwrap() error { return f.err }

// ExitCode returns the exit code of a failed call, -1 for other errors.
func ExitCode(err error) int {
	var f *failure
	if errors.As(err, &f) {
		return f.code
	}
	return -1
}

// NewCommand returns the command for a folder. hooks: those of the repository run.
func NewCommand(dir string, hooks bool) *Command {
	return &Command{Dir: dir, env: environment(), config: settings(hooks)}
}

// WithoutSettings returns the command as a person would call it.
func (c *Command) WithoutSettings() *Command {
	plain := *c
	plain.config = nil
	return &plain
}

// Share lets local calls inherit a file that this service has locked, so that the next process can wait for those that
// outlive this one.
func (c *Command) Share(f *os.File) { c.shared = f }

// Shared returns the file of Share, nil before.
func (c *Command) Shared() *os.File { return c.shared }

// make prepares a call in a process group of its own, so that a call that has run out of time ends with its children.
func (c *Command) make(ctx context.Context, env []string, args ...string) *exec.Cmd {
	all := make([]string, 0, 2*len(c.config)+len(args)+1)
	for _, s := range c.config {
		all = append(all, "-c", s)
	}
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...)
	cmd.Dir, cmd.Env = c.Dir, append(slices.Clone(c.env), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killWait
	return cmd
}

// Run calls git and returns what it prints.
func (c *Command) Run(ctx context.Context, args ...string) (string, error) {
	out, err := c.Call(ctx, LocalLimit, nil, nil, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// Call calls git with a time limit, further variables and an input.
func (c *Command) Call(ctx context.Context, limit time.Duration, env []string, stdin []byte, args ...string) ([]byte,
	error) {
	var out bytes.Buffer
	err := c.stream(ctx, limit, env, stdin, &out, args...)
	return out.Bytes(), err
}

// stream is call for output that is written to out, whose error ends git.
func (c *Command) stream(ctx context.Context, limit time.Duration, env []string, stdin []byte, out io.Writer,
	args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := c.make(ctx, env, args...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), out, &stderr
	if c.shared != nil && limit == LocalLimit {
		cmd.ExtraFiles = []*os.File{c.shared}
	}
	err := cmd.Run()
	if cmd.Process != nil && ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what has ignored the first signal
	}
	if err == nil {
		return nil
	}
	f := &failure{args: args, code: cmd.ProcessState.ExitCode(), stderr: Clean(stderr.String()), err: err}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.stderr = fmt.Sprintf("ended after %s without a result. %s", limit, f.stderr)
	}
	return f
}

// Clean makes one printable line of what git, or a remote, has written to stderr.
func Clean(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return r < ' ' ||
			r == 0x7f || r >= 0x80 && r < 0xa0
	}), " ")
	if len(text) > maxStderr {
		text = strings.ToValidUTF8(text[:maxStderr], "") + "…"
	}
	return text
}
