package docs

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// openAPISource is the file that links to the API reference name.
const openAPISource = "api/openapi.yaml"

// guides is the folder of the guides.
const guides = "cmd/fingerpost/guides/"

// pageName returns the name of the page of a file of the repository. The guides stand at the top.
func pageName(source string) string {
	if source == openAPISource {
		return apiPage
	}
	name := strings.TrimSuffix(strings.TrimSuffix(source, ".md"), "/README")
	name = strings.TrimPrefix(name, guides)
	if name == "index" {
		return ""
	}
	return name
}

// markdown makes HTML of Markdown. HTML in the text is left out.
type markdown struct {
	goldmark.Markdown
	served func(source string) bool // reports whether a file of the repository has a page
}

func newMarkdown(served func(source string) bool) *markdown {
	return &markdown{goldmark.New(
		// the other ways to align a cell are inline styles, which the Content-Security-Policy does not allow
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	), served}
}

// boxes lets what is too wide for a phone scroll within its box, also by keyboard. The tags come from the renderer alone:
// in text < is escaped.
var boxes = strings.NewReplacer(
	"<table>", `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`, "</table>", "</table></div>",
	"<pre>", `<pre tabindex="0">`)

// page makes the page of a file.
func (m *markdown) page(source string, content []byte) (*page, error) {
	p := &page{name: pageName(source), guide: strings.HasPrefix(source, guides)}
	doc := m.Parser().Parse(text.NewReader(content), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	var links []*ast.Link
	var images []*ast.Image
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if title := plain(n, content); n.Level == 1 {
				p.title = title
			} else {
				id, _ := n.AttributeString("id")
				p.headings = append(p.headings, heading{Level: n.Level, ID: string(id.([]byte)), Text: title})
			}
		case *ast.Link:
			links = append(links, n)
		case *ast.Image:
			images = append(images, n)
		}
		return ast.WalkContinue, nil
	})
	if err != nil || p.title == "" {
		return nil, fmt.Errorf("%s has no title: %w", source, err)
	}
	for _, link := range links {
		m.lead(source, link)
	}
	for _, image := range images {
		image.Parent().RemoveChild(image.Parent(), image)
	}
	var b bytes.Buffer
	if err := m.Renderer().Render(&b, content, doc); err != nil {
		return nil, fmt.Errorf("render %s: %w", source, err)
	}
	p.body = template.HTML(boxes.Replace(b.String()))
	return p, nil
}

// lead points a link at the page of the file that it names. One to a file without a page becomes plain text.
func (m *markdown) lead(source string, link *ast.Link) {
	target, section, _ := strings.Cut(string(link.Destination), "#")
	if target == "" || strings.Contains(target, ":") {
		return
	}
	file := path.Join(path.Dir(source), target)
	if !m.served(file) && m.served(file+"/README.md") {
		file += "/README.md"
	}
	if m.served(file) || file == openAPISource {
		link.Destination = []byte(Prefix + pageName(file))
		if section != "" {
			link.Destination = append(link.Destination, "#"+section...)
		}
		return
	}
	for parent := link.Parent(); link.HasChildren(); {
		parent.InsertBefore(parent, link, link.FirstChild())
	}
	link.Parent().RemoveChild(link.Parent(), link)
}

// fragment makes HTML of a text within a page.
func (m *markdown) fragment(s string) template.HTML {
	var b bytes.Buffer
	if err := m.Convert([]byte(s), &b); err != nil {
		return template.HTML(template.HTMLEscapeString(s))
	}
	return template.HTML(boxes.Replace(b.String()))
}

// plain returns the text below a node.
func plain(n ast.Node, content []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, is := c.(*ast.Text); is {
			b.Write(t.Segment.Value(content))
		} else {
			b.WriteString(plain(c, content))
		}
	}
	return b.String()
}

// anchors are the ids of headings in a page, as GitHub makes them.
type anchors map[string]bool

// Generate implements parser.IDs.
func (a anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, string(value))
	unique := id
	for n := 1; a[unique]; n++ {
		unique = id + "-" + strconv.Itoa(n)
	}
	a[unique] = true
	return []byte(unique)
}

// Put implements parser.IDs.
func (a anchors) Put(value []byte) { a[string(value)] = true }
