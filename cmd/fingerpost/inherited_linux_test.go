package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// heldSocket opens a socket as a service manager does, and returns its file and address.
func heldSocket(t testing.TB, network, addr string) (*os.File, string) {
	t.Helper()
	ln, err := net.Listen(network, addr)
	must(t, err)
	if u, is := ln.(*net.UnixListener); is {
		u.SetUnlinkOnClose(false)
	}
	f, err := ln.(interface{ File() (*os.File, error) }).File()
	must(t, err)
	must(t, ln.Close())
	t.Cleanup(func() { f.Close() })
	return f, ln.Addr().String()
}

// TestInheritedSockets: sockets of every name are used, several of one name too, and a unix socket's file is left.
func TestInheritedSockets(t *testing.T) {
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	path := shortDir(t) + "/s"
	addrs := map[string]string{}
	for _, s := range [][2]string{{"main", "127.0.0.1:0"}, {"main", "[::1]:0"}, {"main", path}, {"mail", "127.0.0.1:0"}, {"console", "127.0.0.1:0"},
		{"gate", "127.0.0.1:0"}, {"ops", "127.0.0.1:0"}} {
		network := "tcp"
		if s[1] == path {
			network = "unix"
		}
		f, addr := heldSocket(t, network, s[1])
		r.sockets = append(r.sockets, f)
		r.names = strings.TrimPrefix(r.names+":"+s[0], ":")
		addrs[s[0]+network+fmt.Sprint(strings.Contains(addr, "["))] = addr
	}
	r.start()
	if said := r.announcement(); !strings.Contains(said, "the socket is the service manager's") || strings.Count(said, "listening on ") != 3 {
		t.Errorf("it says\n%s", said)
	}
	ask := func(network, addr, path string) int {
		t.Helper()
		client := &http.Client{Timeout: testrig.Patience, Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, addr)
			}}}
		req, err := http.NewRequest(http.MethodGet, "http://shop.acme.example"+path, nil)
		must(t, err)
		req.Header.Set("X-PLATFORM-KEY", r.keys["all"])
		res, err := client.Do(req)
		must(t, err)
		res.Body.Close()
		return res.StatusCode
	}
	for _, c := range []struct {
		network, addr, path string
		want                int
	}{
		{"tcp", addrs["maintcpfalse"], resolvePath + "shop.acme.example", 200},
		{"tcp", addrs["maintcptrue"], resolvePath + "shop.acme.example", 200},
		{"unix", path, resolvePath + "shop.acme.example", 200},
		{"tcp", addrs["maintcpfalse"], "/api/mail/logs", 404}, // the mail API has a socket of its own
		{"tcp", addrs["mailtcpfalse"], resolvePath + "shop.acme.example", 404},
		{"tcp", addrs["consoletcpfalse"], "/console/", 200},
		{"tcp", addrs["maintcpfalse"], "/console/", 404},
		{"tcp", addrs["gatetcpfalse"], "/check", 200},
		{"tcp", addrs["opstcpfalse"], "/readyz", 200},
	} {
		if got := ask(c.network, c.addr, c.path); got != c.want {
			t.Errorf("%s at %s: %d, want %d", c.path, c.addr, got, c.want)
		}
	}
	r.halt()
	if _, err := os.Lstat(path); err != nil {
		t.Error("the unix socket's file is gone: ", err)
	}
}

