package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/fingerpost/doctor"
	"fingerpost/cmd/testrig"
	"fingerpost/cmd/testrig/faultdns"
)

// doctorSays runs the doctor of a rig, and returns its results and exit code.
func doctorSays(t *testing.T, cmd *exec.Cmd) (rs []doctor.Result, code int) {
	t.Helper()
	begun := time.Now()
	out, err := cmd.Output()
	if err := json.Unmarshal(out, &rs); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if took := time.Since(begun); took > testrig.Patience {
		t.Errorf("it took %v", took)
	}
	bad := false
	for _, r := range rs {
		bad = bad || r.State == doctor.Failure
		if (r.Todo == "") != (r.State == doctor.OK) || r.Message == "" || r.Check == "" {
			t.Errorf("an incomplete line: %+v", r)
		}
	}
	if code = cmd.ProcessState.ExitCode(); bad != (code == cli.ExitNot) || err == nil && code != 0 {
		t.Errorf("exit code %d, %v, with %+v", code, err, rs)
	}
	return rs, code
}

// wantLine looks for a result whose message and todo have all of the texts.
func wantLine(t *testing.T, rs []doctor.Result, check string, state doctor.State, texts ...string) {
	t.Helper()
	for _, r := range rs {
		found := r.Check == check && r.State == state
		for _, text := range texts {
			found = found && strings.Contains(r.Message+"\n"+r.Todo, text)
		}
		if found {
			return
		}
	}
	t.Errorf("no line %q with %q of %s in %+v", state, texts, check, rs)
}

// silent is a server that takes connections and says nothing.
func silent(t *testing.T) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	return ln.Addr().String()
}

// closed is an address at which nothing listens.
func closed(t *testing.T) (addr string) {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", testrig.FreePort(t))
}

func (r *rig) doctor(args ...string) *exec.Cmd {
	return r.command(r.t.Context(), append([]string{"doctor", "--json", "--listen", "127.0.0.1:0", "--ops-listen",
		"127.0.0.1:0"}, args...)...)
}

// TestDoctorRelays: relays that answer, refuse, hang and lie, each with its project and file; and no mail is sent.
func TestDoctorRelays(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	good := testrig.NewSink(t)
	relay := func(name, addr string) {
		host, port, _ := net.SplitHostPort(addr)
		r.put(name+".hcl", fmt.Sprintf(`project %q {
  name = %q
  smtp_config {
    host = %q
    port = %s
    username = "someone"
    password = env("DOCTOR_SECRET")
    from_email = "hello@example.com"
  }
}
`, name, name, host, port))
	}
	relay("good", good.Addr())
	relay("again", good.Addr())
	relay("refuses", closed(t))
	relay("hangs", silent(t))
	relay("private", "10.255.255.1:25")
	relay("unknown", "relay.invalid:25")
	run := func(args ...string) []doctor.Result {
		cmd := r.doctor(args...)
		cmd.Env = append(cmd.Env, "DOCTOR_SECRET=hunter2")
		rs, _ := doctorSays(t, cmd)
		if strings.Contains(fmt.Sprint(rs), "hunter2") {
			t.Errorf("it tells the secret: %+v", rs)
		}
		return rs
	}
	rs := run()
	wantLine(t, rs, "smtp", doctor.OK, "5 relays", "--smtp")
	wantLine(t, rs, "dns", doctor.Warning, "relay.invalid", `project "unknown" in `, "unknown.hcl")

	rs = run("--smtp", "--smtp-allow", "127.0.0.0/8")
	wantLine(t, rs, "smtp", doctor.OK, good.Addr(), `project "again"`, "again.hcl", "1 more")
	wantLine(t, rs, "smtp", doctor.Failure, "refuses connections", `project "refuses"`, "refuses.hcl")
	wantLine(t, rs, "smtp", doctor.Failure, "says nothing", `project "hangs"`)
	wantLine(t, rs, "smtp", doctor.Failure, "not one that mail may be sent to", "--smtp-allow", `project "private"`)
	wantLine(t, rs, "smtp", doctor.Failure, "relay.invalid", `project "unknown"`)
	if n := good.Counts(); n.Offered != 0 || n.Logins != 0 {
		t.Errorf("mail was sent: %+v", n)
	}
}

