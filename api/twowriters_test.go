package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fingerpost/cmd/testrig"
)

// twoWriters is the text that a person saves: the projects of all clients below in one file, with values for what they
// write.
const twoWriters = `# save %d
project "acme" {
  name        = "Acme %d" # by hand
  description = "by hand %d"

  domain "acme.example" { primary = true }

  service_settings {
    mail_enabled = false
  }
}

project "globex" {
  name        = "Globex"
  description = "by hand %d" # of another
}
`

// TestPeopleWin is the promise of configsrc/atomicfile/README.md, When you save at the same moment, that no human save
// is lost. A person saves a file again and again, in every way that editors have, as fast as a script can, while
// clients write to the same objects of it, and to another one next to them.
//
// A save survives if its mark is in the file until the person's own next save. After most saves the person looks for
// the mark, at once or after a write that began after the save; after some the next save follows at once and replaces
// the one before on purpose. Writes that were acknowledged since the last save must be in the file next to the mark:
// after every eighth save all clients stop while both are checked.
func TestPeopleWin(t *testing.T) {
	saves := testrig.Size(t, 3000, 20)
	d := newDesk(t, map[string]string{"acme.hcl": fmt.Sprintf(twoWriters, -1, -1, -1, -1)})
	s := &savers{client: newClient(t, d), acme: d.path(t, "/api/platform/projects/@acme"), globex: d.path(t, "/api/platform/projects/@globex")}
	var running sync.WaitGroup
	for i, write := range []func(n int64) (int, string){s.settings, s.description, s.other, s.domain} {
		running.Go(func() { s.run(i, write) })
	}
	defer running.Wait()
	defer s.stop.Store(true)
	name := filepath.Join(d.dir, "acme.hcl")
	random := rand.New(rand.NewPCG(1, uint64(saves)))
	var marks []string // that the file has to have
	looked := true
	for i := range saves {
		style := random.IntN(editors)
		if style == editorAppends && !looked { // it adds to what the person has seen
			style = editorInPlace
		}
		text := fmt.Sprintf(twoWriters, i, i, i, i)
		if style == editorAppends {
			text = fmt.Sprintf("# save %d\n", i)
			marks = append(marks, text)
		} else {
			marks = []string{fmt.Sprintf("# save %d\n", i), fmt.Sprintf("\"Acme %d\" # by hand\n", i), " # of another\n"}
		}
		saveLike(t, name, text, style)
		saved := s.began.Load()
		has := func() (missing string, content []byte) {
			b, err := os.ReadFile(name)
			for _, m := range marks {
				if !strings.Contains(string(b), m) && !strings.Contains(keptSaves(d), m) {
					return fmt.Sprintf("save %d, style %d: %q is gone, %v", i, style, m, err), b
				}
			}
			return "", b
		}
		looked = i%8 != 3
		if !looked {
			continue
		}
		if i%2 == 0 || i%8 == 7 {
			testrig.Eventually(t, "a write after the save", func() bool { return s.ended.Load() > saved })
			if missing, b := has(); missing != "" {
				t.Fatalf("%s:\n%s", missing, b)
			}
		} else {
			// A write that has taken the save for what it had read gives it back at once.
			testrig.Eventually(t, fmt.Sprintf("save %d to come back", i), func() bool { missing, _ := has(); return missing == "" })
		}
		if i%8 == 7 {
			s.still(t, saved, has)
		}
		if t.Failed() {
			return
		}
	}
	s.stop.Store(true)
	running.Wait()
	testrig.Figure(t, "%d saves at the same time as %d writes that went well and %d that were refused for a save's sake", saves, s.well.Load(), s.refused.Load())
	if s.well.Load() < int64(saves/4) {
		t.Errorf("that is no writing API: %d writes went well", s.well.Load())
	}
	d.compareFresh(t)
	aside := 0
	for path, content := range d.files(t) {
		switch {
		case path == "acme.hcl":
		case keptSave.MatchString(path) && strings.Contains(string(content), "# save "):
			aside++ // a save that could not be put back before the person's next one, and is kept next to it
		default:
			t.Errorf("%s was left behind", path)
		}
	}
	testrig.Figure(t, "%d saves were kept next to the file", aside)
}

// keptSaves returns the saves that are kept next to the file, because another one came in while they were put back.
func keptSaves(d *desk) (all string) {
	kept, _ := filepath.Glob(filepath.Join(d.dir, "acme.hcl.*~"))
	for _, name := range kept {
		b, _ := os.ReadFile(name)
		all += string(b)
	}
	return all
}

