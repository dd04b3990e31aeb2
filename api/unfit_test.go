package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

const initech = `project "initech" {
  name = "Initech"
}
`

// TestWriteToAnUnfitFile: a file that must not be replaced, whatever is in it, is named in the refusal, and left alone.
func TestWriteToAnUnfitFile(t *testing.T) {
	for _, c := range []struct {
		name, why string
		make      func(t *testing.T, file string)
	}{
		{"hard link", "it has 2 hard links", func(t *testing.T, file string) {
			if err := os.Link(file, filepath.Join(t.TempDir(), "other")); err != nil {
				t.Fatal(err)
			}
		}},
		{"link that leads out", "a link that leads out of the config folder", func(t *testing.T, file string) {
			outside := filepath.Join(t.TempDir(), "initech.hcl")
			if err := os.WriteFile(outside, []byte(initech), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, file); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, map[string]string{"initech.hcl": initech})
			file := filepath.Join(d.dir, "initech.hcl")
			c.make(t, file)
			for _, e := range []exchange{{method: "PUT", path: "/api/platform/projects/@initech", body: `{"description":"x"}`}, {method: "DELETE", path: "/api/platform/projects/@initech"}} {
				status, _, body := d.try(t, e)
				if status != 409 || !strings.Contains(body, "CONFIG_READ_ONLY") || !strings.Contains(body, "initech.hcl") || !strings.Contains(body, c.why) {
					t.Errorf("%s: %d %s", e.method, status, body)
				}
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != initech {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestDeleteNextToANewProject: a person has just added another project to the file, which the service has not seen yet.
// The deletion must not turn into a rename of the one to the other.
func TestDeleteNextToANewProject(t *testing.T) {
	d := newDesk(t, map[string]string{"initech.hcl": initech})
	const added = "\nproject \"human-new\" {\n  name = \"New\"\n}\n"
	c := newClient(t, d)
	path := d.path(t, "/api/platform/projects/@initech")
	d.save(t, map[string]string{"initech.hcl": initech + added})
	if _, ok := c.want(200, "DELETE", path, ""); !ok {
		t.FailNow()
	}
	if got := d.files(t)["initech.hcl"]; strings.TrimSpace(got) != strings.TrimSpace(added) {
		t.Errorf("left in the file: %q", got)
	}
	testrig.Eventually(t, "the new project", func() bool { _, err := d.resolver.ProjectBySlug("human-new"); return err == nil })
}

// TestCreateNamesWhatFails: a slug that is made from the name is no failing field where the name is the problem.
func TestCreateNamesWhatFails(t *testing.T) {
	d := newDesk(t, map[string]string{"initech.hcl": initech})
	for body, want := range map[string]string{
		`{"name":5}`: "name", `{}`: "name", `{"description":5}`: "name description", `{"name":" "}`: "name", `{"name":"漢"}`: "slug",
		`{"name":5,"slug":"A"}`: "name slug", `{"name":"` + strings.Repeat("a", 121) + `"}`: "name",
	} {
		a := d.askBody("POST", "/api/platform/projects", d.key, body, "Content-Type: application/json")
		a.check(t, 400, "VALIDATION_ERROR")
		if got := strings.Join(a.fields(), " "); got != want {
			t.Errorf("%.60s: fields %q, want %q", body, got, want)
		}
	}
}
