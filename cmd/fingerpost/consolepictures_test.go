package main

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
)

const consoleFolder = "../../api/console"

// noPages are addresses below /console/ that are no pages: files, streams, and the content of frames.
var noPages = []string{"/console/assets/{name}", "/console/now/stream", "/console/live/stream", "/console/smtp-test/{id}",
	"/console/frames/{id}", "/console/find-projects"}

// consolePages lists the addresses of pages that the console's code has, as patterns.
func consolePages(t *testing.T) []string {
	t.Helper()
	pattern := regexp.MustCompile(`"GET (/console/[^"]*)"`)
	found := map[string]bool{}
	err := filepath.WalkDir(consoleFolder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range pattern.FindAllStringSubmatch(readText(t, path), -1) {
			if !slices.Contains(noPages, m[1]) {
				found[m[1]] = true
			}
		}
		return nil
	})
	must(t, err)
	if len(found) < 20 {
		t.Fatalf("the console has only %d pages: %v", len(found), found)
	}
	return slices.Sorted(maps.Keys(found))
}

// A looker looks at pages, and notes which.
type looker struct {
	*visit
	*tab
	mux  *http.ServeMux
	seen map[string]bool // patterns of pages
}

func newLooker(t *testing.T, v *visit) *looker {
	l := &looker{visit: v, tab: v.tab(), mux: http.NewServeMux(), seen: map[string]bool{}}
	for _, pattern := range consolePages(t) {
		l.mux.Handle(pattern, http.NotFoundHandler())
	}
	return l
}

// look is that of its tab, and notes that somebody has looked at the page.
func (l *looker) look(name string) {
	l.test.Helper()
	at := &http.Request{Method: http.MethodGet, URL: mustURL(l.test, "http://console"+l.at())}
	_, pattern := l.mux.Handler(at)
	l.seen[pattern] = true
	l.tab.look(name)
}

// shown lists the pictures that the console's README shows.
func shown(t *testing.T) (names []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`"pictures/([a-z-]+\.png)"`).FindAllStringSubmatch(readText(t, consoleFolder+"/README.md"), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

// The folder has the pictures that the README shows, light and dark, and no others.
func TestConsolePictureFiles(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(consoleFolder + "/pictures")
	must(t, err)
	var files []string
	total := int64(0)
	for _, e := range entries {
		files = append(files, e.Name())
		info, err := e.Info()
		must(t, err)
		total += info.Size()
	}
	names := shown(t)
	if !slices.Equal(files, names) {
		t.Errorf("the README shows\n%v\nthe folder has\n%v", names, files)
	}
	for _, name := range names {
		if dark := strings.TrimSuffix(name, ".png") + "-dark.png"; !strings.HasSuffix(name, "-dark.png") && !slices.Contains(names, dark) {
			t.Errorf("%s has no dark counterpart", name)
		}
	}
	if total > 5<<18 {
		t.Errorf("the pictures have %d bytes, which is more than 1.25 MiB", total)
	}
}

// TestConsolePictures looks at every page. A page that the console has and that is not looked at is an error.
// FINGERPOST_PICTURES=FOLDER keeps a picture of each, and FINGERPOST_WRITE=1 those of the README, too.
func TestConsolePictures(t *testing.T) {
	v := idleVisit(t)
	testrig.Need(t, "git")
	zone := newDNSZone(t, nameServerOfDesk)
	newGitRig(t, v.rig)
	v.flags = append(v.flags, "--git", "--dns-resolver", nameServerOfDesk, "--dns-allow", "127.0.0.0/8")
	v.begin()
	l := newLooker(t, v)
	at := func(name, path string) {
		t.Helper()
		l.open(path)
		l.look(name)
	}
	l.size(1280, false)
	at("sign-in", "/console/sign-in")
	l.signIn(v.admin)
	for i := range 40 { // for the figures, the log and the list of changes
		v.ask(http.MethodGet, fmt.Sprintf("/api/platform/projects/resolve?domain=shop%d.acme.example", i%4), v.admin, "")
	}
	at("look-up", "/console/lookup?domain=www.acme.example")
	at("look-up-miss", "/console/lookup?domain=shop.acme.exampel")
	at("now", "/console/")
	at("empty", "/console/lookup")
	at("projects", "/console/projects")
	at("project", "/console/projects/"+v.acme)
	at("long-names", "/console/projects/"+v.worst)
	l.openEdit()
	l.pagesOfMail()
	at("changes", "/console/changes")
	l.pagesOfGit()
	at("live", "/console/live")
	at("keys", "/console/keys")
	at("sessions", "/console/sessions")
	at("not-found", "/console/projects/1")
	at("suppressions", "/console/suppressions/"+v.acme)
	at("sender", "/console/projects/"+v.acme+"/sender")
	at("login-unknown", "/console/login/none")
	at("login-failed", "/console/login/none/callback?state=none")
	l.pagesOfDomains(zone)
	l.pagesOfTrouble()
	l.signIn(v.shopOnly)
	at("refused", "/console/projects/"+v.projectID("other"))
	at("not-yours", "/console/live")
	l.pageOfKeptMail()
	l.pagesOfWebhooks()
	for _, page := range leftOut(consolePages(t), l.seen) {
		t.Errorf("nobody has looked at %s", page)
	}
}

// leftOut lists the pages that nobody has looked at.
func leftOut(pages []string, seen map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(pages), func(page string) bool { return seen[page] })
}