// TestDoctorLogins: a provider that answers, one that hangs, and one that does not know the redirect URI, each with its
// block; and what the command lacks.
func TestDoctorLogins(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	const public = "https://config.acme.example"
	good := testrig.StartProvider(t, []string{public + "/console/login/good/callback"}, "-tls")
	r.put("ca.pem", good.CA)
	r.put("logins.hcl", fmt.Sprintf(`login "good" {
  issuer        = %[1]q
  client_id     = "web"
  client_secret = env("DOCTOR_SECRET")
  ca_file       = "ca.pem"
}
login "redirects" {
  issuer        = %[1]q
  client_id     = "web"
  client_secret = env("DOCTOR_SECRET")
  ca_file       = "ca.pem"
}
login "hangs" {
  issuer    = %[2]q
  client_id = "web"
}
`, good.Issuer, "https://"+silent(t)))
	run := func(args ...string) []doctor.Result {
		cmd := r.doctor(args...)
		cmd.Env = append(cmd.Env, "DOCTOR_SECRET=hunter2")
		rs, _ := doctorSays(t, cmd)
		if strings.Contains(fmt.Sprint(rs), "hunter2") {
			t.Errorf("it tells the secret: %+v", rs)
		}
		return rs
	}
	wantLine(t, run(), "login", doctor.OK, "3 logins", "--login")
	flags := []string{"--login", "--login-allow", "127.0.0.0/8"}
	wantLine(t, run(flags...), "login", doctor.Failure, "login good", "--public-url")
	flags = append(flags, "--public-url", public)
	rs := run(flags...)
	for _, works := range []string{"discovery of " + good.Issuer, "1 key", "redirect URI " + public, `client "web"`} {
		wantLine(t, rs, "login", doctor.OK, "login good", works)
	}
	wantLine(t, rs, "login", doctor.Failure, "login redirects", "answers 400", "register exactly")
	wantLine(t, rs, "login", doctor.Failure, "login hangs", "no answer within 5s")
}

// TestDoctorNATS: a NATS server that answers, is not there, hangs, or has no bucket for an edge.
func TestDoctorNATS(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	url := existingNATS(t)
	rs, _ := doctorSays(t, r.doctor("--cluster", url))
	wantLine(t, rs, "nats", doctor.OK, "answers; serve makes the bucket")
	rs, _ = doctorSays(t, r.doctor("--cluster", "nats://"+closed(t)))
	wantLine(t, rs, "nats", doctor.Failure, "NATS at nats://127.0.0.1")
	rs, _ = doctorSays(t, r.doctor("--cluster", "nats://"+silent(t)))
	wantLine(t, rs, "nats", doctor.Failure, "NATS at nats://127.0.0.1")

	key := filepath.Join(r.dir, "edge.nk")
	out, code := r.run("edges", "keygen", "fra1")
	if code != 0 {
		t.Fatal(out)
	}
	for line := range strings.Lines(out) {
		if seed := strings.TrimSpace(line); strings.HasPrefix(seed, "SU") {
			must(t, os.WriteFile(key, []byte(seed+"\n"), 0o600))
		}
	}
	edge := []string{"--follow", url, "--edge-name", "fra1", "--edge-key", key}
	rs, _ = doctorSays(t, r.doctor(edge...))
	wantLine(t, rs, "files", doctor.OK, "an edge")
	wantLine(t, rs, "nats", doctor.Failure, "there is no such bucket")
	rs, _ = doctorSays(t, r.doctor("--follow", url, "--edge-name", "fra1", "--edge-key", filepath.Join(r.dir, "nowhere")))
	wantLine(t, rs, "permissions", doctor.Failure, "--edge-key", "no such file")

	r.flags = []string{"--cluster", url}
	r.start()
	other := idleRig(t, t.TempDir(), nil)
	rs, _ = doctorSays(t, other.doctor(edge...))
	wantLine(t, rs, "nats", doctor.OK, "has the bucket of cluster default")
	rs, _ = doctorSays(t, r.command(t.Context(), "doctor", "--json", "--cluster", url, "--ops-listen",
		strings.TrimPrefix(r.ops, "http://")))
	wantLine(t, rs, "server", doctor.OK, "running: version")
	wantLine(t, rs, "nats", doctor.OK, "authority of cluster default")
}

// everything lists the files and folders below a folder, with what shows a change.
func everything(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil {
			fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return err
	}))
	return b.String()
}

