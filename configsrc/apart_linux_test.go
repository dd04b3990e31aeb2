package configsrc_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"fingerpost/configsrc"
	"fingerpost/resolver"
)

// TestMain lets the tests' own binary be the process that decodes, if told so by its environment: up to so many files,
// then it dies.
func TestMain(m *testing.M) {
	most, apart := os.LookupEnv("DECODE_APART")
	if !apart {
		os.Exit(m.Run())
	}
	n, err := strconv.Atoi(most)
	if err == nil {
		out := &mortal{Writer: os.Stdout, files: n}
		err = configsrc.DecodeFiles("/proc/self/fd/3", io.MultiWriter(os.NewFile(4, "spool"), out), (*resolver.Resolver)(nil).Pack, os.Stdin, out.Writer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mortal ends the process with the write after so many.
type mortal struct {
	io.Writer
	files int
}

func (m *mortal) Write(b []byte) (int, error) {
	if m.files--; m.files < 0 {
		os.Exit(7)
	}
	return len(b), nil
}

// TestDecodeApart lets a large change be decoded by another process, which may die or not be there at all: what comes in
// is always the same, and what there is to say about some of the files, too.
func TestDecodeApart(t *testing.T) {
	if testing.Short() {
		t.Skip("five large changes")
	}
	for name, c := range map[string]struct {
		program string
		most    int // files until it dies
		starts  bool
	}{
		"all":         {os.Args[0], 1 << 30, true},
		"some":        {os.Args[0], 100, true},
		"none":        {os.Args[0], 0, true},
		"no program":  {filepath.Join(t.TempDir(), "nothing"), 0, false},
		"not decoder": {"/bin/true", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := manyProjects(t, 400)
			n := newNode(t, dir, nodeOptions{data: filepath.Join(t.TempDir(), "store"), loadOnly: true})
			var started atomic.Int64
			var said bytes.Buffer
			source := configsrc.New(configsrc.Options{Dir: dir, Sink: n.resolver, Logger: slog.New(slog.NewTextHandler(&said, nil)), MaxDelete: 1,
				Apart: func(ctx context.Context) *exec.Cmd {
					started.Add(1)
					cmd := exec.CommandContext(ctx, c.program)
					cmd.Env = []string{"DECODE_APART=" + strconv.Itoa(c.most)}
					return cmd
				}})
			n.source = source
			n.load()
			n.run()
			for i := range 400 {
				slug := fmt.Sprintf("p%02d", i)
				text := named(slug, "second", slug+".example")
				switch i {
				case 17:
					text = strings.Replace(text, "{", "{\n  nonsense = true\n", 1)
				case 18:
					text = strings.Replace(text, "project", "# a comment\nproject", 1)
				case 19: // takes a name that another has
					text = named(slug, "second", "p20.example")
				}
				write(t, filepath.Join(dir, slug+".hcl"), text)
			}
			if err := source.Reload(context.Background()); err != nil {
				t.Fatal(err)
			}
			for i := range 400 {
				want := "second"
				if i == 17 || i == 19 {
					want = fmt.Sprintf("p%02d", i)
				}
				if got := n.name(fmt.Sprintf("p%02d.example", i)); got != want {
					t.Errorf("p%02d.example is %q, want %q", i, got, want)
				}
			}
			n.problem("p17.hcl", "nonsense")
			n.problem("p19.hcl", "p20.example")
			if started.Load() == 0 {
				t.Error("no process was asked for")
			}
			if strings.Contains(said.String(), "cannot be started") == c.starts {
				t.Errorf("the log says %s", &said)
			}
		})
	}
}

// TestConflictsDecodedApart: what a copied folder of many files claims a second time is told of with both places, though only
// its claims have come over from the process that decodes.
func TestConflictsDecodedApart(t *testing.T) {
	if testing.Short() {
		t.Skip("a large change")
	}
	const files = 400
	dir := manyProjects(t, files)
	n := newNode(t, dir, nodeOptions{data: filepath.Join(t.TempDir(), "store"), loadOnly: true})
	n.source = configsrc.New(configsrc.Options{Dir: dir, Sink: n.resolver, Logger: slog.New(slog.DiscardHandler), MaxDelete: 1,
		Apart: func(ctx context.Context) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = []string{fmt.Sprint("DECODE_APART=", 1<<30)}
			return cmd
		}})
	n.load()
	n.run()
	for i := range files {
		slug := fmt.Sprintf("p%02d", i)
		write(t, filepath.Join(dir, "copy", slug+".hcl"), project(slug, slug+".example"))
	}
	must(t, n.source.Reload(context.Background()))
	status := n.source.Status()
	told := map[string]bool{}
	for _, d := range status.Problems {
		if strings.Contains(d.Summary, "is declared in") {
			told[d.File] = true
		}
	}
	if status.Quarantined != files || len(told) == 0 || status.Errors < files {
		t.Errorf("%d files are quarantined, with %d errors, of which %d files are named; want %d", status.Quarantined, status.Errors, len(told), files)
	}
}

// TestReloadReadsBodiesApart: whoever asks for a reload has the texts read again that file() names, also of more files than
// are decoded here, and whatever their stamps say.
func TestReloadReadsBodiesApart(t *testing.T) {
	dir := manyProjects(t, 400)
	body := func(text string) string { return "<p>" + text + " {{userName}}</p>" }
	write(t, filepath.Join(dir, "mail.html"), body("one"))
	write(t, filepath.Join(dir, "p17.hcl"), "project \"p17\" {\n  name = \"p17\"\n  domain \"p17.example\" {}\n"+
		"  template \"T\" {\n    name = \"T\"\n    subject_template = \"Hello\"\n    body_html = file(\"mail.html\")\n  }\n}\n")
	outside := filepath.Join(t.TempDir(), "link")
	must(t, os.Link(filepath.Join(dir, "mail.html"), outside))
	n := newNode(t, dir, nodeOptions{loadOnly: true})
	n.source = configsrc.New(configsrc.Options{Dir: dir, Sink: n.resolver, Logger: slog.New(slog.DiscardHandler), MaxDelete: 1,
		Apart: func(ctx context.Context) *exec.Cmd {
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = []string{fmt.Sprint("DECODE_APART=", 1<<30)}
			return cmd
		}})
	n.load()
	n.run()
	unseen(t, outside, body("two"))
	must(t, n.source.Reload(n.ctx))
	p, err := n.resolver.ProjectBySlug("p17")
	must(t, err)
	found, err := n.resolver.OwnTemplate(p.ID, "T")
	must(t, err)
	if found.BodyHTML != body("two") {
		t.Errorf("the body is %q", found.BodyHTML)
	}
}
