package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"fingerpost/cmd/fingerpost/node"
	"fingerpost/cmd/testrig"
)

func TestMain(m *testing.M) {
	testrig.Crowd()
	testscript.Main(m, map[string]func(){"fingerpost": main, "fingerpost-dies": mainThatDies})
}

// quickStories are those that "go test" runs, one of each kind, and -short the first two. The others are Thorough.
var quickStories = []string{"testdata/edit.txtar", "testdata/mail-send.txtar", "testdata/first-start.txtar", "testdata/broken.txtar",
	"testdata/backup.txtar", "testdata/events.txtar", "testdata/keys.txtar", "testdata/import-csv.txtar", "testdata/plan.txtar",
	"testdata/manners.txtar", "testdata/signals.txtar", "testdata/secrets.txtar"}

// TestStories runs the whole-program stories in testdata: the real binary, real files, real sockets. In addition to
// testscript's own commands they have
//
//	start [-name=N] [flag…]      run "fingerpost serve" on free ports until ready; $URL, $MAIL and $OPS tell where it is
//	                             with STORY_SECRET, and what $SERVER_ENV holds, in its environment
//	halt [-name=N] [SIGNAL]      end it (TERM when left out; KILL kills) and wait; its stderr is appended to serve.log
//	signal NAME                  send a signal
//	ask [-key=K] [-name=N] PATH  GET, prints "<status> <body>"
//	until PATTERN ask PATH       ask until the output matches
//	steady DURATION PATTERN ask PATH   ask for so long, every output must match
//	exits CODE PROGRAM [arg…]    run a program, which must end with this exit code
//
// PATH is a domain to resolve, or a path that begins with a slash ("ops:/…" for the ops listener). $KEY is the key
// used.
func TestStories(t *testing.T) {
	dir, files := "testdata", []string(nil)
	if !testrig.IsThorough() {
		dir, files = "", quickStories
	}
	if testing.Short() {
		files = quickStories[:2]
	}
	testscript.Run(t, testscript.Params{
		Dir: dir, Files: files,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, ".home")
			env.Setenv("HOME", home)
			env.Setenv("XDG_CONFIG_HOME", home)
			env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			env.Setenv(testrig.RaceOptions, os.Getenv(testrig.RaceOptions))
			env.Setenv("DEMO", node.DemoKey)
			env.Setenv("KEY", node.DemoKey)
			env.Values[serversKey{}] = &servers{byName: map[string]*server{}}
			env.Values[followersKey{}] = map[string]*follower{}
			env.Values[sinksKey{}] = map[string]*testrig.Sink{}
			env.Values[watchedKey{}] = map[string]*exec.Cmd{}
			return os.MkdirAll(home, 0o700)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "mount":
				return canMount(), nil
			case "thorough":
				return testrig.IsThorough(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: storyCmds(),
	})
}

func storyCmds() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	cmds := faultCmds()
	maps.Copy(cmds, followCmds())
	maps.Copy(cmds, mailCmds())
	maps.Copy(cmds, map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"start": cmdStart, "halt": cmdHalt, "signal": cmdSignal, "ask": cmdAsk, "until": cmdUntil, "steady": cmdSteady,
		"subst": cmdSubst, "save": cmdSave, "exits": cmdExits,
	})
	return cmds
}

type serversKey struct{}

type servers struct{ byName map[string]*server }

// A server is a running "fingerpost serve" of a story.
type server struct {
	cmd       *exec.Cmd
	url, ops  string
	exited    chan struct{}
	err       error
	mu        sync.Mutex // guards log and announced
	log       strings.Builder
	announced strings.Builder
}

func (s *server) announcement() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.announced.String()
}

func (s *server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *server) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// named takes -name=… and -key=… off the arguments.
func named(args []string) (name, key string, rest []string) {
	for len(args) > 0 {
		if v, ok := strings.CutPrefix(args[0], "-name="); ok {
			name, args = v, args[1:]
		} else if v, ok := strings.CutPrefix(args[0], "-key="); ok {
			key, args = v, args[1:]
		} else {
			break
		}
	}
	return name, key, args
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [arg…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, not %s", code, args[0])
	}
}