// TestInheritedSocketsRefused: what is wrong with the sockets is said at once, with exit code 2. Those of another process
// are not touched.
func TestInheritedSocketsRefused(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	main, addr := heldSocket(t, "tcp", "127.0.0.1:0")
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(t, err)
	silent := os.NewFile(uintptr(fd), "silent")
	defer silent.Close()
	for _, c := range []struct {
		what    string
		sockets []*os.File
		names   string
		flags   []string
		says    []string
	}{
		{"an unknown name", []*os.File{main}, "web", nil, []string{`has the name "web"; FileDescriptorName must be one of main, gate, mail, console, ops`}},
		{"no name", []*os.File{main}, "", nil, []string{`has the name "LISTEN_FD_3"`}},
		{"it does not listen", []*os.File{silent}, "main", nil, []string{"does not listen; the socket unit needs ListenStream="}},
		{"another address", []*os.File{main}, "main", []string{"--listen", "127.0.0.1:1"},
			[]string{"--listen is 127.0.0.1:1, and the socket from the service manager is " + addr}},
		{"no console", []*os.File{main}, "console", []string{"--console=false"}, []string{"--console=false: leave one of the two out"}},
		{"several", []*os.File{main, silent, main}, "web:mail:gate", []string{"--gate-listen", "127.0.0.1:1"},
			[]string{`"web"`, `"mail" from the service manager cannot be used`, "--gate-listen is 127.0.0.1:1"}},
	} {
		r := idleRig(t, t.TempDir(), nil)
		r.sockets, r.names = c.sockets, c.names
		cmd := r.command(t.Context(), append([]string{"serve", "--ops-listen", "127.0.0.1:0"}, c.flags...)...)
		r.inherit(cmd)
		var out bytes.Buffer
		cmd.Stderr = &out
		err := cmd.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitUsage {
			t.Errorf("%s: %v\n%s", c.what, err, out.String())
		}
		for _, text := range c.says {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: it does not say %q:\n%s", c.what, text, out.String())
			}
		}
	}
	r := idleRig(t, t.TempDir(), nil)
	r.env = []string{"LISTEN_PID=1", "LISTEN_FDS=1", "LISTEN_FDNAMES=web"}
	r.start()
	if got := r.get(resolvePath + "shop.acme.example"); got.status != http.StatusOK {
		t.Errorf("next to another process's sockets: %d %s", got.status, got.body)
	}
}

// A restartLoad asks all the time, half of it over kept-alive connections.
type restartLoad struct {
	base      string
	key       string
	asked     atomic.Int64
	longest   atomic.Int64 // wait for an answer, in nanoseconds
	mu        sync.Mutex   // guards failed
	failed    []string
	transport [2]*http.Transport // kept alive, and new connections
}

func (l *restartLoad) ask(kind int) {
	begun := time.Now()
	req, err := http.NewRequest(http.MethodGet, l.base+resolvePath+"shop.acme.example", nil)
	if err == nil {
		req.Header.Set("X-PLATFORM-KEY", l.key)
		client := http.Client{Transport: l.transport[kind], Timeout: testrig.Patience}
		var res *http.Response
		// A request on a kept-alive connection that ends meanwhile is made again by the client, once, on a new one.
		if res, err = client.Do(req); err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if err == nil && res.StatusCode != http.StatusOK {
				err = errors.New(res.Status)
			}
		}
	}
	l.asked.Add(1)
	for wait := time.Since(begun).Nanoseconds(); ; {
		was := l.longest.Load()
		if wait <= was || l.longest.CompareAndSwap(was, wait) {
			break
		}
	}
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed = append(l.failed, fmt.Sprintf("kind %d: %v", kind, err))
	}
}

// run asks at a rate until ctx ends.
func (l *restartLoad) run(ctx context.Context, rate int) {
	l.transport = [2]*http.Transport{{MaxIdleConnsPerHost: 64}, {DisableKeepAlives: true}}
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	var asking sync.WaitGroup
	places := make(chan struct{}, 2000) // the kernel keeps 4096 connections
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			asking.Wait()
			return
		case <-tick.C:
		}
		places <- struct{}{}
		asking.Go(func() { l.ask(n % 2); <-places })
	}
}

