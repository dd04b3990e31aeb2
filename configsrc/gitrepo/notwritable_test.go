package gitrepo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// A clone whose lock cannot be made does not keep the service from its start. Writes go to the files, those that wait for
// their commit are refused, and all is committed once the lock can be made.
func TestLockOfTheCloneCannotBeMade(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for _, name := range []string{"fingerpost.lock", "fingerpost-tree", "fingerpost-locks"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clone := newClone(t)
			inTheWay := filepath.Join(clone, ".git", name)
			if err := os.Mkdir(inTheWay, 0o755); err != nil {
				t.Fatal(err)
			}
			r := start(t, clone, func(o *gitrepo.Options) { o.Ack = gitrepo.AckCommit })
			p, err := r.resolver.ProjectBySlug("acme")
			if err != nil {
				t.Fatal(err)
			}
			rename := func(name string) error {
				_, err := r.source.Write(t.Context(), &catalog.Edit{By: key("ci", name).Author, Project: &catalog.ProjectEdit{UUID: p.UUID,
					Change: func(p *catalog.ProjectConfig) error { p.Project.Name = name; return nil }}})
				return err
			}
			var e *catalog.Error
			if err := rename("Refused"); !errors.As(err, &e) || e.Code != catalog.CodeUnavailable || !strings.Contains(e.Message, "is a directory") {
				t.Errorf("a write that waits for its commit: %v", err)
			}
			r.end()
			r = start(t, clone, func(o *gitrepo.Options) { o.Ack = gitrepo.AckFile })
			if err := rename("Written"); err != nil {
				t.Error(err)
			}
			if got := r.named("acme"); got != "Written" {
				t.Errorf("live is %q", got)
			}
			if st := r.repo.Status(); st.Pending != 1 || !strings.Contains(st.CommitError, name+": is a directory") {
				t.Errorf("%+v", st)
			}
			if err := os.Remove(inTheWay); err != nil {
				t.Fatal(err)
			}
			testrig.Eventually(t, "all is committed", func() bool {
				st := r.repo.Status()
				return st.Pending == 0 && st.CommitError == ""
			})
			if got := testrig.Git(t, clone, "log", "-1", "--format=%(trailers:key=Fingerpost-Request,valueonly)"); got != "Written" {
				t.Errorf("HEAD has the request %q", got)
			}
			r.clean()
		})
	}
}