// TestDoctorGit: a folder without a repository, a remote that answers, is not there, or hangs.
func TestDoctorGit(t *testing.T) {
	testrig.Thorough(t)
	testrig.Need(t, "git")
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	rs, _ := doctorSays(t, r.doctor("--git"))
	wantLine(t, rs, "git", doctor.Failure, "is not in a git repository", "git init")
	testrig.Git(t, r.dir, "init", "-q", "-b", "main")
	testrig.Git(t, r.dir, "add", "projects.d")
	testrig.Git(t, r.dir, "commit", "-qm", "one")
	rs, _ = doctorSays(t, r.doctor("--git"))
	wantLine(t, rs, "git", doctor.OK, "can take commits")
	rs, _ = doctorSays(t, r.doctor("--git", "--git-push"))
	wantLine(t, rs, "git", doctor.Failure, "has no upstream", "git branch --set-upstream-to")

	bare := filepath.Join(t.TempDir(), "remote.git")
	testrig.Git(t, r.dir, "init", "-q", "--bare", "-b", "main", bare)
	testrig.Git(t, r.dir, "remote", "add", "origin", bare)
	testrig.Git(t, r.dir, "push", "-q", "-u", "origin", "main")
	r.start() // makes a store
	r.halt()
	before := everything(t, r.dir)
	rs, _ = doctorSays(t, r.doctor("--git", "--git-push", "--listen", "unix:"+filepath.Join(r.dir, "socket")))
	wantLine(t, rs, "git", doctor.OK, "remote origin answers for branch main")
	if after := everything(t, r.dir); after != before {
		t.Errorf("it has changed the disk: before\n%s\nafter\n%s", before, after)
	}
	for url, says := range map[string]string{
		bare + "x": "does not appear to be a git repository",
		"http://somebody:hunter2@" + closed(t) + "/x.git": "remote origin cannot be asked",
		"http://" + silent(t) + "/x.git":                  "without a result",
		"ssh://git@relay.invalid/x.git":                   "relay.invalid",
	} {
		testrig.Git(t, r.dir, "remote", "set-url", "origin", url)
		rs, _ = doctorSays(t, r.doctor("--git", "--git-push"))
		wantLine(t, rs, "git", doctor.Failure, says, "git ls-remote origin")
		if strings.Contains(fmt.Sprint(rs), "hunter2") {
			t.Errorf("it tells the password: %+v", rs)
		}
		if strings.Contains(url, "relay.invalid") {
			wantLine(t, rs, "dns", doctor.Failure, "relay.invalid", "git remote origin")
		}
	}
}

const nobody = 65534 // a user and a group

// rigOfOthers is idleRig with a folder that every user may search, and the program where every user may run it. It needs root.
func rigOfOthers(t *testing.T) (r *rig, binary string) {
	t.Helper()
	testrig.Slow(t)
	if os.Geteuid() != 0 {
		t.Skip("it needs root, to be another user")
	}
	t.Parallel()
	r = idleRig(t, t.TempDir(), nil)
	for dir := r.dir; dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o005 != 0o005 {
			must(t, os.Chmod(dir, info.Mode().Perm()|0o005))
		}
	}
	binary = filepath.Join(r.dir, "fingerpost")
	original, err := filepath.EvalSymlinks(r.doctor().Path)
	must(t, err)
	if os.Link(original, binary) != nil {
		b, err := os.ReadFile(original)
		must(t, err)
		must(t, os.WriteFile(binary, b, 0o755))
	}
	return r, binary
}

