package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A role is a key of a person.
type role struct {
	name   string
	allow  []string
	shop   bool // for the project acme alone
	ending bool // the key expires
	key    string
}

// everyRole lists all sets of permissions with read, for every project and for one, and a key that expires.
func everyRole() (all []*role) {
	words := []string{"write", "propose", "mail", "secrets"}
	for set := range 1 << len(words) {
		allow := []string{"read"}
		for i, w := range words {
			if set>>i&1 == 1 {
				allow = append(allow, w)
			}
		}
		name := "may-" + strings.Join(allow, "-")
		all = append(all, &role{name: name, allow: allow}, &role{name: name + "-acme", allow: allow, shop: true})
	}
	return append(all, &role{name: "ending", allow: append([]string{"read"}, words...), ending: true})
}

func (r *role) may(word string) bool { return slices.Contains(r.allow, word) }

// file declares the key.
func (r *role) file() string {
	text, id := catalog.NewKeyText()
	r.key = text
	rights := fmt.Sprintf("allow = [\"%s\"]\n", strings.Join(r.allow, `", "`))
	if r.shop {
		rights += "  projects = [\"acme\"]\n"
	}
	if r.ending {
		rights += "  expires_at = \"" + time.Now().UTC().Add(48*time.Hour).Format("2006-01-02T15:04:05") + "\"\n"
	}
	return fmt.Sprintf("key %q {\n  id = %q\n  hash = %q\n  %s}\n", r.name, id, catalog.HashKeyText(text), rights)
}

// offered is the oracle of what the console offers to a role: the doors by name.
func (r *role) offered(git bool) map[string]bool {
	doors := map[string]bool{}
	add := func(may bool, names ...string) {
		for _, n := range names {
			if may {
				doors[n] = true
			}
		}
	}
	propose := git && (r.may("write") || r.may("propose"))
	edit := r.may("write") || propose
	add(edit, "edit project", "delete project", "new domain", "edit domain", "delete domain", "new template", "edit template",
		"delete template", "edit service-settings", "edit auth-settings", "edit smtp-config", "delete smtp-config", "drop draft")
	add(edit && !r.shop, "new project")
	add(r.may("write") && r.may("secrets") && !r.shop, "new key", "rotate key", "revoke key", "new webhook", "edit webhook",
		"test webhook", "off webhook", "remove webhook", "rotate webhook", "replay webhook")
	add(r.may("mail"), "test smtp", "test saved smtp", "send mail")
	add(r.may("write"), "save draft", "check domain", "open customer link", "check by customer link")
	add(r.may("write") && !r.shop, "end customer links")
	add(propose, "propose draft")
	add(git, "enter proposal")
	add(git && r.may("write"), "apply proposal", "approve proposal")
	add(propose, "drop proposal")
	return doors
}

// A walk is a role that goes through the console and tries every door that it is shown.
type walk struct {
	*visitor
	*role
	n     int // of the role
	acme  string
	git   bool
	seen  map[string]bool // pages
	doors map[string]int  // how often each was tried
	edits []string        // links to forms
	some  int             // of the keys' doors every so many is tried
}

// A formDoor is a form of a page, and what its buttons add.
type formDoor struct {
	action  string
	get     bool
	fields  url.Values
	buttons []formButton
}

type formButton struct{ name, value, action string }

// forms lists the forms of the page.
func (w *walk) forms() (all []formDoor) {
	doc, err := html.Parse(strings.NewReader(w.body))
	if err != nil {
		w.t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" {
			continue
		}
		f := formDoor{action: attribute(n, "action"), get: attribute(n, "method") != "post", fields: url.Values{}}
		for c := range n.Descendants() {
			name, value := attribute(c, "name"), attribute(c, "value")
			switch {
			case c.Type != html.ElementNode || slices.ContainsFunc(c.Attr, func(a html.Attribute) bool { return a.Key == "disabled" }):
			case c.Data == "button":
				f.buttons = append(f.buttons, formButton{name, value, attribute(c, "formaction")})
			case c.Data == "option" && slices.ContainsFunc(c.Attr, func(a html.Attribute) bool { return a.Key == "selected" }):
				f.fields.Set(attribute(c.Parent, "name"), value)
			case c.Data == "textarea" && c.FirstChild != nil:
				f.fields.Set(name, c.FirstChild.Data)
			case c.Data == "input" && attribute(c, "type") != "checkbox":
				f.fields.Set(name, value)
			}
		}
		all = append(all, f)
	}
	return all
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// form returns the form of the page with an action that begins so, nil if there is none.
func (w *walk) form(action string) *formDoor {
	for _, f := range w.forms() {
		if strings.HasPrefix(f.action, action) {
			return &f
		}
	}
	return nil
}

