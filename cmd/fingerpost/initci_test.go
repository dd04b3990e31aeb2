package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"fingerpost/cmd/testrig"
)

// pipelines are what init --ci writes for servers, with how each hands the steps to a shell.
var pipelines = []struct {
	file  string
	steps func(text []byte) ([]string, error)
}{
	{".github/workflows/fingerpost.yml", func(text []byte) (steps []string, err error) {
		var file struct {
			Jobs struct {
				Validate struct{ Steps []struct{ Run string } }
			}
		}
		err = yaml.Unmarshal(text, &file)
		for _, s := range file.Jobs.Validate.Steps {
			steps = append(steps, s.Run)
		}
		return steps, err
	}},
	{".gitlab-ci.fingerpost.yml", func(text []byte) ([]string, error) {
		var file struct{ Fingerpost struct{ Script []string } }
		err := yaml.Unmarshal(text, &file)
		return []string{strings.Join(file.Fingerpost.Script, "\n")}, err
	}},
}

// TestPipelines: the steps that init --ci writes install fingerpost from an archive of a release, or from a clone of the
// source, and check the files of a branch with it.
func TestPipelines(t *testing.T) {
	testrig.Thorough(t) // it builds the program from a clone
	tree, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(tree, ".git")); err != nil {
		t.Skip("the tree is not a git checkout, of which a clone could be made")
	}
	testrig.Need(t, "git", "curl")
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	run(t, r.dir, "git", "init", "-q", ".")
	if said, code := r.run("init", "--ci", "github,gitlab"); code != 0 || !strings.Contains(said, "next: set FINGERPOST_ARCHIVE") {
		t.Fatalf("init --ci ends with %d: %s", code, said)
	}
	if said, code := r.run("fmt"); code != 0 {
		t.Fatalf("fmt ends with %d: %s", code, said)
	}
	run(t, r.dir, "git", "add", "-A")
	run(t, r.dir, "git", "-c", "user.name=ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", "start")
	run(t, r.dir, "git", "update-ref", "refs/remotes/origin/main", "HEAD")
	r.put("new.hcl", "project \"added\" {\n  name = \"Added\"\n}\n")

	archive := archived(t, tree)
	for i, p := range pipelines {
		sources := []string{"FINGERPOST_ARCHIVE: 'file://" + archive + "'"}
		if i == 0 || testrig.Full() { // a build takes a minute, and both files install with the same lines
			sources = append(sources, "FINGERPOST_SOURCE: 'file://"+tree+"'")
		}
		for _, source := range sources {
			if said, err := r.pipeline(p.file, source, p.steps); err != nil || !strings.Contains(said, "added") {
				t.Errorf("%s with %s: %v\n%s", p.file, source, err, said)
			}
		}
		if said, err := r.pipeline(p.file, "", p.steps); err == nil || !strings.Contains(said, "FINGERPOST_ARCHIVE has to be set") {
			t.Errorf("%s as it is written: %v\n%s", p.file, err, said)
		}
	}
	if err := os.WriteFile(archive, []byte("other bytes"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range pipelines {
		if said, err := r.pipeline(p.file, "FINGERPOST_ARCHIVE: 'file://"+archive+"'", p.steps); err == nil || !strings.Contains(said, "FAILED") {
			t.Errorf("%s with other bytes than SHA256SUMS has: %v\n%s", p.file, err, said)
		}
	}
}

// archived makes a folder of a release as .ci/release does, with one archive, whose path it returns.
func archived(t *testing.T, tree string) string {
	t.Helper()
	dir, name := t.TempDir(), "fingerpost_1.2.3_linux_amd64"
	run(t, tree, "go", "build", "-o", filepath.Join(dir, name, "fingerpost"), "./cmd/fingerpost")
	run(t, dir, "tar", "-czf", name+".tar.gz", name)
	content, err := os.ReadFile(filepath.Join(dir, name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	sums := fmt.Sprintf("%064d  fingerpost_1.2.3_amd64.deb\n%x  %s.tar.gz\n", 0, sha256.Sum256(content), name)
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name+".tar.gz")
}

// pipeline runs the steps of a file in which a person has set a variable, as "NAME: 'value'". The shell finds no other
// fingerpost than the one that the steps install.
func (r *rig) pipeline(file, set string, stepsOf func([]byte) ([]string, error)) (said string, err error) {
	text, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil {
		return "", err
	}
	steps, err := stepsOf(text)
	if err != nil {
		return "", err
	}
	env := []string{"HOME=" + os.Getenv("HOME"), "TMPDIR=" + r.t.TempDir(), "GITHUB_BASE_REF=main", "CI_MERGE_REQUEST_DIFF_BASE_SHA=HEAD",
		"FINGERPOST_ARCHIVE=", "FINGERPOST_SOURCE="}
	if name, value, ok := strings.Cut(set, ": "); ok {
		if !strings.Contains(string(text), name+": ''") {
			return "", fmt.Errorf("%s is not in the file", name)
		}
		env = append(env, name+"="+strings.Trim(value, "'"))
	}
	goProgram, err := exec.LookPath("go")
	if err != nil {
		return "", err
	}
	path, added := filepath.Dir(goProgram)+":/usr/bin:/bin", filepath.Join(r.t.TempDir(), "path")
	for _, step := range steps {
		more, _ := os.ReadFile(added) // what a step of GitHub has added to PATH for the next ones
		cmd := exec.Command("bash", "-e", "-c", step)
		cmd.Dir = r.dir
		cmd.Env = append(env, "GITHUB_PATH="+added, "PATH="+strings.TrimSpace(string(more))+":"+path)
		out, err := cmd.CombinedOutput()
		said += string(out)
		if err != nil {
			return said, err
		}
	}
	return said, nil
}
