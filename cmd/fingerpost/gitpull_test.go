package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fingerpost/api/client"
	"fingerpost/cmd/testrig"
)

// TestGitPullIsAudited: what a pull brings has its author and commit in the audit trail, and in /status where it is
// broken; a save by hand next to it has neither.
func TestGitPullIsAudited(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	testrig.Need(t, "git")
	r := newRig(t, nil)
	r.halt()
	g := newGitRig(t, r)
	r.flags = []string{"--git", "--git-pull", "1s", "--git-domain", "svc.example"}
	r.start()

	newest := func() (e client.AuditEntry) {
		t.Helper()
		var list struct{ Data []client.AuditEntry }
		if err := json.Unmarshal([]byte(r.get("/api/platform/audit?limit=1").body), &list); err != nil || len(list.Data) != 1 {
			t.Fatalf("%v, %+v", err, list)
		}
		return list.Data[0]
	}
	commit := g.push("other.hcl", "project \"other\" {\n  name = \"By Bob\"\n  domain \"other.example\" {}\n  domain \"localhost\" {}\n}\n")
	var e client.AuditEntry
	if err := poll(testrig.Patience, func() error {
		if e = newest(); orEmpty(e.Object) != "other" {
			return fmt.Errorf("the newest entry is %+v\n%s", e, r.logged())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if e.Action != "project.update" || e.Door != "git" || orEmpty(e.Actor) != testrig.Person || orEmpty(e.Commit) != commit {
		t.Errorf("%+v, want it of Bob and commit %s", e, commit)
	}
	if err := poll(testrig.Patience, func() error { // the line follows the entry
		config, _ := r.configLines()
		if last := config[len(config)-1]; last.Msg != "config reloaded" || last.Commit != commit || !slices.Equal(last.Paths, []string{"other.hcl"}) {
			return fmt.Errorf("the log says %+v, want it with commit %s", last, commit)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	broken := g.push("gone.hcl", "project \"gone\" {\n")
	if err := poll(testrig.Patience, func() error {
		_, all, err := r.problems()
		if text := fmt.Sprint(all); err != nil || !strings.Contains(text, "it came with commit "+broken[:12]+" of "+testrig.Person) {
			return fmt.Errorf("%v, %v", all, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	r.put("acme.hcl", "project \"acme\" {\n  name = \"By hand\"\n  domain \"shop.acme.example\" { primary = true }\n}\n")
	if err := poll(testrig.Patience, func() error {
		e = newest()
		if !strings.Contains(r.get("/api/platform/projects/by-slug/acme").body, "By hand") || e.Door == "git" {
			return fmt.Errorf("the newest entry is %+v", e)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if e.Door != "file" || e.Actor != nil || e.Commit != nil {
		t.Errorf("a save by hand: %+v", e)
	}
}
