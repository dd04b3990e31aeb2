package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/cmd/testrig"
)

func TestNewNeedsAResolver(t *testing.T) {
	if _, err := api.New(api.Options{}); err == nil {
		t.Error("no error without a resolver")
	}
}

// shutDown stops the server within limit and checks that Serve has returned.
func (h *house) shutDown(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := h.server.Shutdown(ctx)
	select {
	case served := <-h.served:
		if served != nil {
			h.t.Errorf("Serve: %v", served)
		}
	case <-time.After(testrig.Patience):
		h.t.Error("Serve did not return")
	}
	return err
}

// Silent and idle connections do not delay the end.
func TestShutdownWithSilentConnections(t *testing.T) {
	t.Parallel()
	h := start(t)
	idle := h.dial()
	defer idle.Close()
	idle.send(get(""))
	idle.answer("GET")
	var silent []*wire
	for range 20 {
		w := h.dial()
		defer w.Close()
		silent = append(silent, w)
	}
	// The server has seen them all once it has answered one that came later.
	h.ask("GET", healthURL, "").check(t, 200, "")
	begun := time.Now()
	if err := h.shutDown(testrig.Patience); err != nil {
		t.Error(err)
	}
	testrig.AtMost(t, time.Since(begun), 3*time.Second)
	for _, w := range append(silent, idle) {
		w.closed()
	}
}

// A half-sent request holds the end up no longer than its context lets it.
func TestShutdownWithHalfARequest(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	h := start(t)
	begunHead := h.dial()
	defer begunHead.Close()
	begunHead.send("GET " + healthURL)
	second := h.dial()
	defer second.Close()
	second.send(get("") + "GET " + healthURL)
	second.answer("GET").check(t, 200, "")
	noBody := h.dial()
	defer noBody.Close()
	noBody.send(h.expectHead(30)) // its "100 Continue" shows that the server has the head
	noBody.skipLines(2)
	begun := time.Now()
	if err := h.shutDown(300 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	testrig.AtMost(t, time.Since(begun), 3*time.Second)
	begunHead.closed()
	second.closed()
	noBody.closed()
}

// A running request is answered, and the answer says that the connection ends.
func TestShutdownFinishesRequests(t *testing.T) {
	h := start(t)
	w := h.dial()
	defer w.Close()
	w.send(h.expectHead(30))
	w.skipLines(2)
	ended := make(chan error, 1)
	go func() { ended <- h.shutDown(testrig.Patience) }()
	testrig.Eventually(t, "the listener to close", func() bool {
		c, err := net.Dial("tcp", h.addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	testrig.Eventually(t, "the server to stop", h.server.Stopping)
	w.send(`{"domains":["globex.example"]}`)
	a := w.answer("POST")
	a.check(t, 200, "")
	if !a.Close {
		t.Error("the answer does not say that the connection ends")
	}
	w.closed()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServeAfterShutdown(t *testing.T) {
	h := start(t)
	h.shutDown(time.Second)
	ln, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.server.Serve(ln, api.Platform); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("the listener was left open")
	}
}

// A flakyListener fails now and then like a machine that runs out of something.
type flakyListener struct {
	net.Listener
	failures []error
	next     atomic.Int64
}

func (f *flakyListener) Accept() (net.Conn, error) {
	if n := int(f.next.Add(1)) - 1; n < len(f.failures) {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", f.failures[n])}
	}
	return f.Listener.Accept()
}

func TestAcceptSurvivesFailures(t *testing.T) {
	testrig.Slow(t)
	h := start(t)
	ln, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	flaky := &flakyListener{Listener: ln, failures: []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOBUFS, syscall.ENOMEM, syscall.EMFILE}}
	go func() { h.served <- h.server.Serve(flaky, api.Platform) }()
	at := *h
	at.addr = ln.Addr().String()
	at.ask("GET", healthURL, "").check(t, 200, "")
	if !strings.Contains(h.log.String(), "accepting connections pauses") {
		t.Error("nothing in the log")
	}
	broken, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.server.Serve(&flakyListener{Listener: broken, failures: []error{syscall.EBADF}}, api.Platform); !errors.Is(err, syscall.EBADF) {
		t.Errorf("a broken listener gives %v", err)
	}
}

const childEnv = "FINGERPOST_TEST_FEW_FILES"

// A process that has run out of descriptors answers again as soon as there are some.
func TestOutOfDescriptors(t *testing.T) {
	testrig.Slow(t)
	if os.Getenv(childEnv) != "" {
		serveWithFewDescriptors(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestOutOfDescriptors$", "-test.timeout=60s")
	child.Env = append(os.Environ(), childEnv+"=1")
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close() // tells the child to end
		io.Copy(io.Discard, stdout)
		if err := child.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	}()
	h := &house{t: t}
	if _, err := fmt.Fscanf(stdout, "listening on %s\n", &h.addr); err != nil {
		t.Fatal(err)
	}
	served := func() bool {
		w := h.dial()
		defer w.Close()
		w.SetDeadline(time.Now().Add(200 * time.Millisecond))
		io.WriteString(w.Conn, get(""))
		_, err := w.tryAnswer("GET")
		return err == nil
	}
	var idle []*wire
	for served() {
		for range 20 {
			w := h.dial()
			defer w.Close()
			idle = append(idle, w)
		}
		if len(idle) > 1000 {
			t.Fatal("the child never ran out of descriptors")
		}
	}
	for _, w := range idle {
		w.Close()
	}
	begun := time.Now()
	testrig.Eventually(t, "the server to answer again", served)
	testrig.AtMost(t, time.Since(begun), 5*time.Second)
}

func serveWithFewDescriptors(t *testing.T) {
	h := start(t)
	limit := syscall.Rlimit{Cur: 60, Max: 60}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("listening on %s\n", h.addr)
	io.Copy(io.Discard, os.Stdin)
	if !strings.Contains(h.log.String(), "too many open files") {
		t.Error("the child never ran out of descriptors")
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	h := start(t, func(o *api.Options) { o.Limits.ConnsPerPeer = 1 })
	ln, err := api.Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	go func() { h.served <- h.server.Serve(ln, api.Platform|api.Mail) }()
	for range 3 { // the cap per address is not for these
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		w := newWire(t, c)
		w.send("GET " + resolveURL + "?domain=globex.example HTTP/1.1\r\nHost: x\r\nX-PLATFORM-KEY: " + h.all + "\r\n\r\n")
		w.answer("GET").check(t, 200, "")
		w.send("GET / HTTP/1.1\r\n x\r\n\r\n")
		w.answer("GET").check(t, 400, "VALIDATION_ERROR")
		w.closed()
	}
	if _, err := api.Listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "another process answers there") {
		t.Errorf("a socket in use: %v", err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	again, err := api.Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Listen("unix:" + path); err == nil {
		t.Error("a file was taken for a socket")
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "mine" {
		t.Errorf("the file was touched: %q, %v", content, err)
	}
}

func TestListenErrors(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:99999", "unix:", "unix:/nonexistent/dir/s", "nonsense"} {
		if ln, err := api.Listen(addr); err == nil {
			ln.Close()
			t.Errorf("%s: no error", addr)
		}
	}
}
