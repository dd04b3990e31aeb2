package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/spf13/pflag"
	"golang.org/x/net/html"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
)

// A document is a page below /docs/ as a browser has it.
type document struct {
	links    []string // of its own site
	ids      map[string]bool
	headings []int // levels
}

// readDocuments follows all links from /docs/, and fails for one that leads nowhere.
func readDocuments(t *testing.T, h http.Handler) map[string]*document {
	t.Helper()
	all := map[string]*document{}
	for open := []string{"/docs/"}; len(open) > 0; open = open[1:] {
		if all[open[0]] != nil {
			continue
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, open[0], nil))
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d", open[0], w.Code)
		}
		d := &document{ids: map[string]bool{}}
		all[open[0]] = d
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			continue
		}
		tree, err := html.Parse(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		d.read(t, open[0], tree)
		for _, link := range d.links {
			target, _, _ := strings.Cut(link, "#")
			open = append(open, target)
		}
	}
	return all
}

func (d *document) read(t *testing.T, at string, tree *html.Node) {
	for n := range tree.Descendants() {
		if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
			d.headings = append(d.headings, int(n.Data[1]-'0'))
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "id" && d.ids[a.Val]:
				t.Errorf("%s has the id %s twice", at, a.Val)
			case a.Key == "id":
				d.ids[a.Val] = true
			case a.Key != "href" && a.Key != "src" && a.Key != "action":
			case strings.HasPrefix(a.Val, "#"):
				d.links = append(d.links, at+a.Val)
			case strings.HasPrefix(a.Val, "/"):
				d.links = append(d.links, a.Val)
			case n.Data != "a" || !strings.HasPrefix(a.Val, "https://"):
				t.Errorf("%s has %s = %q on <%s>", at, a.Key, a.Val, n.Data)
			}
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") || n.Data == "script" && !slices.Contains(n.Attr, html.Attribute{Key: "src", Val: "/docs/docs.js"}) {
				t.Errorf("%s has %s on <%s>, which its policy does not allow", at, a.Key, n.Data)
			}
		}
	}
}

// TestDocuments: each document of the tree that the program carries is a page; links and anchors of all pages lead
// somewhere, and headings are in order; the API reference has each call of openapi.yaml.
func TestDocuments(t *testing.T) {
	t.Parallel()
	pages := readDocuments(t, newDocuments("test", slog.Default()))
	for at, d := range pages {
		for _, link := range d.links {
			if target, section, has := strings.Cut(link, "#"); has && !pages[target].ids[section] {
				t.Errorf("%s links to %s, and there is no such section", at, link)
			}
		}
		for i, level := range d.headings {
			if (level == 1) != (i == 0) || i > 0 && level > d.headings[i-1]+1 {
				t.Errorf("%s has a heading of level %d at %d", at, level, i)
			}
		}
	}
	guides, _ := filepath.Glob("guides/*.md")
	for _, guide := range guides {
		if name := strings.TrimSuffix(filepath.Base(guide), ".md"); name != "index" && pages["/docs/"+name] == nil {
			t.Errorf("no page links to the guide %s", name)
		}
	}
	for _, room := range []string{"api", "api/platform", "api/gateway", "api/console", "configsrc", "configsrc/gitrepo", "configsrc/cluster",
		"configsrc/verify", "configsrc/atomicfile", "mailer", "mailer/template",
		"cmd/fingerpost", "cmd/fingerpost/CHANGELOG"} {
		if pages["/docs/"+room] == nil {
			t.Errorf("no page links to the documents of %s", room)
		}
	}
	description, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`(?m)^      operationId: (\w+)$`).FindAllStringSubmatch(string(description), -1)
	if len(calls) < 40 {
		t.Fatalf("%d calls", len(calls))
	}
	for _, call := range calls {
		found := 0
		for at, d := range pages {
			if strings.HasPrefix(at, "/docs/openapi/") && d.ids[call[1]] {
				found++
			}
		}
		if found != 1 {
			t.Errorf("the call %s is in the API reference %d times", call[1], found)
		}
	}
}

