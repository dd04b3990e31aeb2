package api_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// A person saves a file again and again, in every way that editors have, while the API writes to the same project. Each
// save is still there after the API has written on, and so is what the API has answered for since.
func TestPeopleWin(t *testing.T) {
	const saves = 150
	d := newDesk(t, map[string]string{"acme.hcl": "# save -1\nproject \"acme\" {\n  name = \"Acme\"\n}\n"})
	url := "http://" + d.addr + d.path(t, "/api/platform/projects/@acme/service-settings")
	var began, ended atomic.Int64 // of the API's writes that went well
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := int64(1); !stop.Load(); n++ {
			req, err := http.NewRequest("PUT", url, strings.NewReader(fmt.Sprintf(`{"mailEnabled":%v}`, n%2 == 1)))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("X-PLATFORM-KEY", d.key)
			began.Store(n)
			res, err := conforming(t).Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
			switch res.StatusCode {
			case http.StatusOK:
				ended.Store(n)
			case http.StatusConflict, http.StatusNotFound: // a save in between, or a file that is empty just now
			default:
				t.Errorf("PUT: %d", res.StatusCode)
			}
		}
	}()
	name := filepath.Join(d.dir, "acme.hcl")
	for i := range saves {
		text := fmt.Sprintf("# save %d\nproject \"acme\" {\n  name = \"Acme %d\" # by hand\n\n  service_settings {\n    mail_enabled = false\n  }\n}\n", i, i)
		saveLike(t, name, text, i%4)
		after := began.Load()
		eventually(t, "a write after the save", func() bool { return ended.Load() > after })
		if b, err := os.ReadFile(name); err != nil || !strings.Contains(string(b), fmt.Sprintf("# save %d\n", i)) || !strings.Contains(string(b), fmt.Sprintf(`"Acme %d" # by hand`, i)) {
			t.Fatalf("save %d is gone, %v:\n%s", i, err, b)
		}
	}
	stop.Store(true)
	<-done
	for path := range d.files(t) {
		if path != "acme.hcl" {
			t.Errorf("%s was left behind", path)
		}
	}
}

// saveLike writes a file as one of four editors does.
func saveLike(t testing.TB, name, text string, editor int) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	switch editor {
	case 0: // a new file that takes the old one's name
		check(os.WriteFile(name+"~", []byte(text), 0o644))
		check(os.Rename(name+"~", name))
	case 1: // in place
		check(os.WriteFile(name, []byte(text), 0o644))
	case 2: // in place, in pieces
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
		check(err)
		for line := range strings.Lines(text) {
			_, err := f.WriteString(line)
			check(err)
		}
		check(f.Close())
	case 3: // away and anew
		check(os.Remove(name))
		check(os.WriteFile(name, []byte(text), 0o644))
	}
}
