package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/gitrepo"
)

// An aheadCase is a way in which proposals are applied while the remote moves.
type aheadCase struct {
	name   string
	flags  []string
	two    bool // two proposals
	clash  bool // a person has pushed another value of the proposal's field
	killed bool // the server is killed while a proposal is applied
}

var aheadCases = []aheadCase{
	{name: "plain", flags: []string{"--git-pull", "1h"}},
	{name: "two proposals", flags: []string{"--git-pull", "1h"}, two: true},
	{name: "killed", flags: []string{"--git-pull", "1h"}, two: true, killed: true},
	{name: "ack push", flags: []string{"--git-pull", "1h", "--git-ack", "push"}, two: true},
	{name: "short pull", flags: []string{"--git-pull", "1s"}, two: true},
	{name: "same field", flags: []string{"--git-pull", "1h"}, clash: true},
}

// Proposals are applied while API writes and people's pushes go on. Afterwards both sides have everything: nothing
// needs a person, each answered write and each commit of a proposal is in the history once, and what was pushed is live.
func TestProposalsWhileTheRemoteMoves(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	rounds := testrig.Size(t, 25, 1)
	for _, c := range aheadCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newProposalRig(t, nil, append([]string{"--git-push"}, c.flags...)...)
			a := &ahead{proposalRig: g, aheadCase: c}
			for n := range rounds {
				a.round(n)
			}
			g.whole(a.requests...)
		})
	}
}

// ahead is a rig in which an aheadCase runs.
type ahead struct {
	*proposalRig
	aheadCase
	requests []string // that were answered, and are commits
}

// write makes an API write with the key that may do everything, in a proposal if its name is not empty.
func (a *ahead) write(proposal, slug, body, request string) {
	a.t.Helper()
	header, want := []string{"X-Request-Id: " + request}, http.StatusOK
	if proposal != "" {
		header, want = append(header, "X-Propose: "+proposal), http.StatusAccepted
	}
	path := a.pathOf(slug)
	var got reply
	testrig.Eventually(a.t, request+" is taken", func() bool {
		got = a.ask(http.MethodPut, path, a.keys["full"], body, header...)
		return got.status != http.StatusServiceUnavailable
	})
	if got.status != want {
		a.t.Fatalf("%s: %d %s", request, got.status, got.body)
	}
	a.requests = append(a.requests, request)
}

func (a *ahead) round(n int) {
	a.t.Helper()
	proposed, written := fmt.Sprintf("Proposed %d", n), fmt.Sprintf("Written %d", n)
	names := []string{fmt.Sprintf("first-%d", n)}
	a.write(names[0], "acme", fmt.Sprintf(`{"description":%q}`, proposed), fmt.Sprintf("propose-%d", n))
	a.write("", "acme", fmt.Sprintf(`{"name":%q}`, written), fmt.Sprintf("write-%d", n))
	if a.two { // it leaves the branch at a commit that may be made again
		names = append(names, fmt.Sprintf("second-%d", n))
		a.write(names[1], "other", fmt.Sprintf(`{"description":%q}`, proposed), fmt.Sprintf("propose-second-%d", n))
		a.write("", "other", fmt.Sprintf(`{"name":%q}`, written), fmt.Sprintf("write-other-%d", n))
	}
	if a.clash {
		proposed = fmt.Sprintf("Pushed %d", n)
		a.pushDescription("acme.hcl", proposed)
	}
	pushed := fmt.Sprintf("pat%d", n)
	a.push(pushed+".hcl", fmt.Sprintf("project %q {\n  name = \"Pat\"\n}\n", pushed))
	for i, name := range names {
		if a.killed && i == len(names)-1 {
			a.applyKilled(name, time.Duration(rand.IntN(60))*time.Millisecond)
		}
		got := a.as("full", "", http.MethodPost, proposalsPath+"/"+name+"/apply", "")
		switch {
		case got.status == http.StatusOK, got.status == http.StatusNotFound && a.killed:
		case got.status == http.StatusConflict && a.clash: // the service has the push already
			a.must(a.as("full", "", http.MethodDelete, proposalsPath+"/"+name, ""), http.StatusOK)
			a.requests = slices.DeleteFunc(a.requests, func(id string) bool { return id == fmt.Sprintf("propose-%d", n) })
		default:
			a.t.Fatalf("apply %s: %d %s", name, got.status, got.body)
		}
	}
	if res, err := a.client.Post(a.ops+"/hooks/git", "", nil); err != nil || res.StatusCode != http.StatusAccepted {
		a.t.Errorf("%v, %v", res, err)
	}
	a.untilGit("both sides are one", func(st gitrepo.Status) bool {
		if st.Conflict != "" {
			a.t.Fatal(st.Conflict)
		}
		return st.Upstream != "" && st.SyncError == "" && st.Pending == 0 && st.Ahead == 0 && st.Behind == 0 &&
			st.Head == a.git(a.remote, "rev-parse", "main")
	})
	testrig.Eventually(a.t, "the push is live", func() bool {
		return a.get(projectsPath+"/by-slug/"+pushed).status == http.StatusOK
	})
	for _, slug := range []string{"acme", "other"}[:len(names)] {
		testrig.Eventually(a.t, "all is live", func() bool {
			got := a.get(projectsPath + "/by-slug/" + slug).body
			return strings.Contains(got, proposed) && strings.Contains(got, written)
		})
		file := a.git(a.remote, "show", "main:projects.d/"+slug+".hcl")
		if !strings.Contains(file, proposed) || !strings.Contains(file, written) {
			a.t.Errorf("the remote has\n%s", file)
		}
	}
}

// applyKilled kills the server some time after it was asked to apply a proposal, and starts it again.
func (a *ahead) applyKilled(name string, after time.Duration) {
	a.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		req, err := http.NewRequest(http.MethodPost, a.url+proposalsPath+"/"+name+"/apply", nil)
		if err != nil {
			return
		}
		req.Header.Set("X-PLATFORM-KEY", a.keys["full"])
		if res, err := a.client.Do(req); err == nil {
			res.Body.Close()
		}
	}()
	select {
	case <-time.After(after):
	case <-ended:
	}
	a.kill()
	<-ended
	a.start()
}

// pushDescription has Pat give a project another description, and push it.
func (g *gitRig) pushDescription(file, text string) {
	g.t.Helper()
	testrig.Eventually(g.t, "Pat's description is pushed", func() bool { // the service may push at the same time
		g.git(g.pats, "fetch", "-q")
		g.git(g.pats, "reset", "-q", "--hard", "origin/main")
		path := filepath.Join(g.pats, "projects.d", file)
		b, err := os.ReadFile(path)
		must(g.t, err)
		lines := slices.DeleteFunc(strings.Split(string(b), "\n"), func(line string) bool {
			return strings.Contains(line, "description")
		})
		lines[0] += fmt.Sprintf("\n  description = %q", text)
		must(g.t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644))
		g.git(g.pats, "commit", "-qam", "pat's description")
		_, err = testrig.TryGit(g.pats, "push", "-q")
		return err == nil
	})
}