func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	name, _, args := named(args)
	all := ts.Value(serversKey{}).(*servers)
	if old := all.byName[name]; old != nil && old.running() {
		ts.Fatalf("server %q runs already", name)
	}
	s := &server{exited: make(chan struct{})}
	// A cache of the default size takes 50 ms of CPU time to close.
	flags := []string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--cache-size", "8MiB"}
	s.cmd = exec.Command(findBinary(ts), append(flags, args...)...)
	s.cmd.Dir = ts.MkAbs(".")
	s.cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "XDG_CONFIG_HOME=" + ts.Getenv("HOME"), "STORY_SECRET=" + ts.Getenv("STORY_SECRET"),
		testrig.RaceOptions + "=" + ts.Getenv(testrig.RaceOptions)}
	s.cmd.Env = append(s.cmd.Env, strings.Fields(ts.Getenv("SERVER_ENV"))...)
	s.cmd.Stderr = s
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	all.byName[name] = s
	ready := make(chan struct{})
	go s.read(out, ready)
	ts.Defer(func() {
		if s.running() {
			s.cmd.Process.Kill()
			<-s.exited
		}
		if ts.Getenv("STORY_VERBOSE") != "" {
			ts.Logf("server %q:\n%s", name, s.logged())
		}
	})
	select {
	case <-ready:
		if neg {
			ts.Fatalf("it started")
		}
	case <-s.exited:
		fmt.Fprint(ts.Stdout(), s.announcement())
		fmt.Fprint(ts.Stderr(), s.logged())
		if !neg {
			ts.Fatalf("it did not start: %v\n%s", s.err, s.logged())
		}
		return
	case <-time.After(testrig.Patience):
		ts.Fatalf("it is not ready:\n%s", s.logged())
	}
	fmt.Fprint(ts.Stdout(), s.announcement())
	prefix := ""
	if name != "" {
		prefix = strings.ToUpper(name) + "_"
	}
	ts.Setenv(prefix+"URL", s.url)
	ts.Setenv(prefix+"ADDR", strings.TrimPrefix(s.url, "http://"))
	ts.Setenv(prefix+"OPS", s.ops)
	ts.Setenv(prefix+"OPS_ADDR", strings.TrimPrefix(s.ops, "http://"))
	ts.Setenv(prefix+"MAIL", s.mailURL())
}

// read takes the announcement from stdout until the server says it is up.
func (s *server) read(out io.Reader, ready chan<- struct{}) {
	buf := make([]byte, 64<<10)
	for {
		n, err := out.Read(buf) // the announcement is one write
		whole := false
		for line := range strings.Lines(string(buf[:n])) {
			if u, ok := strings.CutPrefix(line, "listening on "); ok {
				s.url = strings.TrimSpace(u)
			}
			if u, ok := strings.CutPrefix(line, "ops on "); ok {
				s.ops, whole = strings.TrimSpace(u), true
			}
		}
		s.mu.Lock()
		s.announced.Write(buf[:n]) // after the addresses are there, before anybody is told that it is ready
		s.mu.Unlock()
		if whole {
			go func() {
				if waitReady(s.ops) == nil {
					close(ready)
				}
			}()
		}
		if err != nil {
			break
		}
	}
	s.err = s.cmd.Wait()
	close(s.exited)
}

func (s *server) running() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

func waitReady(ops string) error {
	return poll(testrig.Patience, func() error {
		res, err := http.Get(ops + "/readyz")
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return errors.New(res.Status)
		}
		return nil
	})
}

// poll tries until f succeeds, and returns its last error after the time has passed.
func poll(most time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

func findBinary(ts *testscript.TestScript) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, "fingerpost"); isFile(p) {
			return p
		}
	}
	ts.Fatalf("fingerpost is not in PATH")
	return ""
}

func isFile(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.Mode().IsRegular()
}

