package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A rig is the real binary on a folder of its own, used only from outside: over sockets, files and exit codes.
type rig struct {
	*server
	t       testing.TB
	dir     string            // the working folder; its projects.d is served
	keys    map[string]string // by name: the key's text
	pid     int
	flags   []string     // of serve, in addition to the addresses
	umask   string       // of every command; "": the test's
	sockets []*os.File   // that serve inherits as from a service manager, instead of an address; nil: none
	names   string       // of the sockets, LISTEN_FDNAMES
	env     []string     // more variables of every command
	dies    string       // where the server is to die or what it is to leave out, see mainThatDies; "": nowhere, nothing
	client  *http.Client // of send: connections of its own
	from    string       // the address that requests come from, since failed keys are throttled by address
	trail   *auditReplay // of the writes of send
}

// A reply is one answer of the server.
type reply struct {
	status int
	header http.Header
	body   string
}

// rigFiles are served by every rig, in addition to its keys.
var rigFiles = map[string]string{
	"acme.hcl": `project "acme" {
  name   = "Acme Shop"
  status = "ACTIVE"
  domain "shop.acme.example" { primary = true }
  domain "*.acme.example" {}
  domain "old.acme.example" { active = false }
  domain "bücher.example" {}
  domain "under_score.example" {}
  auth_settings { jwt_secret = env("STORY_SECRET") }
}
`,
	"other.hcl": `project "other" {
  name = "Other"
  domain "other.example" {}
  domain "localhost" {}
}
`,
	"gone.hcl": `project "gone" {
  name   = "Gone"
  status = "SUSPENDED"
  domain "gone.example" {}
}
`,
}

// rigKeys are what the keys of a rig may do; "ghost" is well-formed and never declared.
var rigKeys = map[string]string{
	"all":     `allow = ["resolve", "read"]`,
	"resolve": `allow = ["resolve"]`,
	"read":    `allow = ["read"]`,
	"mail":    `allow = ["mail"]`,
	"write":   `allow = ["write"]`,
	"acme":    "allow = [\"resolve\", \"read\"]\n  projects = [\"acme\"]",
	"expired": "allow = [\"resolve\", \"read\"]\n  expires_at = \"2020-01-01T00:00:00\"",
	"revoked": `allow = ["resolve", "read"]`,
}

// newRig starts a server on rigFiles and more, where a file of more wins over one of the same name.
func newRig(t testing.TB, more map[string]string) *rig {
	t.Helper()
	r := idleRig(t, t.TempDir(), more)
	r.start()
	return r
}

// idleRig is a rig that does not run yet, with its folder in dir. With -short it skips the test.
func idleRig(t testing.TB, dir string, more map[string]string) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs the whole program, which -short leaves to a few stories")
	}
	r := &rig{t: t, dir: dir, keys: map[string]string{}, from: "127.0.0.1", trail: new(auditReplay),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}, Timeout: testrig.Patience}}
	files := maps.Clone(rigFiles)
	maps.Copy(files, more)
	for name, rights := range rigKeys {
		text, id := catalog.NewKeyText()
		r.keys[name] = text
		files["key-"+name+".hcl"] = fmt.Sprintf("key %q {\n  id = %q\n  hash = %q\n  %s\n}\n", name, id, catalog.HashKeyText(text), rights)
	}
	r.keys["ghost"], _ = catalog.NewKeyText()
	for name, text := range files {
		r.put(name, text)
	}
	t.Cleanup(func() {
		if r.server == nil {
			return
		}
		if r.running() {
			r.halt()
		}
		if t.Failed() {
			t.Logf("the server's log:\n%s", cutMiddle(r.logged(), 4000))
		}
	})
	return r
}

func cutMiddle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most/2] + "\n…\n" + s[len(s)-most/2:]
}

// command is a call of the binary, without the settings of the user who runs the test.
func (r *rig) command(ctx context.Context, args ...string) *exec.Cmd {
	name := "fingerpost"
	if r.dies != "" {
		name = "fingerpost-dies"
	}
	binary, err := exec.LookPath(name) // testscript.Main has put it there
	if err != nil {
		r.t.Fatal(err)
	}
	if r.umask != "" {
		args = append([]string{"-c", "umask " + r.umask + `; exec "$0" "$@"`, binary}, args...)
		binary = "/bin/sh"
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = r.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "XDG_CONFIG_HOME=" + r.dir, "STORY_SECRET=s3cret",
		"DIES=" + r.dies, testrig.RaceOptions + "=" + os.Getenv(testrig.RaceOptions)}, r.env...)
	return cmd
}

