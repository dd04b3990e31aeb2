package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"fingerpost/cmd/testrig"
)

type sinksKey struct{}

// mailCmds are
//
//	sink up [-name=N] [USER PASSWORD]      an SMTP server on $SINK (a port, which stays); with AUTH where a user is given
//	sink down [-name=N]                    close it
//	inbox [-name=N] PATTERN                wait until a mail that it took matches, and print all such
//	post [-key=K] [-name=N] PATH BODY [HEADER…]
//	                                       POST to the mail API; prints "<status> <body>", and what stands in the headers that
//	                                       tell of the mail, one a line
//	watch STREAM ARG…                      run fingerpost with the arguments; heard shows what it prints
//	unwatch STREAM                         interrupt it, and wait for its end, which must be a good one
func mailCmds() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"sink": cmdSink, "inbox": cmdInbox, "post": cmdPost, "watch": cmdWatch, "unwatch": cmdUnwatch,
	}
}

func cmdSink(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || args[0] != "up" && args[0] != "down" {
		ts.Fatalf("usage: sink up|down [-name=N] [USER PASSWORD]")
	}
	what := args[0]
	name, _, args := named(args[1:])
	all := ts.Value(sinksKey{}).(map[string]*testrig.Sink)
	s := all[name]
	if what == "down" {
		s.Down()
		return
	}
	if s == nil {
		s = &testrig.Sink{}
		all[name] = s
		ts.Defer(s.Down)
	}
	if len(args) == 2 {
		s.Set(func(r *testrig.SinkRules) { r.User, r.Password = args[0], args[1] })
	}
	ts.Check(s.Up())
	prefix := ""
	if name != "" {
		prefix = strings.ToUpper(name) + "_"
	}
	ts.Setenv(prefix+"SINK", fmt.Sprint(s.Port()))
}

func cmdInbox(ts *testscript.TestScript, neg bool, args []string) {
	name, _, args := named(args)
	if len(args) != 1 {
		ts.Fatalf("usage: inbox PATTERN")
	}
	s, want := ts.Value(sinksKey{}).(map[string]*testrig.Sink)[name], regexp.MustCompile(args[0])
	matching := func() (found []testrig.Letter) {
		for _, l := range s.Letters() {
			if want.MatchString(l.Text) {
				found = append(found, l)
			}
		}
		return found
	}
	if neg {
		if found := matching(); len(found) > 0 {
			ts.Fatalf("%d mails match, such as\n%s", len(found), found[0].Text)
		}
		return
	}
	err := poll(testrig.Patience, func() error {
		if len(matching()) == 0 {
			return fmt.Errorf("no mail of %d matches %s", len(s.Letters()), args[0])
		}
		return nil
	})
	if err != nil {
		ts.Fatalf("%v", err)
	}
	for _, l := range matching() {
		fmt.Fprintf(ts.Stdout(), "from <%s> to <%s>\n%s\n", l.From, l.To, strings.ReplaceAll(l.Text, "\r\n", "\n"))
	}
}

// tellingHeaders are the response headers that post prints.
var tellingHeaders = []string{"Location", "Idempotent-Replay", "Retry-After"}

func cmdPost(ts *testscript.TestScript, neg bool, args []string) {
	name, key, args := named(args)
	if len(args) < 2 {
		ts.Fatalf("usage: post PATH BODY [HEADER…]")
	}
	req, err := http.NewRequest(http.MethodPost, theServer(ts, name).mailURL()+args[0], strings.NewReader(args[1]))
	ts.Check(err)
	if key == "" {
		key = ts.Getenv("KEY")
	}
	signMail(req, key)
	for _, line := range args[2:] {
		name, value, _ := strings.Cut(line, ":")
		req.Header.Set(name, strings.TrimSpace(value))
	}
	res, err := (&http.Client{Timeout: testrig.Patience}).Do(req)
	ts.Check(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d %s\n", res.StatusCode, body)
	for _, name := range tellingHeaders {
		if v := res.Header.Get(name); v != "" {
			fmt.Fprintf(ts.Stdout(), "%s: %s\n", name, v)
		}
	}
}

// Write makes a follower what a command prints to.
func (f *follower) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard.Write(p)
}

type watchedKey struct{}

func cmdWatch(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: watch STREAM ARG…")
	}
	f := &follower{}
	cmd := exec.Command(findBinary(ts), args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "FINGERPOST_KEY=" + ts.Getenv("KEY")}
	cmd.Stdout, cmd.Stderr = f, f
	ts.Check(cmd.Start())
	ts.Value(followersKey{}).(map[string]*follower)[args[0]] = f
	ts.Value(watchedKey{}).(map[string]*exec.Cmd)[args[0]] = cmd
	ts.Defer(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
}

func cmdUnwatch(ts *testscript.TestScript, neg bool, args []string) {
	cmd := ts.Value(watchedKey{}).(map[string]*exec.Cmd)[args[0]]
	ts.Check(cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		heard, _ := theFollower(ts, args[0]).state()
		ts.Fatalf("it ended with %v:\n%s", err, heard)
	}
}

// signMail gives a request the mail service's headers.
func signMail(req *http.Request, key string) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Internal-Service-Token", key)
	req.Header.Set("X-Internal-Service-Name", "story")
}

// mailURL is where the mail API is.
func (s *server) mailURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := mailLine.FindStringSubmatch(s.announced.String()); m != nil {
		return m[1]
	}
	return s.url
}

var mailLine = regexp.MustCompile(`(?m)^mail API on (\S+)$`)
