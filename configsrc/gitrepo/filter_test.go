package gitrepo_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// crypted makes a clone in which a filter encrypts files, and other.hcl is apart from it.
func crypted(t *testing.T, attributes, text string) string {
	t.Helper()
	clone := newClone(t)
	for _, way := range []string{"clean", "smudge"} {
		testrig.Git(t, clone, "config", "filter.rot."+way, "tr a-zA-Z n-za-mN-ZA-M")
	}
	testrig.Git(t, clone, "config", "filter.rot.required", "true")
	save(t, clone, attributes, text)
	save(t, clone, "projects.d/teams/.gitattributes", "* -filter\n")
	testrig.Git(t, clone, "add", "--renormalize", ".")
	testrig.Git(t, clone, "add", ".")
	testrig.Git(t, clone, "commit", "-q", "--allow-empty", "-m", "encrypted")
	return clone
}

// What a filter of git is to encrypt is never committed in plain text: a write to it is refused, and names the filter.
// Removals, and files without the filter, go.
func TestFilterIsNotPassedBy(t *testing.T) {
	t.Parallel()
	for name, set := range map[string][2]string{
		"attributes":       {".gitattributes", "projects.d/** filter=rot\n"},
		"below the folder": {"projects.d/.gitattributes", "*.hcl filter=rot\n"},
		"info":             {".git/info/attributes", "projects.d/*.hcl filter=rot\n"},
		"macro":            {".gitattributes", "[attr]secret filter=rot\nprojects.d/** secret\n"},
		"undefined":        {".gitattributes", "projects.d/** filter=git-crypt\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "attributes" && name != "undefined" {
				testrig.Thorough(t)
			}
			t.Parallel()
			clone := crypted(t, set[0], set[1])
			before := testrig.Git(t, clone, "rev-parse", "HEAD")
			r := start(t, clone, nil)
			filter := "rot"
			if name == "undefined" {
				filter = "git-crypt"
			}
			if st := r.repo.Status(); !strings.Contains(st.FilterError, `"`+filter+`"`) || !strings.Contains(st.FilterError, "projects.d/acme.hcl") {
				t.Errorf("the status says %q", st.FilterError)
			}
			if text, err := gitrepo.Filtered(t.Context(), gitrepo.Options{Dir: r.dir}); err != nil || text != r.repo.Status().FilterError {
				t.Errorf("%q, %v", text, err)
			}
			refused := func(what string, err error) {
				t.Helper()
				var e *catalog.Error
				if !errors.As(err, &e) || e.Code != catalog.CodeReadOnly || !strings.Contains(e.Message, filter) || strings.Contains(e.Message, clone) {
					t.Errorf("%s: %v", what, err)
				}
			}
			_, err := r.write(key("ci", "r1"), "acme", func(p *catalog.ProjectConfig) { p.Project.Name = "confidential" })
			refused("a change", err)
			p := catalog.Project{Name: "confidential", Slug: "new", UUID: catalog.NewUUID(), Status: catalog.StatusDraft}
			_, err = r.source.Write(t.Context(), &catalog.Edit{By: key("ci", "r2").Author, NewProject: &catalog.ProjectConfig{Project: p}})
			refused("a new project", err)
			if files, _ := filepath.Glob(filepath.Join(r.dir, "new*")); len(files) > 0 {
				t.Errorf("the refused write has left %q", files)
			}
			if got := testrig.Git(t, clone, "rev-parse", "HEAD"); got != before {
				t.Error("a commit was made")
			}

			r.mustWrite(key("ci", "r3"), "other", "Open")
			acme, err := r.resolver.ProjectBySlug("acme")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.source.Write(t.Context(), &catalog.Edit{By: key("ci", "r4").Author, Project: &catalog.ProjectEdit{UUID: acme.UUID, Remove: true}}); err != nil {
				t.Errorf("a removal: %v", err)
			}
			testrig.Eventually(t, "both are committed", func() bool { return r.repo.Status().Commits == 2 })
			r.clean()
		})
	}
}

// A filter that is set when a write is in its file already keeps the write out of the history, until it goes again.
func TestFilterSetBeforeTheCommit(t *testing.T) {
	t.Parallel()
	clone := newClone(t)
	r := start(t, clone, func(o *gitrepo.Options) { o.Ack = gitrepo.AckFile })
	testrig.PatientGit(t, clone, "checkout", "-q", "--detach")
	r.mustWrite(key("ci", "r1"), "acme", "confidential")
	save(t, clone, ".git/info/attributes", "projects.d/acme.hcl filter=git-crypt\n")
	r.mustWrite(key("ci", "r2"), "other", "Open")
	testrig.PatientGit(t, clone, "checkout", "-q", "main")
	testrig.Eventually(t, "the status says so", func() bool {
		st := r.repo.Status()
		return st.Pending == 1 && strings.Contains(st.CommitError, "git-crypt")
	})
	if got := testrig.Git(t, clone, "log", "--format=%(trailers:key=Fingerpost-Request,valueonly)", "-1"); got != "r2" {
		t.Errorf("HEAD has the request %q", got)
	}
	save(t, clone, ".git/info/attributes", "# none\n")
	testrig.Eventually(t, "it is committed", func() bool { return r.repo.Status().Pending == 0 })
	r.clean()
}