// TestDoctorOfOthers: a user who may not read a file of the folder, and to whom the data folder does not belong.
func TestDoctorOfOthers(t *testing.T) {
	r, binary := rigOfOthers(t)
	must(t, os.Chmod(r.path("acme.hcl"), 0))
	must(t, os.Mkdir(filepath.Join(r.dir, "data"), 0o700))
	must(t, os.WriteFile(filepath.Join(r.dir, "seal.key"), []byte("x"), 0o600))
	as := func(uid uint32, args ...string) []doctor.Result {
		cmd := r.doctor(append([]string{"--data", filepath.Join(r.dir, "data"), "--seal-key", filepath.Join(r.dir, "seal.key")},
			args...)...)
		cmd.Path = binary
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		rs, _ := doctorSays(t, cmd)
		return rs
	}
	rs := as(nobody)
	wantLine(t, rs, "files", doctor.Failure, "acme.hcl", "permission denied")
	wantLine(t, rs, "permissions", doctor.Failure, "/data: permission denied")
	wantLine(t, rs, "permissions", doctor.Failure, "seal.key cannot be read")
	wantLine(t, rs, "permissions", doctor.Warning, "writes over the API", "--read-only")
	wantLine(t, rs, "owner", doctor.Failure, "belongs to root", "chown -R")
	rs = as(nobody, "--data", filepath.Join(r.dir, "new"))
	wantLine(t, rs, "permissions", doctor.Failure, "does not exist and cannot be made")
	must(t, os.Chown(filepath.Join(r.dir, "data"), nobody, nobody))
	must(t, os.Chmod(r.path("acme.hcl"), 0o644))
	must(t, os.Chown(r.path("."), nobody, nobody))
	must(t, os.Chown(r.path("acme.hcl"), nobody, 0)) // as after "chown -R nobody"
	wantLine(t, as(nobody), "permissions", doctor.Warning, "acme.hcl belongs to another user or group", "chown -R 65534:65534")
	wantLine(t, as(0), "owner", doctor.Warning, "this is root", "sudo -u nobody fingerpost doctor")
}

// TestUnwritableFolder: a start in a folder that its user cannot write says so, unless nothing is to be written.
func TestUnwritableFolder(t *testing.T) {
	r, binary := rigOfOthers(t)
	data := filepath.Join(r.dir, "data")
	must(t, os.Mkdir(data, 0o700))
	must(t, os.Chown(data, nobody, nobody))
	says := func(flags ...string) (printed string) {
		cmd := r.command(t.Context(), append([]string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--data", data}, flags...)...)
		cmd.Path = binary
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		log := new(bytes.Buffer)
		cmd.Stderr = log
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "ops on ") {
			printed += lines.Text() + "\n"
		}
		must(t, cmd.Process.Signal(syscall.SIGTERM))
		_, _ = io.Copy(io.Discard, out)
		must(t, cmd.Wait())
		return printed + log.String()
	}
	if got := says(); !strings.Contains(got, "writes over the API and in the console will fail: projects.d: permission denied; let this user write") ||
		!strings.Contains(got, `"level":"WARN","msg":"the config folder cannot be written`) {
		t.Errorf("it says %s", got)
	}
	must(t, os.Chown(r.path("."), nobody, nobody))
	if got := says(); strings.Contains(got, "writes over") {
		t.Errorf("with a folder of its own it says %s", got)
	}
	must(t, os.Chown(r.path("."), 0, 0))
	if got := says("--read-only"); strings.Contains(got, "writes over") || strings.Contains(got, "cannot be written") {
		t.Errorf("with --read-only it says %s", got)
	}
}

// TestDoctorLooksAtVerification: the resolver that checks of domains ask, and the names to which domains should point.
func TestDoctorLooksAtVerification(t *testing.T) {
	t.Parallel()
	n := faultdns.New(t)
	n.Zone("acme.example", "edge 60 A 192.0.2.1\n", "127.0.0.3")
	r := idleRig(t, t.TempDir(), map[string]string{"defaults.hcl": "defaults {\n  verification {\n    require = \"project-keys\"\n" +
		"    targets = [\"edge.acme.example\", \"gone.acme.example\", \"192.0.2.0/24\"]\n  }\n}\n"})
	rs, _ := doctorSays(t, r.doctor("--dns-resolver", n.Resolver()))
	wantLine(t, rs, "verification", doctor.Warning, "gone.acme.example", "no address", "defaults.hcl")
	if line := fmt.Sprint(rs); strings.Contains(line, "target edge.acme.example") {
		t.Errorf("a target that has an address: %s", line)
	}
	r.put("defaults.hcl", "defaults {\n  verification {\n    targets = [\"edge.acme.example\"]\n  }\n}\n")
	rs, _ = doctorSays(t, r.doctor("--dns-resolver", n.Resolver()))
	wantLine(t, rs, "verification", doctor.OK, "answers", "1 target")
	rs, code := doctorSays(t, r.doctor("--dns-resolver", closed(t)))
	wantLine(t, rs, "verification", doctor.Failure, "does not answer", "--dns-resolver")
	if code == 0 {
		t.Error("it ended with 0")
	}
}