// leftOut finds a page that TestConsolePictures has not looked at.
func TestConsolePagesLeftOut(t *testing.T) {
	t.Parallel()
	pages, seen := consolePages(t), map[string]bool{}
	for _, page := range pages {
		seen[page] = true
	}
	if left := leftOut(append(pages, "/console/new"), seen); !slices.Equal(left, []string{"/console/new"}) {
		t.Errorf("left out: %v", left)
	}
	for _, page := range []string{"/console/{$}", "/console/domain/{link}", "/console/projects/{id}/domains/{domain}", "/console/sign-in"} {
		if !seen[page] {
			t.Errorf("%s is not found in the code", page)
		}
	}
}

// openEdit looks at a form, at one that is refused, at a diff, and at a conflict.
func (l *looker) openEdit() {
	l.open("/console/edit?kind=project&project=" + l.acme)
	l.look("edit")
	l.fill("slug", "UPPER")
	l.press("Show the change")
	l.sees("may hold lower-case letters")
	l.look("edit-wrong")
	l.open("/console/edit?kind=domain&project=" + l.acme)
	l.fill("domain", "brand-new.acme.example")
	l.press("Show the change")
	l.look("diff")
	l.press("Save")
	l.open("/console/edit?kind=project&project=" + l.acme)
	l.fill("name", "Mine")
	text := l.visit.text("acme.hcl")
	generation := l.generation()
	l.put("acme.hcl", strings.Replace(text, "Acme Shop", "Theirs", 1))
	l.waitGeneration(generation + 1)
	l.press("Show the change")
	l.sees("Somebody has changed this meanwhile")
	l.look("conflict")
	l.put("acme.hcl", text)
	l.waitGeneration(generation + 2)
}

// pagesOfMail sends a mail, and looks at what there is about it.
func (l *looker) pagesOfMail() {
	sent := l.ask(http.MethodPost, "/api/mail/send/raw", l.admin, `{"domain":"shop.acme.example","toEmail":"grace@example.com",`+
		`"subject":"Your order","bodyText":"It is on its way."}`,
		"X-Internal-Service-Token: "+l.admin, "X-Internal-Service-Name: shop", "Content-Type: application/json")
	entry := strings.Split(sent.header.Get("Location"), "/")
	for _, page := range []struct{ name, path string }{
		{"mail", "/console/mail?project=" + l.acme},
		{"mail-entry", "/console/mail/" + l.acme + "/" + entry[len(entry)-1]},
		{"template", "/console/template?project=" + l.acme + "&id=" +
			l.rowID(l.admin, "/api/mail/projects/"+l.acme+"/templates?limit=100", "code", "WELCOME")},
		{"smtp-test", "/console/smtp-test?project=" + l.acme},
	} {
		l.open(page.path)
		l.look(page.name)
	}
}

// pagesOfGit proposes a change, and looks at the list and at the proposal.
func (l *looker) pagesOfGit() {
	l.open("/console/edit?kind=project&project=" + l.acme)
	l.fill("name", "Acme Store")
	l.press("Show the change")
	l.unfold()
	l.fill("proposal", "rename-shop", "message", "The shop has a new name")
	l.press("Propose")
	l.sees("The shop has a new name", "It fits what is live")
	l.look("proposal")
	l.open("/console/proposals")
	l.look("proposals")
	l.open("/console/proposals/rename-shop?drop=1")
	l.look("proposal-drop")
}

// pagesOfDomains looks at a domain whose proof is wrong, and at what its customer sees.
func (l *looker) pagesOfDomains(zone *dnsZone) {
	zone.set("_fingerpost-challenge.shop.customer.example", "token=of-another-service")
	generation := l.generation()
	l.put("customer.hcl", "defaults {\n  verification {\n    targets = [\"192.0.2.0/24\"]\n  }\n}\n\n"+customerFile)
	l.waitGeneration(generation + 1)
	l.open("/console/projects/customer")
	l.press("shop.customer.example")
	l.press("Check now")
	l.sees("Checked: shop.customer.example is not ready yet.")
	l.open(l.at())
	l.look("domain")
	var link string
	l.eval(`new URL(document.querySelector("#customer-link").textContent.trim()).pathname`, &link)
	l.open(link)
	l.sees("shop.customer.example")
	l.look("customer")
	l.open(link + "x")
	l.look("customer-gone")
}

// pagesOfTrouble breaks a file, and looks at what the console says.
func (l *looker) pagesOfTrouble() {
	good := l.visit.text("acme.hcl")
	l.put("acme.hcl", strings.Replace(good, `status      = "ACTIVE"`, `status      = "ACTIV"`, 1))
	testrig.Eventually(l.test, "the file's error is told", func() bool {
		l.open("/console/")
		return strings.Contains(l.tab.text("main"), "The files have 1 error")
	})
	for _, page := range []struct{ name, path string }{{"needs", "/console/"}, {"problems", "/console/problems"},
		{"project-broken", "/console/projects/" + l.acme}} {
		l.open(page.path)
		l.look(page.name)
	}
}

// pageOfKeptMail looks at a mail that another server keeps.
func (l *looker) pageOfKeptMail() {
	files, admin, _ := consoleFiles(25)
	r := idleRig(l.test, l.test.TempDir(), files)
	r.flags = []string{"--mail-sink"}
	r.start()
	sent := r.ask(http.MethodPost, "/api/mail/send/raw", admin, `{"domain":"shop.acme.example","toEmail":"grace@example.com",`+
		`"subject":"Your order","bodyText":"It is on its way.","bodyHtml":"<p>It is on its way.</p>"}`,
		"X-Internal-Service-Token: "+admin, "X-Internal-Service-Name: shop", "Content-Type: application/json")
	entry := strings.Split(sent.header.Get("Location"), "/")
	l.base = r.url
	l.signIn(admin)
	l.open("/console/kept/" + r.projectID("acme") + "/" + entry[len(entry)-1])
	l.sees("It is on its way.")
	l.look("kept")
}