func (r *rig) start() {
	r.t.Helper()
	ready := r.launch()
	select {
	case <-ready:
	case <-r.exited:
		r.t.Fatalf("it did not start: %v\n%s", r.err, r.logged())
	case <-time.After(testrig.Patience):
		r.t.Fatalf("it is not ready:\n%s", r.logged())
	}
}

// launch is start without the wait: ready is closed once it is ready.
func (r *rig) launch() (ready chan struct{}) {
	r.t.Helper()
	r.server = &server{exited: make(chan struct{})}
	// A cache of the default size takes 50 ms of CPU time to close.
	args := []string{"serve", "--cache-size", "8MiB"}
	for name, flag := range map[string]string{"main": "--listen", "ops": "--ops-listen"} {
		if !slices.Contains(strings.Split(r.names, ":"), name) {
			args = append(args, flag, "127.0.0.1:0")
		}
	}
	r.cmd = r.command(context.Background(), append(args, r.flags...)...)
	r.inherit(r.cmd)
	r.cmd.Stderr = r.server
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.pid = r.cmd.Process.Pid
	ready = make(chan struct{})
	go r.server.read(out, ready)
	return ready
}

// inherit makes a command get the rig's sockets, as sd_listen_fds(3) has it.
func (r *rig) inherit(cmd *exec.Cmd) {
	if r.sockets == nil {
		return
	}
	cmd.ExtraFiles = r.sockets
	cmd.Args = append([]string{"/bin/sh", "-c", `export LISTEN_PID=$$; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.Env = append(cmd.Env, fmt.Sprint("LISTEN_FDS=", len(r.sockets)), "LISTEN_FDNAMES="+r.names)
}

// halt ends it as an operator would.
func (r *rig) halt() {
	r.t.Helper()
	if err := r.cmd.Process.Signal(signals["TERM"]); err != nil {
		r.t.Error(err)
	}
	select {
	case <-r.exited:
	case <-time.After(testrig.Patience):
		_ = r.cmd.Process.Kill()
		<-r.exited
		r.t.Error("it still ran 30 s after SIGTERM")
	}
	if r.err != nil {
		r.t.Errorf("it ended with %v", r.err)
	}
}

// run runs another command of the binary in the rig's folder.
func (r *rig) run(args ...string) (printed string, code int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := r.command(ctx, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, "projects.d", name) }

func (r *rig) put(name, text string) {
	r.t.Helper()
	err := os.MkdirAll(filepath.Dir(r.path(name)), 0o755)
	part := r.path(name) + ".part" // in one piece: half of a file may be a good one
	if err == nil {
		err = os.WriteFile(part, []byte(text), 0o644)
	}
	if err == nil {
		err = os.Rename(part, r.path(name))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// dial connects from the rig's current address.
func (r *rig) dial() net.Conn {
	r.t.Helper()
	d := net.Dialer{Timeout: testrig.Patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(r.from)}}
	c, err := d.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err == nil {
		err = c.SetDeadline(time.Now().Add(testrig.Patience))
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// wire sends bytes unchanged, and returns every answer up to the end of the connection. The first one answers method.
func (r *rig) wire(method, text string) []reply {
	r.t.Helper()
	c := r.dial()
	defer c.Close()
	go func() { _, _ = io.WriteString(c, text) }() // a refused body need not be taken up whole
	var all []reply
	for in := bufio.NewReader(c); ; method = http.MethodGet {
		res, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				r.t.Errorf("%.200q: the connection stays open after %d answers", text, len(all))
			} else if len(all) == 0 {
				r.t.Errorf("%.200q: no answer: %v", text, err)
			}
			return all
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			r.t.Errorf("%.200q: the answer's body: %v", text, err)
		}
		all = append(all, reply{res.StatusCode, res.Header, string(body)})
	}
}

// ask sends one request with an unchanged target and header lines, and expects exactly one answer.
func (r *rig) ask(method, target, key, body string, headers ...string) reply {
	r.t.Helper()
	lines := append([]string{method + " " + target + " HTTP/1.1", "Host: fingerpost.example", "Connection: close"}, headers...)
	if key != "" {
		lines = append(lines, "X-PLATFORM-KEY: "+key)
	}
	if body != "" {
		lines = append(lines, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	all := r.wire(method, strings.Join(lines, "\r\n")+"\r\n\r\n"+body)
	if len(all) != 1 {
		r.t.Errorf("%s %.200s: %d answers, want 1", method, target, len(all))
		return reply{header: http.Header{}}
	}
	return all[0]
}

// get asks with the key that may resolve and read.
func (r *rig) get(target string, headers ...string) reply {
	r.t.Helper()
	return r.ask(http.MethodGet, target, r.keys["all"], "", headers...)
}

const resolvePath = "/api/platform/projects/resolve?domain="

const (
	jsonText  = `"(?:[^"\\]|\\.)+"`
	jsonTime  = `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}"`
	jsonField = `\{"field":` + jsonText + `,"message":` + jsonText + `\}`
)

