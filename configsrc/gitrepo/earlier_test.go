package gitrepo_test

import (
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver/catalog"
)

// A write that a crash cut off after its file was replaced, before it was answered, is its author's in the audit trail,
// as it is in the history. A person's save in its place is the person's.
func TestWriteOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	for name, saved := range map[string]string{"ours": "Written", "a person's": "Saved"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clone := newClone(t)
			r := start(t, clone, nil)
			after := strings.Replace(acme, `"Acme"`, `"Written"`, 1)
			by := key("ci", "cut-off").Author
			by.Actor = "Ada <ada@example.com>"
			if err := r.repo.Begin(&catalog.FileWrite{Author: by, Subject: "acme: name",
				Files: []catalog.FileEdit{{Path: "acme.hcl", Before: []byte(acme), After: []byte(after)}}}); err != nil {
				t.Fatal(err)
			}
			r.end()
			save(t, clone, filepath.Join("projects.d", "acme.hcl"), strings.Replace(after, "Written", saved, 1))
			r = start(t, clone, func(o *gitrepo.Options) { o.Ack = gitrepo.AckFile })
			testrig.Eventually(t, "nothing waits", func() bool { return r.repo.Status().Pending == 0 })
			page, err := r.resolver.Audit(catalog.AuditQuery{Page: 1, Limit: 1, Action: "project.update"})
			if err != nil || len(page.Entries) != 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			e := page.Entries[0]
			if saved == "Saved" {
				if e.Door != catalog.DoorFile || e.Actor != "" || e.RequestID != "" || e.Commit != "" {
					t.Errorf("the entry is %+v", e)
				}
				return
			}
			if e.Door != catalog.DoorAPI || e.Actor != by.Actor || e.Key != "ci" || e.RequestID != "cut-off" ||
				e.Commit != testrig.Git(t, clone, "rev-parse", "HEAD") {
				t.Errorf("the entry is %+v", e)
			}
			r.clean()
		})
	}
}
