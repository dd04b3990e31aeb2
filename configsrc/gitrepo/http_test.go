package gitrepo_test

import (
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// httpBackend is git's own HTTP server for the repositories in a folder.
func httpBackend(t testing.TB, folder string, env ...string) *cgi.Handler {
	t.Helper()
	return &cgi.Handler{
		Path:   filepath.Join(testrig.Git(t, folder, "--exec-path"), "git-http-backend"),
		Stderr: io.Discard,
		Env:    append(env, "GIT_PROJECT_ROOT="+folder, "GIT_HTTP_EXPORT_ALL=1"),
	}
}

// Push and pull over HTTP, with git's own server.
func TestHTTPRemote(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone, person := withRemote(t)
	bare := testrig.Git(t, clone, "remote", "get-url", "origin")
	testrig.Git(t, bare, "config", "http.receivepack", "true")
	server := httptest.NewServer(httpBackend(t, filepath.Dir(bare)))
	defer server.Close()
	testrig.Git(t, clone, "remote", "set-url", "origin", server.URL+"/bare.git")
	r := start(t, clone, syncing)
	if got := r.mustWrite(key("ci", "r1"), "acme", "Over HTTP"); !got.Pushed {
		t.Errorf("%+v, %+v", got, r.repo.Status())
	}
	testrig.Git(t, person, "pull", "-q")
	edit(t, person, "projects.d/teams/other.hcl", `"Other"`, `"Over HTTP, too"`, "rename")
	testrig.Git(t, person, "push", "-q")
	r.repo.Sync()
	testrig.Eventually(t, "the push is live", func() bool { return strings.HasPrefix(r.named("other"), "Over HTTP, too") })
	r.clean()
}

// A remote that advertises a commit and does not have all of it, or does not send it: the status says so, nothing of
// the clone changes, writes go on, and the next good fetch takes the commit.
func TestLyingRemote(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	clone, person := withRemote(t)
	bare := testrig.Git(t, clone, "remote", "get-url", "origin")
	edit(t, person, "projects.d/teams/other.hcl", `"Other"`, `"Other of Pat"`, "rename")
	folder := filepath.Dir(bare)
	honest := httpBackend(t, folder)
	// The pack has the commit alone, without its folders and files. git calls this program in the place of pack-objects.
	packer := filepath.Join(folder, "packer")
	save(t, folder, "packer", "#!/bin/sh\ncat > /dev/null\ngit rev-parse main | exec git pack-objects --stdout -q\n")
	if err := os.Chmod(packer, 0o777); err != nil {
		t.Fatal(err)
	}
	save(t, folder, "gitconfig", "[uploadpack]\n\tpackObjectsHook = "+packer+"\n")
	short := httpBackend(t, folder, "GIT_CONFIG_GLOBAL="+filepath.Join(folder, "gitconfig"))
	var handler atomic.Pointer[http.Handler]
	serve := func(h http.Handler) { handler.Store(&h) }
	serve(honest)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { (*handler.Load()).ServeHTTP(w, req) }))
	defer server.Close()
	testrig.Git(t, clone, "remote", "set-url", "origin", server.URL+"/bare.git")
	r := start(t, clone, func(o *gitrepo.Options) { o.Pull = time.Hour })
	testrig.Eventually(t, "the first round", func() bool { return !r.repo.Status().LastFetch.IsZero() })

	testrig.Git(t, person, "push", "-q")
	testrig.Git(t, bare, "update-server-info") // for clients that read files
	blob := testrig.Git(t, bare, "rev-parse", "main:projects.d/teams/other.hcl")
	object := func(id string) string { return filepath.Join(bare, "objects", id[:2], id[2:]) }
	refs := func() string {
		return testrig.Git(t, clone, "for-each-ref", "--format=%(refname) %(objectname)", "refs/remotes", "refs/fingerpost")
	}
	testrig.Eventually(t, "the first round has noted its base", func() bool { return strings.Contains(refs(), "refs/fingerpost/base/") })
	before := refs()
	for _, c := range []struct {
		name, want string
		handler    http.Handler
		without    string // a file
	}{
		{"a pack without files", "did not send all necessary objects", short, ""},
		{"a file that the remote has lost", "unable to read " + blob, honest, object(blob)},
		{"a file that is not served", "Unable to find " + blob, http.FileServer(http.Dir(folder)), object(blob)},
		{"a commit that the remote has lost", "not our ref", honest, object(testrig.Git(t, bare, "rev-parse", "main"))},
	} {
		if c.without != "" {
			if err := os.Rename(c.without, c.without+".away"); err != nil {
				t.Fatal(err)
			}
		}
		serve(c.handler)
		r.repo.Sync()
		testrig.Eventually(t, c.name, func() bool { return strings.Contains(r.repo.Status().SyncError, c.want) })
		if got := r.mustWrite(key("ci", c.name), "acme", c.name); got.Commit == "" {
			t.Errorf("%s: a write is answered with %+v", c.name, got)
		}
		if name := r.named("other"); name != "Other" || refs() != before || r.repo.Status().Conflict != "" {
			t.Errorf("%s: the name is %s, %+v, the refs are\n%s\nbefore\n%s", c.name, name, r.repo.Status(), refs(), before)
		}
		if c.without != "" {
			if err := os.Rename(c.without+".away", c.without); err != nil {
				t.Fatal(err)
			}
		}
	}
	serve(honest)
	r.repo.Sync()
	testrig.Eventually(t, "the push is live", func() bool { return r.named("other") == "Other of Pat" && r.repo.Status().SyncError == "" })
	if st := r.repo.Status(); st.Ahead != 4 || st.Behind != 0 {
		t.Errorf("%+v", st)
	}
	r.clean()
}
