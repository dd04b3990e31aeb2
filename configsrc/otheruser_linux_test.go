package configsrc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
)

// serviceUser is the user of the service here, and theirs another user: neither is root.
const (
	serviceUser = 64001
	theirs      = 64002
)

// sharedFolder returns a config folder with the file acme.hcl, which belongs to the owner; the folder is the service's,
// and all may write there.
func sharedFolder(t *testing.T, owner int) (dir, name string) {
	t.Helper()
	testrig.NeedRoot(t)
	dir = t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755)) // made by t.TempDir for one user
	must(t, os.Chown(dir, serviceUser, serviceUser))
	must(t, os.Chmod(dir, 0o777))
	name = write(t, filepath.Join(dir, "acme.hcl"), project("acme", "acme.example"))
	must(t, os.Chown(name, owner, owner))
	must(t, os.Chmod(name, 0o666))
	return dir, name
}

// A service is a process that makes the tests' writes as another user, see TestAsService.
type service struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

const serviceFolder = "FINGERPOST_TEST_SERVICE"

// startService runs TestAsService on dir through setpriv with these arguments.
func startService(t *testing.T, dir string, setpriv ...string) *service {
	t.Helper()
	binary, err := os.Open("/proc/self/exe") // the folder that it is in may be closed to the other user
	must(t, err)
	defer binary.Close()
	cmd := exec.Command("setpriv", append(setpriv, "/proc/self/fd/3", "-test.run=^TestAsService$", "-test.count=1")...)
	cmd.ExtraFiles = []*os.File{binary}
	cmd.Env = append(os.Environ(), serviceFolder+"="+dir)
	cmd.Dir = "/"
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the service: %v", err)
		}
	})
	return &service{in, bufio.NewScanner(out)}
}

// asServiceUser are setpriv's arguments for a service without any privilege.
var asServiceUser = []string{fmt.Sprintf("--reuid=%d", serviceUser), fmt.Sprintf("--regid=%d", serviceUser), "--clear-groups"}

// withoutLease are those for a service that may do all but ask who writes a file of somebody else, as in a container.
var withoutLease = []string{"--bounding-set=-lease", "--inh-caps=-lease"}

// write has the service write, and tells what became of it.
func (s *service) write(t *testing.T) (code catalog.Code, message string) {
	t.Helper()
	if _, err := fmt.Fprintln(s.in, "write"); err != nil {
		t.Fatal(err)
	}
	if !s.out.Scan() {
		t.Fatalf("the service is gone: %v", s.out.Err())
	}
	var answer catalog.Error
	if err := json.Unmarshal(s.out.Bytes(), &answer); err != nil {
		t.Fatalf("the service says %q", s.out.Bytes())
	}
	return answer.Code, answer.Message
}

// TestAsService is no test: it is the service of the tests below, in a process of its own. For each line that it reads
// it changes the description of the project acme, and says how that went.
func TestAsService(t *testing.T) {
	dir := os.Getenv(serviceFolder)
	if dir == "" {
		t.Skip("the other tests here start it")
	}
	_, s, end := openDying(t, dir, atomicfile.OSDisk{})
	defer end()
	lines := bufio.NewScanner(os.Stdin)
	for n := 0; lines.Scan(); n++ {
		err := updateProject(context.Background(), s, catalog.DeriveProjectUUID("acme"), func(p *catalog.ProjectConfig) error {
			text := fmt.Sprintf("write %d", n)
			p.Project.Description = &text
			return nil
		})
		var answer *catalog.Error
		if !errors.As(err, &answer) {
			answer = new(catalog.Error)
			if err != nil {
				answer.Code, answer.Message = "FAULT", err.Error()
			}
		}
		must(t, json.NewEncoder(os.Stdout).Encode(answer))
	}
}

