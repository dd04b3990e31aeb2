package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// guidePorts are the ports that the guides print; each test of a guide puts free ones in their place.
var guidePorts = []string{"8080", "9090", "8081", "8082", "9091", "9092", "4222"}

// customerDomainsGuide is played by TestCustomerDomains, on a machine of its own.
const customerDomainsGuide = "guides/customer-domains.md"

// TestGuides runs the console blocks of each guide as they are printed, in one shell and a fresh folder, with the real
// binary, and compares what they print. In the guide … stands for what differs, and a line of its own with … for any
// lines. A command under which nothing is printed has to print nothing and to succeed. Blocks in the language sh need
// what a test does not have (systemd, docker, kubectl, a package manager, root), and are not run.
func TestGuides(t *testing.T) {
	guides, err := filepath.Glob("guides/*.md")
	if err != nil || len(guides) < 5 {
		t.Fatalf("%d guides: %v", len(guides), err)
	}
	for _, file := range guides {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if words := len(strings.Fields(string(text))); words > 600 {
				t.Errorf("%d words; a guide has at most 600", words)
			}
			steps := guideSteps(t, string(text))
			if len(steps) == 0 {
				if bytes.Contains(text, []byte("```sh")) {
					t.Error("it has commands, and none of them runs in a test")
				}
				return
			}
			if file == customerDomainsGuide {
				return
			}
			switch filepath.Base(file) {
			case "first-project.md":
			case "review-in-git.md", "backup-and-move.md", "systemd.md":
				testrig.Slow(t)
			default:
				testrig.Thorough(t)
			}
			dir := t.TempDir()
			for name, content := range guideFiles(string(text)) {
				must(t, os.MkdirAll(filepath.Join(dir, "work"), 0o755))
				must(t, os.WriteFile(filepath.Join(dir, "work", name), []byte(content), 0o644))
			}
			runGuide(t, steps, dir)
		})
	}
}

// TestGuideSizes: the figures of the guide to sizing are those of the bench's last results.
func TestGuideSizes(t *testing.T) {
	guide, err1 := os.ReadFile("guides/sizing.md")
	figures, err2 := os.ReadFile("../../bench/README.md")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	rows := regexp.MustCompile(`(?m)^\| \d+ \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$`).FindAllStringSubmatch(string(guide), -1)
	if len(rows) < 5 {
		t.Errorf("%d rows in the table", len(rows))
	}
	for _, row := range rows {
		for name, figure := range map[string]string{"resident memory when ready at %s domains, MiB": row[2],
			"start with an empty store at %s domains, s": row[3]} {
			if want := fmt.Sprintf("| "+name+" | %s |", row[1], figure); !bytes.Contains(figures, []byte(want)) {
				t.Errorf("bench/README.md has no row %q", want)
			}
		}
	}
}

// A guideStep is a command of a guide and what it prints.
type guideStep struct {
	command, prints string
}