func theServer(ts *testscript.TestScript, name string) *server {
	s := ts.Value(serversKey{}).(*servers).byName[name]
	if s == nil {
		ts.Fatalf("no server %q was started", name)
	}
	return s
}

var signals = map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	name, _, args := named(args)
	ts.Check(theServer(ts, name).cmd.Process.Signal(signals[args[0]]))
}

func cmdHalt(ts *testscript.TestScript, neg bool, args []string) {
	name, _, args := named(args)
	s := theServer(ts, name)
	sig := syscall.SIGTERM
	if len(args) > 0 {
		sig = signals[args[0]]
	}
	ts.Check(s.cmd.Process.Signal(sig))
	select {
	case <-s.exited:
	case <-time.After(testrig.Patience):
		ts.Fatalf("it still runs 30 s after the signal:\n%s", s.logged())
	}
	if sig != syscall.SIGKILL && s.err != nil {
		ts.Fatalf("it ended with %v:\n%s", s.err, s.logged())
	}
	f, err := os.OpenFile(ts.MkAbs("serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	ts.Check(err)
	defer f.Close()
	_, err = io.WriteString(f, s.logged())
	ts.Check(err)
}

// get asks once.
func get(ts *testscript.TestScript, args []string) (string, error) {
	name, key, args := named(args)
	if len(args) != 1 {
		ts.Fatalf("ask takes one domain or path")
	}
	s := theServer(ts, name)
	at := s.url + args[0]
	switch {
	case strings.HasPrefix(args[0], "/api/mail"):
		at = s.mailURL() + args[0]
	case strings.HasPrefix(args[0], "ops:"):
		at = s.ops + strings.TrimPrefix(args[0], "ops:")
	case !strings.HasPrefix(args[0], "/"):
		at = s.url + "/api/platform/projects/resolve?domain=" + url.QueryEscape(args[0])
	}
	req, err := http.NewRequest(http.MethodGet, at, nil)
	if err != nil {
		return "", err
	}
	if key == "" {
		key = ts.Getenv("KEY")
	}
	switch {
	case key == "none":
	case strings.HasPrefix(args[0], "/api/mail"):
		signMail(req, key)
	default:
		req.Header.Set("X-PLATFORM-KEY", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return fmt.Sprintf("%d %s\n", res.StatusCode, body), err
}

func cmdAsk(ts *testscript.TestScript, neg bool, args []string) {
	out, err := get(ts, args)
	ts.Check(err)
	fmt.Fprint(ts.Stdout(), out)
}

func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 || args[1] != "ask" {
		ts.Fatalf("usage: until PATTERN ask PATH")
	}
	want := regexp.MustCompile(args[0])
	var last string
	err := poll(testrig.Patience, func() (err error) {
		if last, err = get(ts, args[2:]); err != nil {
			return err
		}
		if !want.MatchString(last) {
			return fmt.Errorf("no match for %s in %s", args[0], last)
		}
		return nil
	})
	if err != nil {
		ts.Fatalf("%v", err)
	}
	fmt.Fprint(ts.Stdout(), last)
}

func cmdSteady(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 4 || args[2] != "ask" {
		ts.Fatalf("usage: steady DURATION PATTERN ask PATH")
	}
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	want := regexp.MustCompile(args[1])
	tick := time.NewTicker(2 * time.Millisecond) // the machine has other work to do, too
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
		out, err := get(ts, args[3:])
		ts.Check(err)
		if !want.MatchString(out) {
			ts.Fatalf("no match for %s in %s", args[1], out)
		}
	}
}

// cmdSubst replaces text in a file as an editor would: subst FILE OLD NEW, where \n in NEW is a line end.
func cmdSubst(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: subst FILE OLD NEW")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	if !strings.Contains(string(b), args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(string(b), args[1], strings.ReplaceAll(args[2], `\n`, "\n"))), 0o644))
}

// cmdSave keeps the first group of a pattern in the last output as a variable: save NAME PATTERN.
func cmdSave(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: save NAME PATTERN")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("no match for %s in %s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], m[len(m)-1])
}
