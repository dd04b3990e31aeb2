package tenant_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/api/client/tenant"
	"fingerpost/cmd/testrig"
)

// withFile opens a cache with a file.
func withFile(path string) func(*tenant.Options) {
	return func(o *tenant.Options) { o.File = path }
}

func TestFile(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	path := filepath.Join(t.TempDir(), "answers")
	d := open(t, f, withFile(path))
	d.want("shop.example", "Shop")
	d.want("nobody.example", "unknown")
	d.eventually("the file", func() bool { text, _ := os.ReadFile(path); return strings.Contains(string(text), "shop.example") })
	d.want("a.x.example", "A")
	f.event(7, "domain.changed", "x.example")
	d.eventually("the event", func() bool { return strings.HasSuffix(d.Status().Position, ".7") })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	info, err2 := os.Stat(path)
	if err != nil || err2 != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(err, err2, info.Mode())
	}
	if strings.Contains(string(text), fakeKey) || strings.Contains(string(text), "nobody") || strings.Count(string(text), "\n") != 3 {
		t.Errorf("%s", text)
	}

	f.away()
	d = open(t, f, withFile(path))
	d.want("shop.example", "Shop stale")
	d.want("a.x.example", "A stale")
	d.want("nobody.example", "unavailable")
	if s := d.Status(); s.Entries != 2 || s.Position != epoch+".7" {
		t.Errorf("%+v", s)
	}
	f.set(func() { f.mangle = nil; f.projects["shop.example"] = "New" })
	d.afterWaits("the feed", func() bool { return d.Status().Connected })
	f.questions()
	d.want("shop.example", "New")
	d.want("a.x.example", "A")
	if asked := f.questions(); !strings.Contains(asked, `shop.example inm "tag-Shop" min `+epoch+".7") || !strings.Contains(asked, `a.x.example inm "tag-A"`) {
		t.Errorf("asked %s", asked)
	}
}

// TestFileRefused: a file that is not this cache's, or damaged, is ignored with a word, and a wrong key does not spoil it.
func TestFileRefused(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	path := filepath.Join(t.TempDir(), "answers")
	d := open(t, f, withFile(path))
	d.want("shop.example", "Shop")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f.away()
	other := openSoon(t, newFake(t), withFile(path))
	other.want("nobody.example", "unknown")
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	other.logs("belongs to another URL or key")
	if kept, _ := os.ReadFile(path); string(kept) != string(good) {
		t.Error("a cache of another server without answers has written the file")
	}
	for what, text := range map[string]string{
		"half":      string(good[:len(good)/2]),
		"a letter":  strings.Replace(string(good), "Shop", "Shoq", 1),
		"half line": string(good[:len(good)-10]),
		"nothing":   "",
		"another":   "hello\n",
		"zeros":     string(make([]byte, 4096)),
		"one more":  string(good) + "{}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d := openSoon(t, f, withFile(path))
		if n := d.Status().Entries; n != 0 {
			t.Errorf("%s: %d entries", what, n)
		}
		d.logs("is ignored")
		d.logs("damaged")
		d.Close()
	}
	if err := os.WriteFile(path, good, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	d = open(t, f, withFile(path))
	d.want("shop.example", "Shop stale")
	d.logs("0600")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(err, info.Mode())
	}
}

// TestFileOfTwo: the second process reads the file and does not write, until the first one ends.
func TestFileOfTwo(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	path := filepath.Join(t.TempDir(), "answers")
	has := func(host string) bool { text, _ := os.ReadFile(path); return strings.Contains(string(text), host) }
	first := open(t, f, withFile(path))
	first.want("shop.example", "Shop")
	first.eventually("the file", func() bool { return has("shop.example") })
	second := open(t, f, withFile(path))
	second.want("a.x.example", "A")
	second.eventually("a word", func() bool { return strings.Contains(second.log.String(), "another process") })
	if n := second.Status().Entries; n != 2 || has("a.x.example") {
		t.Errorf("%d entries", n)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	second.want("b.x.example", "B")
	second.afterWaits("the second's file", func() bool { return has("b.x.example") })
}

// TestFileThatCannotBeWritten: a full or read-only disk costs the file, not the answers.
func TestFileThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "none", "answers")
	d := open(t, f, withFile(path))
	d.want("shop.example", "Shop")
	d.eventually("a word", func() bool { return strings.Contains(d.log.String(), "is not written") })
	d.want("a.x.example", "A")
	if err := os.Mkdir(filepath.Join(dir, "none"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.afterWaits("the file", func() bool { _, err := os.Stat(path); return err == nil })
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // the rename fails
		t.Fatal(err)
	}
	d = openSoon(t, f, withFile(path))
	d.want("shop.example", "Shop")
	if err := d.Close(); err == nil {
		t.Error("Close does not tell that the file is not written")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "none", "*.part")); len(left) > 0 {
		t.Error(left)
	}
}