var keptSave = regexp.MustCompile(`^acme\.hcl\.\d+~$`)

// savers are the clients that write while the person saves.
type savers struct {
	*client
	acme, globex string // paths

	mu            sync.RWMutex // held for writing while all stand still
	began, ended  atomic.Int64 // numbers of the newest write that has been sent, and of the newest that went well
	well, refused atomic.Int64
	last          [4]struct { // each client's newest that went well
		n    int64
		text string // what the file has to hold
	}
	stop atomic.Bool
}

func (s *savers) run(i int, write func(n int64) (status int, text string)) {
	for !s.stop.Load() {
		s.mu.RLock()
		n := s.began.Add(1)
		switch status, text := write(n); status {
		case http.StatusOK, http.StatusCreated:
			s.last[i].n, s.last[i].text = n, text
			s.well.Add(1)
			for old := s.ended.Load(); old < n && !s.ended.CompareAndSwap(old, n); old = s.ended.Load() {
			}
		case http.StatusConflict, http.StatusNotFound: // a save in between, or a file that is empty just now
			s.refused.Add(1)
		default:
			s.t.Errorf("a client's write: %d", status)
			s.stop.Store(true)
		}
		s.mu.RUnlock()
	}
}

// still stops all clients and looks for the person's marks, and for what has been written since the save.
func (s *savers) still(t *testing.T, saved int64, has func() (string, []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing, b := has()
	if missing != "" {
		t.Fatalf("%s:\n%s", missing, b)
	}
	for i, l := range s.last {
		if l.n > saved && !strings.Contains(strings.Join(strings.Fields(string(b)), " "), l.text) {
			t.Fatalf("client %d has been told that %q is done, write %d, after %d:\n%s", i, l.text, l.n, saved, b)
		}
	}
}

// settings writes the same value that the person writes.
func (s *savers) settings(n int64) (int, string) {
	on := strconv.FormatBool(n%2 == 1)
	return s.ask("PUT", s.acme+"/service-settings", `{"mailEnabled":`+on+`}`, "").status, "mail_enabled = " + on
}

func (s *savers) description(n int64) (int, string) {
	return s.describe(s.acme, n)
}

// other writes to another object of the file.
func (s *savers) other(n int64) (int, string) {
	return s.describe(s.globex, n)
}

func (s *savers) describe(project string, n int64) (int, string) {
	text := fmt.Sprintf("write %d", n)
	return s.ask("PUT", project, `{"description":"`+text+`"}`, "").status, `description = "` + text + `"`
}

// domain adds a block; a person's next save takes it away again.
func (s *savers) domain(n int64) (int, string) {
	name := fmt.Sprintf("w%d.acme.example", n)
	return s.ask("POST", s.acme+"/domains", `{"domain":"`+name+`"}`, "").status, `domain "` + name + `"`
}

// What editors do to save a file.
const (
	editorRenames     = iota // a new file that takes the old one's name
	editorInPlace            // cuts and writes
	editorInPieces           // cuts and writes, line by line
	editorRemoves            // away and anew
	editorBacksUp            // the old one to another name, then anew, as vim does
	editorBacksUpCopy        // a copy under another name, then in place, as vim does with links
	editorAppends            // what a script does with >>
	editors
)

// saveLike writes a file as one of the editors does.
func saveLike(t testing.TB, name, text string, editor int) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	pieces := func(flags int) {
		f, err := os.OpenFile(name, os.O_WRONLY|flags, 0o644)
		check(err)
		for line := range strings.Lines(text) {
			_, err := f.WriteString(line)
			check(err)
		}
		check(f.Close())
	}
	switch editor {
	case editorRenames:
		check(os.WriteFile(name+"~", []byte(text), 0o644))
		check(os.Rename(name+"~", name))
	case editorInPlace:
		check(os.WriteFile(name, []byte(text), 0o644))
	case editorInPieces:
		pieces(os.O_TRUNC)
	case editorRemoves:
		check(os.Remove(name))
		check(os.WriteFile(name, []byte(text), 0o644))
	case editorBacksUp:
		check(os.Rename(name, name+"~"))
		pieces(os.O_CREATE | os.O_EXCL)
		check(os.Remove(name + "~"))
	case editorBacksUpCopy:
		old, err := os.ReadFile(name)
		check(err)
		check(os.WriteFile(name+"~", old, 0o644))
		pieces(os.O_TRUNC)
		check(os.Remove(name + "~"))
	case editorAppends:
		pieces(os.O_APPEND)
	}
}
