package docs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Prefix is the path below which all pages stand.
const Prefix = "/docs/"

// Options say what is served.
type Options struct {
	// Rooms are folders of the repository, by their paths. Each Markdown file in them is a page.
	// That of the API has openapi.yaml too.
	Rooms map[string]fs.FS
	// Assets has the console's stylesheet and icon: assets/console.css and assets/icon.svg.
	Assets  fs.FS
	Version string
	Logger  *slog.Logger
}

// A Handler answers everything below Prefix. Safe for concurrent use.
type Handler struct {
	site func() (*site, error)
	log  *slog.Logger
}

// New makes a Handler. It makes the pages when the first one is asked for.
func New(o Options) *Handler {
	return &Handler{site: sync.OnceValues(func() (*site, error) { return build(&o) }), log: o.Logger}
}

// A page is a document as HTML.
type page struct {
	name     string // below Prefix; "" is the start
	guide    bool
	title    string
	headings []heading // without that of the title
	body     template.HTML
	sections []*section

	previous, next *page // of the same list
}

// A heading is a place that links lead to.
type heading struct {
	Level    int
	ID, Text string
}

// A file is what is served for a name.
type file struct {
	kind, tag string
	body      []byte
}

const kindHTML = "text/html; charset=utf-8"

func newFile(kind string, body []byte) file {
	sum := sha256.Sum256(body)
	return file{kind: kind, tag: `"` + hex.EncodeToString(sum[:8]) + `"`, body: body}
}

// A site is everything that is served.
type site struct {
	version string
	pages   []*page // the guides first, then the reference, then the API's
	files   map[string]file
	menu    []list
}

// A list is a part of the list of all pages.
type list struct {
	Title string
	Pages []*page
}

// Name and Title are for the layout.
func (p *page) Name() string  { return p.name }
func (p *page) Title() string { return p.title }

// lists makes the list of all pages: the guides in the order in which the start names them, the reference, and the API.
func (s *site) lists() {
	lists := []list{{Title: "Guides"}, {Title: "Reference"}, {Title: "HTTP API"}}
	for _, p := range s.pages {
		at := 1
		switch {
		case strings.HasPrefix(p.name, apiPage):
			at = 2
		case !strings.Contains(p.name, "/") && p.guide:
			at = 0
		}
		lists[at].Pages = append(lists[at].Pages, p)
	}
	start := ""
	if i := slices.IndexFunc(s.pages, func(p *page) bool { return p.name == "" }); i >= 0 {
		start = string(s.pages[i].body)
	}
	place := func(p *page) int {
		if at := strings.Index(start, `href="`+Prefix+p.name+`"`); p.name != "" && at >= 0 {
			return at
		}
		return len(start)
	}
	for _, l := range lists[:2] {
		slices.SortStableFunc(l.Pages, func(a, b *page) int {
			if a.name == "" || b.name == "" {
				return cmp.Compare(len(a.name), len(b.name))
			}
			return cmp.Compare(place(a), place(b))
		})
	}
	for _, l := range lists {
		for i, p := range l.Pages {
			if i > 0 {
				p.previous, l.Pages[i-1].next = l.Pages[i-1], p
			}
		}
	}
	s.menu = lists
}

//go:embed pages docs.css docs.js
var content embed.FS

var layouts = template.Must(template.ParseFS(content, "pages/*.html"))

// build makes all pages.
func build(o *Options) (*site, error) {
	console, err1 := fs.ReadFile(o.Assets, "assets/console.css")
	style, err2 := content.ReadFile("docs.css")
	icon, err3 := fs.ReadFile(o.Assets, "assets/icon.svg")
	openAPI, err4 := fs.ReadFile(o.Rooms["api"], "openapi.yaml")
	script, err5 := content.ReadFile("docs.js")
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	s := &site{version: o.Version, files: map[string]file{
		"docs.css": newFile("text/css; charset=utf-8", slices.Concat(console, style)),
		"docs.js":  newFile("text/javascript; charset=utf-8", script),
		"icon.svg": newFile("image/svg+xml", icon),
	}}
	var err error
	if s.pages, err = documents(o.Rooms); err != nil {
		return nil, err
	}
	reference, err := referencePages(openAPI)
	if err != nil {
		return nil, err
	}
	s.pages = append(s.pages, reference...)
	for _, p := range s.pages {
		p.sections = sectionsOf(string(p.body))
	}
	s.lists()
	for _, p := range s.pages {
		body, err := s.lay(p, "")
		if err != nil {
			return nil, err
		}
		s.files[p.name], p.body = newFile(kindHTML, body), ""
	}
	return s, nil
}

// documents makes a page of each Markdown file.
func documents(rooms map[string]fs.FS) (pages []*page, err error) {
	texts := map[string][]byte{}
	for room, folder := range rooms {
		err := fs.WalkDir(folder, ".", func(name string, _ fs.DirEntry, err error) error {
			if err == nil && path.Ext(name) == ".md" {
				texts[path.Join(room, name)], err = fs.ReadFile(folder, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	m := newMarkdown(func(source string) bool { return texts[source] != nil })
	for source, text := range texts {
		p, err := m.page(source, text)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	slices.SortFunc(pages, func(a, b *page) int {
		return cmp.Or(strings.Count(a.name, "/")-strings.Count(b.name, "/"), cmp.Compare(a.name, b.name))
	})
	return pages, nil
}

// lay puts a page into the layout that all pages share. query is what the search field has.
func (s *site) lay(p *page, query string) ([]byte, error) {
	return render("layout.html", map[string]any{"Title": p.title, "Name": p.name, "Query": query, "Body": p.body,
		"Headings": p.headings, "Version": s.version, "Lists": s.menu, "Previous": p.previous, "Next": p.next})
}

func render(layout string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := layouts.ExecuteTemplate(&b, layout, data)
	return b.Bytes(), err
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "documents are read with GET", http.StatusMethodNotAllowed)
		return
	}
	s, err := h.site()
	if err == nil {
		err = s.answer(w, r)
	}
	if err != nil {
		h.log.Error("a document cannot be shown", "path", r.URL.Path, "error", err)
		http.Error(w, "the document cannot be shown; the log says why", http.StatusInternalServerError)
	}
}

// answer writes the file that is asked for, or what a search finds. Names are compared as they are, never decoded.
func (s *site) answer(w http.ResponseWriter, r *http.Request) error {
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), strings.TrimSuffix(Prefix, "/")), "/")
	query := strings.TrimSpace(r.URL.Query().Get("q"))
	f, known := s.files[name]
	status := http.StatusOK
	if !known || name == "" && query != "" {
		made, layout := &page{name: "search", title: "Search"}, "found.html"
		if !known {
			status, made, layout = http.StatusNotFound, &page{name: "search", title: "No such page"}, "missing.html"
		}
		body, err := render(layout, map[string]any{"Query": query, "Found": s.find(query)})
		if err != nil {
			return err
		}
		made.body = template.HTML(body)
		if body, err = s.lay(made, query); err != nil {
			return err
		}
		f = newFile(kindHTML, body)
	}
	head := w.Header()
	head.Set("Content-Type", f.kind)
	if status != http.StatusOK {
		head.Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_, _ = w.Write(f.body)
		return nil
	}
	head.Set("ETag", f.tag)
	head.Set("Cache-Control", "no-cache") // may be kept, and is asked for with its ETag: another version may run
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
	return nil
}