// customers are links for customers, which stand on a page as text.
var customers = regexp.MustCompile(`/console/domain/[A-Za-z0-9_-]+`)

// customer opens the link for the customer that the page shows, and presses its button.
func (w *walk) customer() {
	link := customers.FindString(w.body)
	if link == "" {
		return
	}
	if w.through("open customer link", link, nil) {
		w.through("check by customer link", link, url.Values{})
	}
}

// through goes through a door, and checks that nobody refuses it.
func (w *walk) through(door, path string, form url.Values) bool {
	w.t.Helper()
	w.doors[door]++
	w.ask(path, form)
	justChecked := strings.HasPrefix(door, "check ") && w.res.StatusCode == http.StatusTooManyRequests // by another role
	if w.res.StatusCode != http.StatusOK && !justChecked || strings.Contains(w.body, "FORBIDDEN") || strings.Contains(w.body, "does not allow") {
		w.t.Errorf("%s is offered %q (%s %v): %d %s", w.name, door, path, form, w.res.StatusCode, mainText(w.body))
		return false
	}
	return true
}

var (
	markup = regexp.MustCompile(`(?s)<[^>]*>`)
	hrefs  = regexp.MustCompile(`href="(/console/[^"]*)"`)
)

func mainText(page string) string {
	_, page, _ = strings.Cut(page, "<main")
	return cutMiddle(strings.Join(strings.Fields(markup.ReplaceAllString(page, " ")), " "), 500)
}

// crawl opens each page that links lead to, and tries the doors on it.
func (w *walk) crawl(path string) {
	if w.seen[path] {
		return
	}
	w.seen[path] = true
	w.through("page", path, nil)
	page := w.body
	forms := w.forms()
	w.customer() // before all links are ended
	for _, f := range forms {
		w.tryForm(f)
	}
	for _, m := range hrefs.FindAllStringSubmatch(page, -1) {
		to := html.UnescapeString(m[1])
		switch {
		case strings.HasPrefix(to, "/console/assets/"):
		case strings.HasSuffix(to, "?drop=1") && !strings.Contains(to, fmt.Sprintf("/own-%d?", w.n)):
			// of others, which stay
		case strings.HasPrefix(to, "/console/edit?"):
			w.edits = append(w.edits, to)
		default:
			w.crawl(to)
		}
	}
}

// last orders the buttons of a form: what ends the thing comes last.
var last = map[string]int{"drop": 1, "apply": 2}

// tryForm presses the buttons of a form that is not one of an edit.
func (w *walk) tryForm(f formDoor) {
	switch {
	case f.get:
		w.through("search", f.action+"?"+f.fields.Encode(), nil)
		return
	case strings.HasPrefix(f.action, "/console/keys/"), strings.HasPrefix(f.action, "/console/proposals/"):
		slices.SortFunc(f.buttons, func(a, b formButton) int { return last[a.value] - last[b.value] })
		for _, b := range f.buttons {
			w.tryButton(f, b)
		}
	case strings.HasPrefix(f.action, "/console/webhooks/"):
		for _, b := range f.buttons {
			w.tryWebhook(f, b)
		}
	case f.action == "/console/smtp-test":
		if f.fields.Get("project") != "" {
			f.fields.Set("toEmail", "b@example.com")
			w.through("test saved smtp", f.action, f.fields)
		}
		f.fields.Set("host", "127.0.0.1")
		f.fields.Set("fromEmail", "a@example.com")
		f.fields.Set("toEmail", "b@example.com")
		w.through("test smtp", f.action, f.fields)
	case strings.HasPrefix(f.action, "/console/projects/"+w.acme+"/domains/"):
		w.through("check domain", f.action, f.fields)
	case f.action == "/console/domain-links":
		w.through("end customer links", f.action, f.fields)
	case f.action == "/console/template":
		w.through("render", f.action, f.fields)
		f.fields.Set("toEmail", "b@example.com")
		f.fields.Set("var.userName", "Ada")
		for _, b := range f.buttons {
			if b.action == "/console/send-test" {
				w.through("send mail", b.action, f.fields)
			}
		}
	}
}