var (
	platformError = regexp.MustCompile(`^\{"success":false,"error":\{"code":"([A-Z_]+)","message":` + jsonText +
		`(?:,"details":\[(` + jsonField + `(?:,` + jsonField + `)*)\])?(?:,"requires":"[a-z,]+")?\},"timestamp":` + jsonTime + `\}\n?$`)
	platformSuccess = regexp.MustCompile(`(?s)^\{"success":true,"message":` + jsonText + `,"data":(.*),"timestamp":` + jsonTime + `\}\n?$`)
	detailField     = regexp.MustCompile(`\{"field":"([^"]*)"`)
	stampOf         = regexp.MustCompile(`"timestamp":` + jsonTime)
	requestID       = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
)

// sound checks what every answer has.
func sound(t testing.TB, what string, got reply) {
	t.Helper()
	if ct := got.header.Get("Content-Type"); got.body != "" && ct != "application/json; charset=utf-8" {
		t.Errorf("%s: Content-Type %q", what, ct)
	}
	if ids := got.header.Values("X-Request-Id"); len(ids) != 1 || !requestID.MatchString(ids[0]) {
		t.Errorf("%s: X-Request-Id %q", what, ids)
	}
	if got.status >= 300 && got.status < 400 && got.status != http.StatusNotModified {
		t.Errorf("%s: redirected to %q", what, got.header.Get("Location"))
	}
}

// refused checks status, code and envelope of a failure of the platform service, and the fields that failed, in order.
func refused(t testing.TB, what string, got reply, status int, code string, fields ...string) {
	t.Helper()
	sound(t, what, got)
	m := platformError.FindStringSubmatch(got.body)
	if m == nil || got.status != status || m[1] != code {
		t.Errorf("%s: %d %.300s\nwant %d %s in the platform's envelope", what, got.status, got.body, status, code)
		return
	}
	var have []string
	for _, f := range detailField.FindAllStringSubmatch(m[2], -1) {
		have = append(have, f[1])
	}
	if fields != nil && !slices.Equal(have, fields) {
		t.Errorf("%s: fields %q, want %q: %s", what, have, fields, got.body)
	}
}

// granted checks a success and returns its data.
func granted(t testing.TB, what string, got reply) string {
	t.Helper()
	sound(t, what, got)
	m := platformSuccess.FindStringSubmatch(got.body)
	if got.status != http.StatusOK || m == nil || !json.Valid([]byte(got.body)) {
		t.Errorf("%s: %d %.300s\nwant 200 in the platform's envelope", what, got.status, got.body)
		return ""
	}
	return m[1]
}

// A footprint is everything that bad input must not change.
type footprint struct {
	pid     int
	files   map[string]string
	answers map[string]string
}

func (r *rig) footprint() footprint {
	r.t.Helper()
	f := footprint{pid: r.pid, files: map[string]string{}, answers: map[string]string{}}
	err := filepath.WalkDir(r.path("."), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(name)
		f.files[name] = fmt.Sprint(info.Mode(), info.ModTime(), sha256.Sum256(b))
		return err
	})
	if err != nil {
		r.t.Error(err)
	}
	for _, target := range []string{
		resolvePath + "shop.acme.example", resolvePath + "x.acme.example&form=flat", resolvePath + "other.example",
		resolvePath + "gone.example", resolvePath + "old.acme.example", resolvePath + "nowhere.example",
		"/api/platform/projects", "/api/platform/projects/by-slug/acme",
	} {
		got := r.get(target)
		got.header.Del("Date")
		got.header.Del("X-Request-Id")
		f.answers[target] = fmt.Sprint(got.status, got.header, stampOf.ReplaceAllString(got.body, ""))
	}
	return f
}

// unchanged checks that nothing of a footprint has changed, and that the same process still runs.
func (r *rig) unchanged(before footprint) {
	r.t.Helper()
	if !r.running() {
		r.t.Fatalf("it ended: %v\n%s", r.err, cutMiddle(r.logged(), 4000))
	}
	now := r.footprint()
	if now.pid != before.pid {
		r.t.Errorf("process %d became %d", before.pid, now.pid)
	}
	if !maps.Equal(now.files, before.files) {
		r.t.Errorf("the config files changed: %v\nwere %v", now.files, before.files)
	}
	for target, was := range before.answers {
		if now.answers[target] != was {
			r.t.Errorf("%s now answers\n%s\nand answered\n%s", target, now.answers[target], was)
		}
	}
}
