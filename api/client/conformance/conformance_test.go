package conformance_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"fingerpost/api/client/conformance"
	"fingerpost/cmd/testrig"
)

// server is the program that build makes.
var server string

func TestMain(m *testing.M) {
	if os.Getenv(driverVariable) != "" {
		drive()
		return
	}
	testrig.Crowd()
	dir, err := os.MkdirTemp("", "conformance-")
	if err == nil {
		server = filepath.Join(dir, "fingerpost")
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(cmp.Or(code, map[bool]int{true: 1}[err != nil]))
}

// build builds the server once. Package tenant's own tests, which build nothing, run everywhere.
func build(t testing.TB) {
	t.Helper()
	testrig.Thorough(t)
	if _, err := os.Stat(server); err == nil {
		return
	}
	if out, err := exec.Command("go", "build", "-o", server, "fingerpost/cmd/fingerpost").CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
}

var (
	inGo = language{"Go", func(t testing.TB) *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), driverVariable+"=1")
		return cmd
	}}
	inTS = language{"TypeScript", func(t testing.TB) *exec.Cmd {
		if os.Getenv("FINGERPOST_CLIENT_TS") == "" {
			testrig.Missing(t, "client-ts", "FINGERPOST_CLIENT_TS with the folder of the built package")
		}
		folder, err := filepath.Abs("../../client-ts")
		if err != nil {
			t.Fatal(err)
		}
		return exec.Command(testrig.Need(t, "node")[0], filepath.Join(folder, "test", "driver.mjs"))
	}}
)

// TestTable plays the table with the clients of both languages.
func TestTable(t *testing.T) {
	build(t)
	cases, err := conformance.Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []language{inGo, inTS} {
		t.Run(l.name, func(whole *testing.T) {
			l.command(whole) // or skip
			worlds := map[bool]*world{}
			for _, c := range cases {
				whole.Run(c.Name, func(t *testing.T) {
					if c.Needs == "mount" {
						testrig.NeedRoot(t)
					}
					edge := c.Needs == "edge"
					if edge {
						testrig.Thorough(t)
					}
					w := worlds[edge]
					if w == nil {
						w = newWorld(whole, edge)
						worlds[edge] = w
					} else {
						w.restore(t)
					}
					p := &player{world: w, t: t, language: l, disk: filepath.Join(t.TempDir(), "answers")}
					p.play(c)
				})
			}
		})
	}
}

// A player plays one case.
type player struct {
	*world
	t        *testing.T
	language language
	driver   *driver
	disk     string // the client's file
	small    string // the mount point of a small disk
	changes  []string
}

func (p *player) play(c conformance.Case) {
	p.driver = startDriver(p.t, p.language)
	defer func() { p.driver.end() }()
	for i, s := range c.Steps {
		p.t.Logf("step %d", i+1)
		p.step(&s)
		if p.t.Failed() {
			p.t.Fatalf("in step %d: %+v", i+1, p.driver.ask("status", object{}).Status)
		}
	}
	p.proxy.mu.Lock()
	defer p.proxy.mu.Unlock()
	if len(p.proxy.strayed) > 0 {
		p.t.Errorf("requests have followed a redirect: %q", p.proxy.strayed)
	}
}

func (p *player) step(s *conformance.Step) {
	t := p.t
	t.Helper()
	switch {
	case s.Open != nil:
		p.open(s.Open)
	case s.Ready:
		if a := p.driver.ask("ready", object{"timeout": 30_000}); !a.OK {
			t.Errorf("ready: %s", a.Error)
		}
	case s.Driver:
		p.driver.kill()
		p.driver = startDriver(t, p.language)
	case s.Close:
		p.driver.ask("close", object{})
	case s.Connected != nil:
		alike(t, func() string {
			if a := p.driver.ask("status", object{}); a.Status == nil || a.Status.Connected != *s.Connected {
				return fmt.Sprintf("the status is %+v, want connected: %v", a.Status, *s.Connected)
			}
			return ""
		})
	case s.Failing:
		if a := p.driver.ask("status", object{}); a.Status == nil || a.Status.LastError == "" {
			t.Errorf("the status is %+v, without an error", a.Status)
		} else if strings.Contains(a.Status.LastError, p.keys["acme"]) || strings.Contains(a.Status.LastError, p.keys["all"]) {
			t.Errorf("the status has the key: %s", a.Status.LastError)
		}
	case s.Entries != nil, s.Negatives != nil:
		a := p.driver.ask("status", object{})
		if s.Entries != nil && a.Status.Entries != *s.Entries || s.Negatives != nil && a.Status.Negatives != *s.Negatives {
			t.Errorf("the status is %+v", a.Status)
		}
	case s.Changes != nil:
		alike(t, func() string {
			p.changes = append(p.changes, p.driver.ask("changes", object{}).Hosts...)
			for _, host := range s.Changes {
				if !slices.Contains(p.changes, host) {
					return fmt.Sprintf("OnChange got %q, want %s", p.changes, host)
				}
			}
			return ""
		})
	case s.Questions != nil:
		if n := p.proxy.asked(); n != *s.Questions && *s.Questions >= 0 {
			t.Errorf("%d questions, want %d", n, *s.Questions)
		}
	case s.Advance != 0:
		p.driver.ask("advance", object{"by": s.Advance})
	case s.Server != "":
		p.serve(s.Server)
	case s.Proxy != "":
		p.proxy.set(s.Proxy)
	case s.Cut:
		p.proxy.cut()
	case s.Node != "":
		p.proxy.lead(p.nodes[s.Node].url)
	case s.Files != nil:
		p.change(s.Files)
	case s.Damage:
		p.damage()
	case s.Fill:
		p.fill()
	default:
		p.lookup(s)
	}
}