// TestRestartRefusesNobody: with a socket of the service manager, a restart refuses no connection and answers no request
// with anything but the answer.
func TestRestartRefusesNobody(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for _, through := range []string{"direct", "nginx", "caddy"} {
		t.Run(through, func(t *testing.T) {
			if through != "direct" {
				testrig.Thorough(t)
			}
			projects, restarts, rate := testrig.Size(t, 10_000, 50), testrig.Size(t, 10, 2), testrig.Size(t, 2000, 200)
			more := map[string]string{}
			for i := range projects {
				more[fmt.Sprintf("p%d.hcl", i)] = fmt.Sprintf("project \"p%d\" {\n  name = \"P\"\n  domain \"p%d.example\" {}\n}\n", i, i)
			}
			r := idleRig(t, t.TempDir(), more)
			socket, addr := heldSocket(t, "tcp", "127.0.0.1:0")
			r.sockets, r.names = []*os.File{socket}, "main"
			r.start()
			l := &restartLoad{base: "http://" + addr, key: r.keys["all"]}
			if through != "direct" {
				l.base = restartProxies[through](t, addr)
			}
			ctx, end := context.WithCancel(t.Context())
			var loading sync.WaitGroup
			loading.Go(func() { l.run(ctx, rate) })
			for range restarts {
				asked := l.asked.Load()
				testrig.Eventually(t, "the load goes on", func() bool { return l.asked.Load() > asked+int64(rate)/2 })
				r.halt()
				r.start()
			}
			asked := l.asked.Load()
			testrig.Eventually(t, "the load goes on", func() bool { return l.asked.Load() > asked+int64(rate)/2 })
			end()
			loading.Wait()
			testrig.Figure(t, "%s: %d requests over %d restarts, %d failed, the longest took %v", through, l.asked.Load(), restarts,
				len(l.failed), time.Duration(l.longest.Load()).Round(time.Millisecond))
			if len(l.failed) > 0 {
				t.Errorf("%d of %d requests failed: %q", len(l.failed), l.asked.Load(), slices.Compact(l.failed[:min(20, len(l.failed))]))
			}
		})
	}
}

// restartProxies run a proxy in front of an address, and return its base URL.
var restartProxies = map[string]func(t *testing.T, addr string) string{
	"nginx": func(t *testing.T, addr string) string {
		dir, listen := shortDir(t), freeAddr(t)
		config := fmt.Sprintf("worker_processes 1;\npid %[1]s/pid;\nerror_log %[1]s/error.log;\nevents { worker_connections 8192; }\n"+
			"http {\n  access_log off;\n  client_body_temp_path %[1]s/b;\n  proxy_temp_path %[1]s/p;\n  fastcgi_temp_path %[1]s/f;\n"+
			"  uwsgi_temp_path %[1]s/u;\n  scgi_temp_path %[1]s/s;\n  upstream f { server %[2]s; keepalive 64; }\n"+
			"  server {\n    listen %[3]s;\n    location / { proxy_pass http://f; proxy_http_version 1.1; proxy_set_header Connection \"\"; }\n  }\n}\n",
			dir, addr, listen)
		runProxy(t, listen, testrig.Need(t, "nginx")[0], "-e", dir+"/error.log", "-g", "daemon off;", "-c", writeConfig(t, dir+"/nginx.conf", config))
		return "http://" + listen
	},
	"caddy": func(t *testing.T, addr string) string {
		dir, listen := shortDir(t), freeAddr(t)
		// A connection that Caddy has opened in advance and not used yet ends with the service. On a busy machine it sends a
		// request there nevertheless, and makes it again only with lb_try_duration.
		config := fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n}\nhttp://%s {\n\treverse_proxy %s {\n\t\tlb_try_duration 2s\n\t}\n}\n", listen, addr)
		runProxy(t, listen, testrig.Need(t, "caddy")[0], "run", "--adapter", "caddyfile", "--config", writeConfig(t, dir+"/Caddyfile", config))
		return "http://" + listen
	},
}

func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

// runProxy runs a program until the test ends, and waits until it listens.
func runProxy(t *testing.T, listen, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	log := new(testrig.Log)
	cmd.Stderr = log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the proxy's log:\n%s", cutMiddle(log.String(), 4000))
		}
	})
	testrig.Eventually(t, program+" listens", func() bool {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}