// An editor that has the file open for writing keeps its text, for every owner of the file and whatever the service is
// permitted to query.
func TestOpenFileOfAnotherUser(t *testing.T) {
	for _, c := range []struct {
		what    string
		owner   int
		setpriv []string
		want    catalog.Code
		says    []string
	}{
		{"the service owns the file", serviceUser, asServiceUser, catalog.CodeFileChanged, nil},
		{"the editor owns the file", theirs, asServiceUser, catalog.CodeReadOnly, []string{"acme.hcl", "owner", "chown", "CAP_CHOWN"}},
		{"root without CAP_LEASE", theirs, withoutLease, catalog.CodeReadOnly, []string{"acme.hcl", "CAP_LEASE"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir, name := sharedFolder(t, c.owner)
			s := startService(t, dir, c.setpriv...)
			editor, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
			must(t, err)
			code, message := s.write(t)
			_, err = editor.WriteString("# theirs\n")
			must(t, err)
			must(t, editor.Close())
			if !strings.Contains(read(t, name), "# theirs\n") {
				t.Errorf("their text is gone (the write got %q %s)", code, message)
			}
			if code != c.want {
				t.Errorf("the write got %q (%s), want %q", code, message, c.want)
			}
			for _, part := range c.says {
				if !strings.Contains(message, part) {
					t.Errorf("the message %q does not say %q", message, part)
				}
			}
			info, err := os.Stat(name)
			must(t, err)
			if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != c.owner || info.Mode().Perm() != 0o666 {
				t.Errorf("the file belongs to %d, mode %v", st.Uid, info.Mode())
			}
			onlyFiles(t, dir, "acme.hcl")
		})
	}
}

// TestSavesOfAnotherUser counts the in-place saves that are lost while the service writes the same file as another
// user: none. After each save the editor looks for its mark.
func TestSavesOfAnotherUser(t *testing.T) {
	saves := testrig.Size(t, 1000, 30)
	if testrig.Race {
		saves = min(saves, 200)
	}
	for _, c := range []struct {
		what    string
		owner   int
		setpriv []string
		wrote   bool // some writes succeed
	}{
		{"the service owns the file", serviceUser, asServiceUser, true},
		{"the editor owns the file", 0, asServiceUser, false},
		{"root without CAP_LEASE", theirs, withoutLease, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir, name := sharedFolder(t, c.owner)
			s := startService(t, dir, c.setpriv...)
			codes := map[catalog.Code]int{}
			var began, ended atomic.Int64
			stop, writing := make(chan struct{}), sync.WaitGroup{}
			writing.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					n := began.Add(1)
					code, message := s.write(t)
					ended.Store(n)
					codes[code]++
					if code != "" && code != catalog.CodeFileChanged && code != catalog.CodeReadOnly && code != catalog.CodeFileInvalid && code != catalog.CodeNotFound {
						t.Errorf("%s: %s", code, message)
						return
					}
				}
			})
			lost := 0
			random := rand.New(rand.NewPCG(12, uint64(saves)))
			for i := range saves {
				mark := fmt.Sprintf("# save %d\n", i)
				saveInPlace(t, name, mark+project("acme", "acme.example"), random.IntN(3))
				if saved := began.Load(); i%2 == 0 { // look for it after a write that began after the save
					testrig.Eventually(t, "a write after the save", func() bool { return ended.Load() > saved })
				}
				if !hasMark(dir, name, mark) {
					lost++
				}
			}
			close(stop)
			writing.Wait()
			testrig.Figure(t, "%d saves, %d lost; the writes: %v", saves, lost, codes)
			if lost > 0 {
				t.Errorf("%d of %d saves are lost", lost, saves)
			}
			if (codes[""] > 0) != c.wrote {
				t.Errorf("%d writes went well; want some: %v", codes[""], c.wrote)
			}
			info, err := os.Stat(name)
			must(t, err)
			if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != c.owner {
				t.Errorf("the file belongs to %d now, not to %d", st.Uid, c.owner)
			}
		})
	}
}

// saveInPlace overwrites the content of a file: truncating first, truncating last, or piece by piece.
func saveInPlace(t *testing.T, name, text string, how int) {
	t.Helper()
	flags := os.O_WRONLY
	if how != 1 {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, 0)
	must(t, err)
	for piece := range strings.SplitAfterSeq(text, "\n") {
		if how != 2 {
			piece = text
		}
		_, err := f.WriteString(piece)
		must(t, err)
		if how != 2 {
			break
		}
	}
	must(t, f.Truncate(int64(len(text))))
	must(t, f.Close())
}

// hasMark waits until a save is in its file, or kept next to it: a write restores at once what it has taken.
func hasMark(dir, name, mark string) bool {
	for range 2000 {
		all, _ := os.ReadFile(name)
		kept, _ := filepath.Glob(filepath.Join(dir, "acme.hcl.*~"))
		for _, k := range kept {
			b, _ := os.ReadFile(k)
			all = append(all, b...)
		}
		if strings.Contains(string(all), mark) {
			return true
		}
	}
	return false
}
