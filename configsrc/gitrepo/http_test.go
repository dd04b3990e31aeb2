package gitrepo_test

import (
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// Push and pull over HTTP, with git's own server.
func TestHTTPRemote(t *testing.T) {
	t.Parallel()
	clone, person := withRemote(t)
	bare := git(t, clone, "remote", "get-url", "origin")
	git(t, bare, "config", "http.receivepack", "true")
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(git(t, clone, "--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(bare), "GIT_HTTP_EXPORT_ALL=1"},
	})
	defer server.Close()
	git(t, clone, "remote", "set-url", "origin", server.URL+"/bare.git")
	r := start(t, clone, syncing)
	if got := r.mustWrite(key("ci", "r1"), "acme", "Over HTTP"); !got.Pushed {
		t.Errorf("%+v, %+v", got, r.repo.Status())
	}
	git(t, person, "pull", "-q")
	edit(t, person, "projects.d/teams/other.hcl", `"Other"`, `"Over HTTP, too"`, "rename")
	git(t, person, "push", "-q")
	r.repo.Sync()
	until(t, "the push is live", func() bool { return strings.HasPrefix(r.named("other"), "Over HTTP, too") })
	r.clean()
}
