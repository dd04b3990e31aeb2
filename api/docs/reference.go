package docs

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// apiPage is the name of the API reference. Below it each tag of openapi.yaml has a page.
const apiPage = "openapi"

// A reference reads openapi.yaml.
type reference struct {
	root *yaml.Node
	text *markdown
	made map[string]template.HTML // descriptions
}

// A tag is a group of calls.
type tag struct {
	Name, Path string
	Text       template.HTML
	Example    string // a request for the shell
	Calls      []call
}

// A call is an operation of openapi.yaml.
type call struct {
	ID, Method, Path, Summary string
	Text                      template.HTML
	Needs                     []need
	Parameters                []field
	Body                      *body
	Answers                   []answer // 2xx and 3xx
	Errors                    []answer
}

// A need is one of the ways to be allowed a call.
type need struct {
	Headers     []string
	Permissions []string
}

// A body is that of a request or an answer.
type body struct {
	Kind     string
	Fields   []field
	Examples []example
}

type example struct{ Title, Text string }

// An answer is one status of a call.
type answer struct {
	Status  string
	Text    template.HTML
	Headers []field
	Body    *body
}

// referencePages makes the page of the API and those of its tags.
func referencePages(openAPI []byte) ([]*page, error) {
	r := &reference{root: new(yaml.Node), text: newMarkdown(func(string) bool { return false }),
		made: map[string]template.HTML{}}
	if err := yaml.Unmarshal(openAPI, r.root); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	r.root = r.root.Content[0]
	var tags []*tag
	for _, n := range r.at(r.root, "tags").Content {
		name := r.str(n, "name")
		tags = append(tags, &tag{Name: name, Path: apiPage + "/" + name, Text: r.prose(n)})
	}
	for path, item := range r.pairs(r.at(r.root, "paths")) {
		for method, operation := range r.pairs(item) {
			if !slices.Contains([]string{"get", "put", "post", "delete", "patch"}, method) {
				continue
			}
			c := r.call(strings.ToUpper(method), path, item, operation)
			name := r.at(operation, "tags").Content[0].Value
			i := slices.IndexFunc(tags, func(t *tag) bool { return t.Name == name })
			if i < 0 {
				return nil, fmt.Errorf("openapi.yaml does not list the tag %s of %s", name, c.ID)
			}
			tags[i].Calls = append(tags[i].Calls, c)
		}
	}
	start := &page{name: apiPage, title: "HTTP API"}
	pages := []*page{start}
	whole, err := render("api.html", map[string]any{"Tags": tags, "Text": r.prose(r.at(r.root, "info"))})
	if err != nil {
		return nil, err
	}
	start.body = template.HTML(whole)
	for _, t := range tags {
		start.headings = append(start.headings, heading{Level: 2, ID: t.Name, Text: t.Name})
		p := &page{name: t.Path, title: "HTTP API: " + t.Name}
		for _, c := range t.Calls {
			p.headings = append(p.headings, heading{2, c.ID, c.Method + " " + c.Path})
		}
		t.Example = exampleOf(t.Calls)
		made, err := render("tag.html", t)
		if err != nil {
			return nil, err
		}
		p.body = template.HTML(made)
		pages = append(pages, p)
	}
	start.headings = append(start.headings, heading{Level: 2, ID: "rules", Text: "What holds for all calls"})
	return pages, nil
}

// exampleOf returns the first call that reads, else the first one, as a request for the shell.
func exampleOf(calls []call) string {
	if len(calls) == 0 {
		return ""
	}
	c := calls[max(slices.IndexFunc(calls, func(c call) bool { return c.Method == "GET" }), 0)]
	url, query := "http://127.0.0.1:8080"+c.Path, ""
	for _, p := range c.Parameters {
		switch {
		case p.In == "path":
			url = strings.ReplaceAll(url, "{"+p.Name+"}", p.Example)
		case p.In == "query" && p.Required:
			query += "&" + p.Name + "=" + p.Example
		}
	}
	if query != "" {
		url += "?" + query[1:]
	}
	text := "$ curl"
	if c.Method != "GET" {
		text += " -X " + c.Method
	}
	for _, n := range c.Needs[:min(len(c.Needs), 1)] {
		for _, h := range n.Headers {
			text += " -H " + quoted(h+": $KEY")
		}
	}
	if c.Body != nil && len(c.Body.Examples) > 0 {
		text += " -H " + quoted("Content-Type: "+c.Body.Kind) + " \\\n    -d '" +
			strings.ReplaceAll(c.Body.Examples[0].Text, "'", `'\''`) + "'"
	}
	return text + " \\\n    " + quoted(url)
}

// quoted puts a text into double quotes, in which the shell replaces $KEY.
func quoted(text string) string { return `"` + text + `"` }

func (r *reference) call(method, path string, item, n *yaml.Node) call {
	c := call{ID: r.str(n, "operationId"), Method: method, Path: path, Summary: r.str(n, "summary"), Text: r.prose(n)}
	for _, way := range r.at(n, "security").Content {
		var w need
		for scheme, permissions := range r.pairs(way) {
			s := r.at(r.root, "components", "securitySchemes", scheme)
			header := r.str(s, "name")
			if header == "" {
				header = "Authorization: Bearer"
			}
			w.Headers = append(w.Headers, header)
			for _, p := range permissions.Content {
				w.Permissions = append(w.Permissions, p.Value)
			}
		}
		if i := slices.IndexFunc(c.Needs, func(o need) bool { return slices.Equal(o.Headers, w.Headers) }); i >= 0 {
			c.Needs[i].Permissions = append(c.Needs[i].Permissions, w.Permissions...)
		} else {
			c.Needs = append(c.Needs, w)
		}
	}
	for _, from := range []*yaml.Node{n, item} {
		for _, p := range r.at(from, "parameters").Content {
			f := r.field(r.str(p, "name"), r.at(p, "schema"), r.str(p, "required") == "true")
			f.In, f.Text = r.str(p, "in"), r.prose(p)
			if e := r.at(p, "example"); e.Kind != 0 {
				f.Example = shown(e)
			}
			c.Parameters = append(c.Parameters, f)
		}
	}
	order := []string{"path", "query", "header"}
	slices.SortStableFunc(c.Parameters, func(a, b field) int {
		return slices.Index(order, a.In) - slices.Index(order, b.In)
	})
	c.Body = r.body(r.at(n, "requestBody"))
	for status, response := range r.pairs(r.at(n, "responses")) {
		a := answer{Status: status, Text: r.prose(response), Body: r.body(response)}
		if status >= "400" { // the description names the codes
			c.Errors = append(c.Errors, a)
			continue
		}
		for name, h := range r.pairs(r.at(response, "headers")) {
			f := r.field(name, r.at(h, "schema"), r.str(h, "required") == "true")
			f.Text = r.prose(h)
			a.Headers = append(a.Headers, f)
		}
		c.Answers = append(c.Answers, a)
	}
	return c
}

// body reads the content of a request or an answer, which has one kind.
func (r *reference) body(n *yaml.Node) *body {
	for kind, media := range r.pairs(r.at(n, "content")) {
		b := &body{Kind: kind, Fields: r.fields(r.at(media, "schema"), "", 0)}
		if e := r.at(media, "example"); e.Kind != 0 {
			b.Examples = append(b.Examples, example{"Example", shown(e)})
		}
		for name, e := range r.pairs(r.at(media, "examples")) {
			title := "Example: " + name
			if s := r.str(e, "summary"); s != "" {
				title = "Example: " + s
			}
			b.Examples = append(b.Examples, example{title, shown(r.at(e, "value"))})
		}
		return b
	}
	return nil
}
