package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

func (b badFile) drop(r *rig) {
	r.t.Helper()
	if b.make == nil {
		r.put(b.name, b.text)
	} else if err := b.make(r.path(b.name)); err != nil {
		r.t.Fatal(err)
	}
}

// A diagnostic is a problem as /status and validate --json show it.
type diagnostic struct {
	Severity, Summary, Detail, File, Snippet string
	Start                                    struct{ Line, Column int }
}

func (r *rig) problems() (state string, all []diagnostic, err error) {
	var status struct {
		Config struct {
			State    string
			Problems []diagnostic
		}
	}
	body, err := fetch(r.ops + "/status")
	if err == nil {
		err = json.Unmarshal(body, &status)
	}
	if i, j := catalog.FindKeyText(body); j > i {
		r.t.Errorf("/status shows a whole key")
	}
	if strings.Contains(string(body), clearSecret) {
		r.t.Errorf("/status shows a secret")
	}
	return status.Config.State, status.Config.Problems, err
}

// named finds the first problem of a file, and checks that it has a hint.
func (b badFile) named(all []diagnostic) (*diagnostic, error) {
	for _, d := range all {
		if filepath.Base(d.File) != b.name || d.Severity != "error" {
			continue
		}
		said := d.Summary + ": " + d.Detail
		if !regexp.MustCompile(b.says).MatchString(said) || len(d.Summary) < 8 {
			return &d, fmt.Errorf("%s: %q does not say %s", b.name, cutMiddle(said, 300), b.says)
		}
		if d.Start.Line != b.line {
			return &d, fmt.Errorf("%s: line %d, want %d: %s", b.name, d.Start.Line, b.line, cutMiddle(said, 300))
		}
		if len(said) > 2000 || len(d.Snippet) > 2000 || strings.ContainsAny(d.Snippet+said, "\x00\x1b\x07") {
			return &d, fmt.Errorf("%s: no problem for a terminal: %d and %d bytes %.100q", b.name, len(said), len(d.Snippet), d.Snippet)
		}
		return &d, nil
	}
	return nil, fmt.Errorf("%s is not among %d problems", b.name, len(all))
}

// breaks drops bad files, checks that /status and validate name each of them, and removes them again.
func (r *rig) breaks(bad ...badFile) {
	r.t.Helper()
	for _, b := range bad {
		b.drop(r)
	}
	for _, b := range bad {
		b.await(r)
	}
	r.validates(bad...)
	for _, b := range bad {
		if err := os.RemoveAll(r.path(b.name)); err != nil {
			r.t.Error(err)
		}
	}
	r.awaitOK()
}

// await waits for the file in /status, and checks what is said about it there.
func (b badFile) await(r *rig) {
	r.t.Helper()
	var said error
	err := poll(testrig.Patience, func() error {
		_, all, err := r.problems()
		d, wrong := b.named(all)
		if said = wrong; err == nil && d == nil {
			err = wrong
		}
		return err
	})
	if err == nil {
		err = said
	}
	if err != nil {
		r.t.Error("status: ", err)
	}
}

// validates checks that the command names bad files.
func (r *rig) validates(bad ...badFile) {
	r.t.Helper()
	text, code := r.run("validate")
	if code != 1 {
		r.t.Errorf("validate: exit code %d, want 1: %s", code, cutMiddle(text, 500))
	}
	for _, b := range bad {
		at := regexp.QuoteMeta(b.name) + ":"
		if b.line > 0 {
			at += fmt.Sprintf(`%d:\d+:`, b.line)
		}
		if !regexp.MustCompile(`(?m)\b` + at + ` error: `).MatchString(text) {
			r.t.Errorf("validate does not name %s: %s", at, cutMiddle(text, 500))
		}
	}
}

func (r *rig) awaitOK() {
	r.t.Helper()
	err := poll(testrig.Patience, func() error {
		state, all, err := r.problems()
		if err == nil && (state != "ok" || len(all) > 0) {
			err = fmt.Errorf("state %s with %v", state, all)
		}
		return err
	})
	if err != nil {
		r.t.Error(err)
	}
}

// highWater returns the peak memory of the server.
func (r *rig) highWater() (mib int) {
	r.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.pid))
	if err == nil {
		_, rest, _ := strings.Cut(string(b), "VmHWM:")
		_, err = fmt.Sscan(rest, &mib)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return mib >> 10
}

// mostGrowth bounds, in MiB, what bad files may add to the memory of a server without the race detector. CI measures it
// in a step of its own.
const mostGrowth = 192

func fetch(url string) ([]byte, error) {
	res, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("%s: %s", url, res.Status))
	}
	return b, err
}

// probe asks and returns the status alone.
func probe(url, key string) (int, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-PLATFORM-KEY", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, errors.Join(err, res.Body.Close())
}

// throughout asks for a good project all the time until stop is called.
func (r *rig) throughout() (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond) // the machine has other work to do, too
		defer tick.Stop()
		for {
			if status, err := probe(r.url+resolvePath+"shop.acme.example", r.keys["all"]); err != nil || status != 200 {
				r.t.Errorf("the good project gets %d, %v", status, err)
				return
			}
			select {
			case <-end:
				return
			case <-tick.C:
			}
		}
	}()
	return sync.OnceFunc(func() { close(end); <-done })
}
