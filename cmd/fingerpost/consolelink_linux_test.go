package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/sys/unix"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// openTerminal returns the two ends of a pseudo terminal (pty(7)).
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminal: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("no pseudo terminal: %v", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return screen, terminal
}

// serveOnTerminal starts serve with a terminal as stdout, waits until it is ready, and returns what the terminal shows.
// The log goes to stderr, and from there into log.
func serveOnTerminal(t *testing.T, r *rig, log io.Writer, flags ...string) (shown string) {
	t.Helper()
	screen, terminal := openTerminal(t)
	cmd := r.command(context.Background(), append([]string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0",
		"--cache-size", "8MiB"}, flags...)...)
	cmd.Stdout, cmd.Stderr = terminal, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	text := make(chan string, 1)
	go func() {
		var all bytes.Buffer
		for b := make([]byte, 4096); !strings.Contains(all.String(), "ops on "); {
			n, err := screen.Read(b)
			if all.Write(b[:n]); err != nil {
				break
			}
		}
		text <- all.String()
	}()
	select {
	case shown = <-text:
	case <-time.After(testrig.Patience):
		t.Fatal("nothing is on the terminal")
	}
	return shown
}

var shownLink = regexp.MustCompile(`sign in once, within 10 minutes, on this machine: (http://127\.0\.0\.1:\d+)(/console/sign-in\?link=([\w-]{32}))\s`)

// On a terminal, serve prints a link while nobody can sign in, or with --console-link; it works once, and is in no log.
func TestConsoleLinkOnTerminal(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	none := idleRig(t, t.TempDir(), nil)
	for name := range rigKeys { // keys that may not read stay, and one that has expired
		if strings.Contains(rigKeys[name], "read") && name != "expired" {
			if err := os.Remove(none.path("key-" + name + ".hcl")); err != nil {
				t.Fatal(err)
			}
		}
	}
	some := idleRig(t, t.TempDir(), nil)
	for _, c := range []struct {
		name  string
		rig   *rig
		flags []string
		link  bool
	}{
		{"nobody can sign in", none, nil, true},
		{"somebody can", some, nil, false},
		{"asked for", some, []string{"--console-link"}, true},
		{"no console", none, []string{"--console=false"}, false},
		{"on all addresses", none, []string{"--listen", "0.0.0.0:0"}, true},
		{"on a socket", none, []string{"--console-listen", "unix:console.sock"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := new(server)
			shown := serveOnTerminal(t, c.rig, log, c.flags...)
			link := shownLink.FindStringSubmatch(shown)
			if (link != nil) != c.link {
				t.Fatalf("the terminal shows\n%s", shown)
			}
			if link == nil {
				return
			}
			browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			for i, want := range []int{http.StatusSeeOther, http.StatusUnauthorized} {
				res, err := browser.PostForm(link[1]+"/console/sign-in", url.Values{"link": {link[3]}})
				if err != nil {
					t.Fatal(err)
				}
				if res.Body.Close(); res.StatusCode != want {
					t.Errorf("use %d: %d", i+1, res.StatusCode)
				}
			}
			if strings.Contains(log.logged(), link[3]) {
				t.Errorf("the link is in the log:\n%s", log.logged())
			}
		})
	}
}

// Without a terminal no link is printed, and one that was asked for is refused.
func TestConsoleLinkWithoutTerminal(t *testing.T) {
	testrig.Thorough(t)
	r := idleRig(t, t.TempDir(), nil)
	if out, code := r.run("serve", "--console-link"); code != 2 || !strings.Contains(out, "it needs a terminal") {
		t.Errorf("exit %d: %s", code, out)
	}
	r.start()
	if said := r.announcement(); strings.Contains(said, "link=") {
		t.Errorf("it says\n%s", said)
	}
}

// A person who opens the link gives a name, is in, may do everything, and is out after signing out.
func TestConsoleLinkInBrowser(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	if !testrig.Compulsory("chromium") {
		t.Skip("takes chromium: FINGERPOST_NEED=chromium runs it")
	}
	program := findBrowser(t)
	r := idleRig(t, t.TempDir(), nil)
	link := shownLink.FindStringSubmatch(serveOnTerminal(t, r, new(server), "--console-link"))
	if link == nil {
		t.Fatal("no link")
	}
	b := newTab(t, program, link[1])
	b.open(link[2])
	b.sees("This link signs you in once")
	b.look("sign-in-link")
	b.fill("name", "Ada Lovelace", "email", "ada@example.com")
	b.press("Sign in")
	b.do(chromedp.WaitReady("nav.main", chromedp.ByQuery))
	b.open("/console/keys")
	b.sees("acme", "expired")
	if text := b.text("main"); strings.Contains(text, "console-link") {
		t.Errorf("the key of the session is in the list:\n%s", text)
	}
	acme := catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID("acme"))
	b.open(fmt.Sprintf("/console/edit?kind=project&project=%d", acme))
	b.fill("name", "Named by a guest")
	b.press("Show the change")
	b.press("Save")
	b.sees("Named by a guest")
	if text, err := os.ReadFile(r.path("acme.hcl")); err != nil || !strings.Contains(string(text), "Named by a guest") {
		t.Errorf("the file: %v\n%s", err, text)
	}
	b.open(link[2])
	b.fill("name", "Eve", "email", "eve@example.com")
	b.press("Sign in")
	b.sees("This link was used already")
}