// tryButton presses a button about a key or a proposal. Keys stay as they are: their drafts are dropped.
func (w *walk) tryButton(f formDoor, b formButton) {
	f.fields.Set(b.name, b.value)
	noun := strings.TrimSuffix(strings.Split(f.action, "/")[2], "s")
	door := b.value + " " + noun
	if noun == "key" {
		if w.doors[door]++; w.doors[door]%w.some != 1 && w.some > 1 {
			return
		}
		if w.through(door, f.action, f.fields) {
			w.draft("drop", true)
		}
		return
	}
	own, shared := strings.HasSuffix(f.action, fmt.Sprintf("/own-%d", w.n)), strings.HasSuffix(f.action, fmt.Sprintf("/shared-%d", w.n))
	if b.value == "drop" && !own || b.value == "apply" && !shared {
		return // each is tried once, with one that is there for it
	}
	if w.through(door, f.action, f.fields) && b.value == "enter" {
		f.fields.Set("do", "leave")
		w.through("leave proposal", f.action, f.fields)
	}
}

// tryWebhook presses a button of a webhook's page. What is a draft is dropped.
func (w *walk) tryWebhook(f formDoor, b formButton) {
	f.fields.Set(b.name, b.value)
	f.fields.Set("from", "2026-01-31T09:30")
	f.fields.Set("overlap", "24h")
	if w.through(b.value+" webhook", f.action, f.fields) && slices.Contains([]string{"off", "remove", "rotate"}, b.value) {
		w.draft("drop", b.value == "rotate")
	}
}

// draft checks the buttons of the page of a draft, and presses one. Changes of keys, and rotations, are always live.
func (w *walk) draft(do string, live bool) {
	w.t.Helper()
	f := w.form("/console/drafts/")
	if f == nil {
		w.t.Errorf("%s: no draft: %d %s", w.name, w.res.StatusCode, mainText(w.body))
		return
	}
	var offered []string
	for _, b := range f.buttons {
		offered = append(offered, b.value)
	}
	if !slices.Contains(offered, do) {
		w.t.Errorf("%s: a draft offers %v, not %s", w.name, offered, do)
		return
	}
	for name, may := range map[string]bool{"save": w.may("write"), "propose": w.offered(w.git)["propose draft"] && !live} {
		if slices.Contains(offered, name) != may {
			w.t.Errorf("%s: a draft offers %v; %s is %v: %s", w.name, offered, name, may, mainText(w.body))
		}
	}
	f.fields.Set("do", do)
	f.fields.Set("message", "From the matrix")
	f.fields.Set("proposal", fmt.Sprintf("own-%d", w.n))
	w.through(do+" draft", f.action, f.fields)
}

// edit opens a form, changes one value, and saves, proposes or drops what it shows.
func (w *walk) edit(link string) {
	u := mustURL(w.t, "http://x"+link)
	kind, id, deletes := u.Query().Get("kind"), u.Query().Get("id"), u.Query().Get("delete") != ""
	if project := u.Query().Get("project"); project != "" && project != w.acme {
		return // one project is enough
	}
	verb := "edit"
	switch {
	case deletes:
		verb = "delete"
	case id == "" && !strings.Contains(kind, "-") && (kind != "project" || u.Query().Get("project") == ""):
		verb = "new"
	}
	if !w.through(verb+" "+kind, link, nil) {
		return
	}
	f := w.form("/console/edit")
	if f == nil {
		w.t.Errorf("%s: %s has no form: %s", w.name, link, mainText(w.body))
		return
	}
	if !deletes {
		w.change(kind, f.fields)
	}
	w.ask(f.action, f.fields)
	w.draft(w.doWith(verb, kind), kind == "key")
}

// doWith is what becomes of a draft: changes are saved where that is allowed, a new domain is proposed, the rest dropped.
func (w *walk) doWith(verb, kind string) string {
	can := w.offered(w.git)
	switch {
	case verb == "edit" && can["save draft"]:
		return "save"
	case verb == "new" && kind == "domain" && can["propose draft"]:
		return "propose"
	}
	return "drop"
}