// TestMaxStaleAcrossRestarts: an answer that an open feed has confirmed for long is not too old after a restart.
func TestMaxStaleAcrossRestarts(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	path := filepath.Join(t.TempDir(), "answers")
	both := func(o *tenant.Options) { o.File, o.MaxStale = path, time.Hour }
	d := open(t, f, both)
	d.want("shop.example", "Shop")
	for range 200 { // two hours, of which comments come
		d.time.Advance(40 * time.Second)
		at := d.time.Now()
		f.send(":\n\n")
		d.eventually("the comment", func() bool { return !d.Status().LastContact.Before(at) })
	}
	now := d.time.Now()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	f.away()
	d = openSoon(t, f, func(o *tenant.Options) {
		both(o)
		o.Transport.(testrig.ClockTransport).Advance(time.Until(now) + time.Minute)
	})
	d.want("shop.example", "Shop stale")
	d.time.Advance(time.Hour)
	d.want("shop.example", "unavailable")
}

// TestWarm: one batch before the first lookup; Ready waits for it.
func TestWarm(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	names := []string{"shop.example", "nobody.example", "A.x.example:80", "a b"}
	d := open(t, f, func(o *tenant.Options) { o.Warm = names })
	if asked := f.questions(); asked != "batch shop.example nobody.example a.x.example" {
		t.Errorf("asked %s", asked)
	}
	d.want("shop.example", "Shop")
	d.want("nobody.example", "unknown")
	d.want("a.x.example", "A")
	if asked := f.questions(); asked != "" {
		t.Errorf("asked %s", asked)
	}
	d.logs("a b")
	d.Close()

	f.away()
	var many []string
	for i := range 1001 {
		many = append(many, fmt.Sprint("n", i, ".example"))
	}
	d = openSoon(t, f, func(o *tenant.Options) { o.Warm, o.MaxNegative = append(many, "shop.example"), 2000 })
	d.eventually("a failure", func() bool { return d.Status().LastError != nil })
	if s := d.Status(); s.Connected || s.Entries != 0 {
		t.Errorf("%+v", s)
	}
	f.set(func() { f.mangle = nil })
	d.afterWaits("the answers", func() bool { return d.Status().Negatives == 1001 && d.Status().Entries == 1 })
	d.afterWaits("the feed", func() bool { return d.Status().Connected })
	if err := d.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestClose: nothing runs on, and names in memory still have answers.
func TestClose(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f, withFile(filepath.Join(t.TempDir(), "answers")))
	d.want("shop.example", "Shop")
	hold := make(chan struct{})
	defer close(hold)
	f.set(func() {
		f.mangle = func(w http.ResponseWriter, r *http.Request) bool { <-hold; return true }
	})
	waits := make(chan string)
	go func() { waits <- d.get("a.x.example") }()
	d.eventually("a question", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return slices.Contains(f.asked, "a.x.example") })
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := <-waits; got != "unavailable" {
		t.Error(got)
	}
	d.want("shop.example", "Shop")
	d.want("new.example", "unavailable")
	d.time.Advance(time.Minute)
	d.want("shop.example", "Shop stale")
	if s := d.Status(); s.Connected {
		t.Errorf("%+v", s)
	}
}

// TestCloseLeavesNothing counts goroutines, so it runs alone.
func TestCloseLeavesNothing(t *testing.T) {
	f := newFake(t)
	for range 10 {
		d := openSoon(t, f, func(o *tenant.Options) { o.File, o.Warm = filepath.Join(t.TempDir(), "a"), []string{"shop.example"} })
		d.get("a.x.example")
		d.Close()
	}
	leaked := func() bool {
		buf := make([]byte, 1<<20)
		return strings.Contains(string(buf[:runtime.Stack(buf, true)]), "tenant.(*Cache)")
	}
	testrig.Eventually(t, "the end of the calls", func() bool {
		buf := make([]byte, 1<<20)
		return !strings.Contains(string(buf[:runtime.Stack(buf, true)]), "tenant.(*calls)")
	})
	if leaked() {
		buf := make([]byte, 1<<20)
		t.Errorf("%s", buf[:runtime.Stack(buf, true)])
	}
}