func (p *player) open(o *conformance.Open) {
	p.t.Helper()
	file := map[string]string{"": "", "disk": p.disk, "readonly": "/proc/fingerpost/answers"}[o.File]
	if o.File == "small" {
		p.mount()
		file = filepath.Join(p.small, "answers")
	}
	a := p.driver.ask("open", object{"url": p.proxy.URL, "key": p.keys[cmp.Or(o.Key, "all")], "file": file, "fresh": o.Fresh,
		"maxStale": o.MaxStale, "maxEntries": o.MaxEntries, "maxNegative": o.MaxNegative, "warm": o.Warm})
	if !a.OK {
		p.t.Fatalf("open: %s", a.Error)
	}
}

func (p *player) serve(what string) {
	p.t.Helper()
	switch what {
	case "kill":
		p.nodes["authority"].signal(syscall.SIGKILL)
	case "stop":
		p.nodes["authority"].signal(syscall.SIGTERM)
	case "start":
		p.start()
	}
}

// lookup asks and compares.
func (p *player) lookup(s *conformance.Step) {
	p.t.Helper()
	request := func() object { return object{"host": s.Lookup, "timeout": cmp.Or(s.Timeout, 20_000)} }
	judge := func(a driven) string {
		switch {
		case a.Error != s.Error:
			return fmt.Sprintf("lookup %q: error %q, want %q (%+v)", s.Lookup, a.Error, s.Error, a.Tenant)
		case s.Error != "":
			return ""
		case a.Tenant == nil || a.Tenant.Slug != s.Slug || s.Domain != "" && a.Tenant.Domain != s.Domain ||
			s.Stale != nil && a.Tenant.Stale != *s.Stale:
			return fmt.Sprintf("lookup %q: %+v, want %+v", s.Lookup, a.Tenant, s)
		case a.Tenant.ID == 0 || a.Tenant.UUID == "" || a.Tenant.Name == "" || a.Tenant.Status == "" || a.Tenant.ETag == "" || a.Tenant.AsOf.IsZero():
			return fmt.Sprintf("lookup %q: %+v is not complete", s.Lookup, a.Tenant)
		case s.Slug == "acme" && a.Tenant.Labels["plan"] != "gold":
			return fmt.Sprintf("lookup %q: labels %v", s.Lookup, a.Tenant.Labels)
		}
		return ""
	}
	if s.Eventually {
		alike(p.t, func() string { return judge(p.driver.ask("lookup", request())) })
		return
	}
	var answers []<-chan driven
	for range s.Together {
		answers = append(answers, p.driver.begin("lookup", request()))
	}
	if s.Together == 0 {
		if wrong := judge(p.driver.ask("lookup", request())); wrong != "" {
			p.t.Error(wrong)
		}
	}
	for _, c := range answers {
		if wrong := judge(<-c); wrong != "" {
			p.t.Error(wrong)
		}
	}
}

// damage cuts the client's file and turns a bit of the rest.
func (p *player) damage() {
	p.t.Helper()
	b, err := os.ReadFile(p.disk)
	if err != nil || len(b) < 20 {
		p.t.Fatalf("the client's file: %d bytes, %v", len(b), err)
	}
	if i, err := os.Stat(p.disk); err != nil || i.Mode().Perm() != 0o600 {
		p.t.Errorf("the client's file has the mode %v, %v", i.Mode(), err)
	}
	for name, key := range p.keys {
		if strings.Contains(string(b), key) {
			p.t.Errorf("the client's file has the key %s", name)
		}
	}
	b = b[:len(b)/2]
	b[len(b)/2] ^= 1
	if err := os.WriteFile(p.disk, b, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// mount makes the small disk.
func (p *player) mount() {
	p.t.Helper()
	p.small = p.t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", p.small).CombinedOutput(); err != nil {
		testrig.Missing(p.t, "mount", "the right to mount a disk: "+string(out))
	}
	p.t.Cleanup(func() { _ = exec.Command("umount", "--lazy", p.small).Run() })
}

// fill leaves no room on the small disk.
func (p *player) fill() {
	p.t.Helper()
	f, err := os.Create(filepath.Join(p.small, "full"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return
		}
	}
}