// guideSteps returns the commands of a guide's console blocks. A command goes on after a backslash, and up to EOF.
func guideSteps(t *testing.T, text string) (steps []guideStep) {
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```").FindAllStringSubmatch(text, -1) {
		open := false
		for line := range strings.Lines(block[1]) {
			command, begins := strings.CutPrefix(line, "$ ")
			switch last := len(steps) - 1; {
			case open:
				steps[last].command += line
				heredoc := strings.Contains(steps[last].command, "<<'EOF'")
				open = heredoc && line != "EOF\n" || !heredoc && strings.HasSuffix(line, "\\\n")
			case begins:
				steps = append(steps, guideStep{command: command})
				open = strings.Contains(command, "<<'EOF'") || strings.HasSuffix(command, "\\\n")
			case last < 0:
				t.Fatalf("%q is printed by no command", line)
			default:
				steps[last].prints += line
			}
		}
	}
	return steps
}

// guideFiles returns the programs of a guide: blocks in another language whose first line names a file.
func guideFiles(text string) map[string]string {
	files := map[string]string{}
	for _, block := range regexp.MustCompile("(?ms)^```[a-z]+\n((?://|#) ([a-z]+\\.[a-z]+)\n.*?)^```").FindAllStringSubmatch(text, -1) {
		files[block[2]] = block[1]
	}
	return files
}

// pattern is what the output has to match: spaces count as one, since columns are as wide as what is in them.
func (s guideStep) pattern() *regexp.Regexp {
	quoted := regexp.QuoteMeta(squeezed(s.prints))
	quoted = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(quoted, `(?s:(?:.*\n)?)`)
	quoted = regexp.MustCompile(`(?m)^…$`).ReplaceAllString(quoted, `(?s:.*)`)
	return regexp.MustCompile("^" + strings.ReplaceAll(quoted, "…", ".*") + "$")
}

func squeezed(s string) string {
	return strings.TrimSpace(regexp.MustCompile(`(?m)[ \t]+$|\n+$`).ReplaceAllString(regexp.MustCompile(` +`).ReplaceAllString(s, " "), ""))
}

// runGuide pastes all steps at once into a shell in the folder work of dir, which may have files: no command waits for a
// reader who looks whether the one before has had its effect.
func runGuide(t *testing.T, steps []guideStep, dir string) {
	there, back := guideAddresses(t)
	shell := startGuideShell(t, dir, there, back, "FINGERPOST_LISTEN="+there.Replace("127.0.0.1:8080"),
		"FINGERPOST_OPS_LISTEN="+there.Replace("127.0.0.1:9090"), "FINGERPOST_CACHE_SIZE=8MiB")
	for _, step := range steps {
		shell.typeStep(step)
	}
	for i, step := range steps {
		shell.check(step, i)
	}
}

// A guideShell is the shell of a guide's reader.
type guideShell struct {
	t           *testing.T
	work        string // its folder
	outputs     string // the folder of what commands print
	stdin       io.Writer
	there, back *strings.Replacer // of addresses
	typed       int               // steps
}

// startGuideShell starts a shell in the folder work of dir, which may have files.
func startGuideShell(t *testing.T, dir string, there, back *strings.Replacer, env ...string) *guideShell {
	s := &guideShell{t: t, work: filepath.Join(dir, "work"), outputs: filepath.Join(dir, "outputs"), there: there, back: back}
	for _, d := range []string{s.work, s.outputs} {
		must(t, os.MkdirAll(d, 0o755))
	}
	shell := exec.Command("bash", "--norc", "--noprofile", "-s")
	shell.Dir = s.work
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Env = append([]string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8",
		"NO_COLOR=1", "GIT_CONFIG_GLOBAL=" + filepath.Join(dir, "gitconfig")}, env...)
	stdin, err := shell.StdinPipe()
	must(t, err)
	must(t, shell.Start())
	t.Cleanup(func() {
		stdin.Close()
		syscall.Kill(-shell.Process.Pid, syscall.SIGTERM)
		shell.Wait()
	})
	s.stdin = stdin
	return s
}

// play runs a step, and returns what it prints.
func (s *guideShell) play(step guideStep) string {
	s.t.Helper()
	return s.check(step, s.typeStep(step))
}

// out is the file of what step i prints; its exit code stands beside it, once it has ended.
func (s *guideShell) out(i int) string { return filepath.Join(s.outputs, strconv.Itoa(i)) }

// typeStep types a step, and returns its number.
func (s *guideShell) typeStep(step guideStep) int {
	out := s.out(s.typed)
	fmt.Fprintf(s.stdin, "{ %s\n} >%s 2>&1\necho $? >%[2]s.new; mv %[2]s.new %[2]s.code\n",
		strings.TrimSuffix(s.there.Replace(step.command), "\n"), out)
	s.typed++
	return s.typed - 1
}

// check waits for the end of step i, and returns what it prints, which is as in the guide. A command in the background
// goes on printing.
func (s *guideShell) check(step guideStep, i int) string {
	s.t.Helper()
	out, want := s.out(i), step.pattern()
	testrig.Eventually(s.t, "the end of "+step.command, func() bool { _, err := os.Stat(out + ".code"); return err == nil })
	for end := time.Now().Add(testrig.Patience / 3); ; <-time.After(20 * time.Millisecond) {
		printed, code := readText(s.t, out), readText(s.t, out+".code")
		got := squeezed(s.back.Replace(printed))
		if want.MatchString(got) && (step.prints != "" || code == "0\n") {
			return printed
		}
		if !strings.HasSuffix(step.command, "&\n") || time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(s.work, "serve.log"))
			s.t.Fatalf("$ %sprints\n%s\nexit code %s\nand in the guide\n%s\nserve.log:\n%s", step.command, got, code, step.prints, log)
		}
	}
}

// guideAddresses puts free ports in the place of the printed ones, and back.
func guideAddresses(t *testing.T) (there, back *strings.Replacer) {
	var to, from []string
	for _, port := range guidePorts {
		free := strconv.Itoa(testrig.FreePort(t))
		to = append(to, "127.0.0.1:"+port, "127.0.0.1:"+free, "= "+port, "= "+free, "PORT="+port, "PORT="+free)
		from = append(from, "127.0.0.1:"+free, "127.0.0.1:"+port)
	}
	return strings.NewReplacer(to...), strings.NewReplacer(from...)
}