// TestDocumentsServed: the running program serves them without a key, also by HEAD, and finds a heading. What is no page
// is a 404 with a search.
func TestDocumentsServed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for path, want := range map[string]string{"/docs/": "Guides", "/docs": "Guides", "/docs/?q=caddy": `href="/docs/api/gateway#caddy"`,
		"/docs/openapi/resolve": "resolveDomain", "/docs/docs.css": "--ground"} {
		got := r.ask(http.MethodGet, path, "", "")
		if got.status != http.StatusOK || !strings.Contains(got.body, want) ||
			!strings.HasPrefix(got.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d without %q", path, got.status, want)
		}
	}
	got := r.ask(http.MethodHead, "/docs/install", "", "")
	if got.status != http.StatusOK || got.header.Get("Content-Length") == "" || got.header.Get("ETag") == "" || got.body != "" {
		t.Errorf("HEAD: %d %v", got.status, got.header)
	}
	for _, path := range []string{"/docs/nothing", "/docs/%2e%2e/etc/passwd"} {
		if got := r.ask(http.MethodGet, path, "", ""); got.status != http.StatusNotFound || !strings.Contains(got.body, `type="search"`) {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

// TestDocumentsLook asks axe about pages in both schemes, looks that nothing is wider than a phone, and keeps a picture of
// each page where FINGERPOST_PICTURES says.
func TestDocumentsLook(t *testing.T) {
	t.Parallel()
	testrig.Slow(t)
	if !testrig.Compulsory("chromium") && os.Getenv("FINGERPOST_PICTURES") == "" {
		t.Skip("takes a minute and chromium: FINGERPOST_NEED=chromium or FINGERPOST_PICTURES=FOLDER runs it")
	}
	program := findBrowser(t)
	h := newDocuments("1.2.3", slog.Default())
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	b := newTab(t, program, server.URL)
	dir := os.Getenv("FINGERPOST_PICTURES")
	paths := []string{"/docs/?q=key", "/docs/?q=xyzzy", "/docs/nothing"}
	for at, d := range readDocuments(t, h) {
		if len(d.headings) > 0 {
			paths = append(paths, at)
		}
	}
	slices.Sort(paths)
	for i, path := range paths {
		b.size(360, false)
		b.open(path)
		for _, width := range []int64{360, 1280} {
			for _, dark := range []bool{false, true} {
				b.size(width, dark)
				var wide int64
				b.eval("document.documentElement.scrollWidth", &wide)
				if wide > width {
					t.Errorf("%s is %d px wide in a window of %d", path, wide, width)
				}
				// A long document costs axe seconds: in CI one is judged on a phone, the next one in the dark.
				if testrig.Size(t, true, dark == (width == 1280) && dark == (i%2 == 0)) {
					for _, finding := range b.axe() {
						t.Errorf("%s, %d px, dark %v: axe: %s", path, width, dark, finding)
					}
				}
				if dir != "" {
					var picture []byte
					b.do(chromedp.CaptureScreenshot(&picture))
					name := fmt.Sprintf("docs-%s-%d-%v.png", strings.Trim(regexp.MustCompile(`\W+`).ReplaceAllString(path[5:], "-"), "-"), width, dark)
					if err := os.WriteFile(filepath.Join(dir, name), picture, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// searchTerms are what people paste into the search of the documents, each from the place that decides it.
func searchTerms(t *testing.T) (terms []string) {
	t.Helper()
	newServe(cli.Terminal{}).Flags().VisitAll(func(f *pflag.Flag) { terms = append(terms, "--"+f.Name) })
	for _, from := range []struct{ files, pattern string }{
		{"../../resolver/catalog/error.go", `Code = "([A-Z_]+)"`},
		{"../../mailer/*/*.go", `"(SMTP_[A-Z_]+)"`},
		{"../../api/openapi.yaml", `\b(X-[A-Z][A-Za-z-]+[a-z])\b`},
		{"../../api/ops/*.go", `"(fingerpost_[a-z_]+[a-z])"`},
		{"dist/alerts.yaml", `alert: (\w+)`},
	} {
		files, err := filepath.Glob(from.files)
		if err != nil || len(files) == 0 {
			t.Fatal(from.files, err)
		}
		found := 0
		for _, file := range files {
			for _, m := range regexp.MustCompile(from.pattern).FindAllStringSubmatch(readText(t, file), -1) {
				terms = append(terms, m[1])
				found++
			}
		}
		if found == 0 {
			t.Errorf("%s names nothing", from.files)
		}
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}

// TestDocumentsExplainEach: the first hit of a search for each error code, flag of serve, header, metric and alert has it,
// so whatever one of them is named, some document explains it.
func TestDocumentsExplainEach(t *testing.T) {
	t.Parallel()
	h := newDocuments("test", slog.Default())
	terms := searchTerms(t)
	for _, term := range append(terms, "403", "disk full", "backup", "back up", "X-Propose") {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/docs/?q="+url.QueryEscape(term), nil))
		_, hits, _ := strings.Cut(w.Body.String(), `<ul class="hits">`)
		first, _, _ := strings.Cut(hits, "</li>")
		plain := strings.NewReplacer("<mark>", "", "</mark>", "", "-", "").Replace(strings.ToLower(html.UnescapeString(first)))
		want := strings.ReplaceAll(strings.ToLower(term), "-", "")
		if !strings.Contains(plain, want) && !strings.Contains(strings.ReplaceAll(plain, " ", ""), strings.ReplaceAll(want, " ", "")) {
			t.Errorf("no document explains %q first, so write it into one (of a metric: FINGERPOST_WRITE=1 go test -run TestMetrics): the "+
				"first hit is %.300q", term, first)
		}
	}
	if len(terms) < 150 {
		t.Errorf("only %d terms", len(terms))
	}
}

// TestDocumentsChangelogHasDates: each version of the changelog has its date, as Keep a Changelog has it.
func TestDocumentsChangelogHasDates(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^## (\[Unreleased\]|\[\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?\] - \d{4}-\d{2}-\d{2})\n$`)
	sections := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "## ") {
			if sections++; !form.MatchString(line) {
				t.Errorf("no date: %s", line)
			}
		}
	}
	if sections == 0 {
		t.Error("the changelog has no version")
	}
}