// change changes a form so that the API takes it.
func (w *walk) change(kind string, form url.Values) {
	flip := func(name string) {
		form.Set(name, map[string]string{"yes": "no", "no": "yes"}[form.Get(name)])
	}
	switch kind {
	case "project":
		form.Set("description", "By "+w.name)
		form.Set("name", "By "+w.name)
		if form.Has("domains") {
			form.Set("domains", "first.by-"+w.name+".example")
		}
	case "domain":
		if flip("active"); form.Get("domain") == "" {
			form.Set("domain", fmt.Sprintf("own-%d.acme.example", w.n))
		}
	case "service-settings":
		flip("smsEnabled")
	case "auth-settings":
		flip("twoFactorRequired")
	case "smtp-config":
		form.Set("fromName", "By "+w.name)
	case "template":
		form.Set("name", "By "+w.name)
		if form.Get("code") == "" {
			form["code"], form["subjectTemplate"], form["bodyText"] = []string{"NEW"}, []string{"S"}, []string{"B"}
		}
		if form.Get("id") != "" {
			form.Del("code")
		}
	case "webhook":
		form.Set("url", fmt.Sprintf("https://127.0.0.1:9/by-%d", w.n))
		if form.Has("name") {
			form.Set("name", "made-by-matrix")
		}
	case "key":
		form["name"], form["allow"] = []string{"made-by-matrix"}, []string{"read"}
	}
}

// TestConsoleRoles lets each role go through every door of the console that it is shown, without git and with it. None is
// refused, and exactly those are shown that the rules of the API open.
func TestConsoleRoles(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	for _, git := range []bool{false, true} {
		t.Run(fmt.Sprintf("git=%v", git), func(t *testing.T) {
			if git {
				testrig.Thorough(t)
				testrig.Need(t, "git")
			}
			t.Parallel()
			rolesRun(t, git)
		})
	}
}

// rolesRun lets the roles go through a server.
func rolesRun(t *testing.T, git bool) {
	files, admin, _ := consoleFiles(25)
	roles := everyRole()
	for _, x := range roles {
		files["role-"+x.name+".hcl"] = x.file()
	}
	files["hooks.hcl"] = "webhook \"crm\" {\n  url    = \"https://127.0.0.1:9/\"\n  secret = \"" + catalog.NewWebhookSecret() +
		"\"\n  events = [\"edge.*\"]\n}\n" // of which there are none
	r := idleRig(t, t.TempDir(), files)
	r.flags = []string{"--dns-resolver", "127.53.3.9"} // where nobody answers
	r.seals()
	if git {
		newGitRig(t, r)
		r.flags = append(r.flags, "--git")
	}
	r.start()
	acme := r.projectID("acme")
	walks, pages, tried := 0, 0, 0
	for n, x := range roles {
		if n%testrig.Size(t, 1, 7) != testrig.Size(t, 0, 1) && !x.ending && len(x.allow) != 2 {
			continue
		}
		w := &walk{visitor: newVisitor(t, r.url), role: x, n: n, acme: acme, git: git, some: testrig.Size(t, 1, 9),
			seen: map[string]bool{}, doors: map[string]int{}}
		if git { // which changes nothing about keys
			w.some = 9
		}
		shared := fmt.Sprintf("shared-%d", n)
		if git {
			body := fmt.Sprintf(`{"domain":"shared-%d.acme.example"}`, n)
			got := r.ask(http.MethodPost, "/api/platform/projects/"+acme+"/domains", admin, body, "X-Propose: "+shared)
			if got.status != http.StatusAccepted {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}
		w.signIn(x.key)
		w.everywhere()
		for _, times := range w.doors {
			tried += times
		}
		walks, pages = walks+1, pages+len(w.seen)
		if git && !x.may("write") {
			r.ask(http.MethodDelete, "/api/platform/proposals/"+shared, admin, "")
		}
	}
	t.Logf("%d roles, %d pages, %d doors", walks, pages, tried)
}

// everywhere goes through all doors, and compares those that there were with the oracle.
func (w *walk) everywhere() {
	w.t.Helper()
	w.crawl("/console/")
	w.crawl("/console/lookup?domain=shop.acme.example")
	slices.Sort(w.edits)
	for _, link := range slices.Compact(w.edits) {
		w.edit(link)
	}
	if delete(w.seen, "/console/proposals"); w.git {
		w.crawl("/console/proposals") // with the proposal of its own
	}
	want := w.offered(w.git)
	for _, door := range slices.Sorted(maps.Keys(want)) {
		if w.doors[door] == 0 {
			w.t.Errorf("%s is not offered %q, which its key may do", w.name, door)
		}
	}
	for door := range w.doors {
		if strings.Contains(door, " ") && !want[door] && door != "leave proposal" {
			w.t.Errorf("%s is offered %q, which its key may not do", w.name, door)
		}
	}
}
