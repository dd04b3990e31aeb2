package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// A description is openapi.yaml with its schemas compiled: JSON Schema 2020-12, which knows all that the document uses of
// OpenAPI 3.0 but "nullable", with formats asserted. Every test in this package that speaks HTTP validates its requests and the answers against it.
type description struct {
	doc      map[string]any
	compiler *jsonschema.Compiler

	mu      sync.Mutex // guards schemas
	schemas map[string]*jsonschema.Schema
}

const descriptionURL = "file:///openapi.yaml"

// described is openapi.yaml, read once.
var described = sync.OnceValues(func() (*description, error) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	asJSON, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return nil, err
	}
	allowNull(doc)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.AssertContent()
	if err := c.AddResource(descriptionURL, doc); err != nil {
		return nil, err
	}
	return &description{doc: doc.(map[string]any), compiler: c, schemas: map[string]*jsonschema.Schema{}}, nil
})

// allowNull gives each schema that is nullable the type null, too. The linters allow "nullable" only next to a type.
func allowNull(node any) {
	switch v := node.(type) {
	case []any:
		for _, item := range v {
			allowNull(item)
		}
	case map[string]any:
		if typ, ok := v["type"].(string); ok && v["nullable"] == true {
			v["type"] = []any{typ, "null"}
		}
		for _, item := range v {
			allowNull(item)
		}
	}
}

func describedAPI(t testing.TB) *description {
	t.Helper()
	d, err := described()
	if err != nil {
		t.Fatal("openapi.yaml: ", err)
	}
	return d
}

// A node of the document, with its JSON pointer, so that a schema can be compiled where it stands.
type docNode struct {
	d     *description
	at    string
	value any
}

func (d *description) root() docNode { return docNode{d, "#", d.doc} }

// get descends by names and follows $refs. A node that does not exist has the value nil.
func (n docNode) get(names ...string) docNode {
	for _, name := range names {
		n = n.followed()
		m, _ := n.value.(map[string]any)
		n.at += "/" + pointerEscaped.Replace(name)
		n.value = m[name]
	}
	return n.followed()
}

func (n docNode) followed() docNode {
	m, _ := n.value.(map[string]any)
	ref, isRef := m["$ref"].(string)
	if !isRef {
		return n
	}
	to := n.d.root()
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		to = to.get(pointerPlain.Replace(name))
	}
	return to
}

func (n docNode) keys() []string {
	m, _ := n.followed().value.(map[string]any)
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (n docNode) items() (all []docNode) {
	list, _ := n.value.([]any)
	for i, v := range list {
		all = append(all, docNode{n.d, n.at + "/" + strconv.Itoa(i), v}.followed())
	}
	return all
}

func (n docNode) text(name string) string {
	s, _ := n.get(name).value.(string)
	return s
}

// validate validates a value against the schema that this node is.
func (n docNode) validate(value any) error {
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	schema := n.d.schemas[n.at]
	if schema == nil {
		var err error
		if schema, err = n.d.compiler.Compile(descriptionURL + n.at); err != nil {
			return fmt.Errorf("openapi.yaml%s is no schema: %w", n.at, err)
		}
		n.d.schemas[n.at] = schema
	}
	return schema.Validate(value)
}

func (n docNode) validateJSON(text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	if err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	return n.validate(value)
}

// validateText validates the text of a header or parameter, as a number or bool if it can be one.
func (n docNode) validateText(text string) error {
	schema := n.get("schema")
	switch schema.get("type").value {
	case "integer", "number", "boolean":
		return schema.validateJSON([]byte(text))
	}
	return schema.validate(text)
}

// operation finds the description of a call; a path without parameters wins. The path item is nil for an unknown path,
// the operation for a method that it does not have.
func (d *description) operation(method, path string) (item, op docNode, vars map[string]string) {
	for _, template := range d.root().get("paths").keys() {
		found, ok := matchTemplate(template, path)
		if ok && (item.value == nil || len(found) < len(vars)) {
			item, vars = d.root().get("paths", template), found
		}
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return item, item.getIf(strings.ToLower(method)), vars
}

func (n docNode) getIf(name string) docNode {
	if n.value == nil {
		return n
	}
	return n.get(name)
}

func matchTemplate(template, path string) (vars map[string]string, ok bool) {
	want, have := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}
	vars = map[string]string{}
	for i, part := range want {
		if name, isVar := strings.CutPrefix(part, "{"); isVar && have[i] != "" {
			vars[strings.TrimSuffix(name, "}")] = have[i]
		} else if part != have[i] {
			return nil, false
		}
	}
	return vars, true
}

// An asked is one request and its response.
type asked struct {
	method, target string
	header         http.Header
	body           []byte
	status         int
	answer         http.Header
	answerBody     []byte
}

// conform validates an exchange: the response always, the request if the server accepted it.
func (d *description) conform(a *asked) error {
	path, query, _ := strings.Cut(a.target, "?")
	item, op, vars := d.operation(a.method, path)
	response, err := d.responseTo(a, path, item, op)
	if err == nil {
		err = errors.Join(a.conformResponse(response), a.conformNothingElse(response), a.conformWords(path))
	}
	if a.status < 300 && op.value != nil {
		err = errors.Join(err, a.conformRequest(item, op, vars, query))
	}
	if err != nil {
		return fmt.Errorf("%s %s %s => %d %s: %w", a.method, a.target, a.body, a.status, a.answerBody, err)
	}
	return nil
}

// general are the responses that need no operation: to an unknown path, to another method, and to bytes that are no
// request.
var general = map[int]string{400: "Malformed", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 408: "Timeout",
	413: "PayloadTooLarge", 429: "RateLimited", 431: "HeadersTooLarge", 500: "Internal", 503: "Unavailable"}

// responseTo finds the description of a response. Its value is nil if only the text of the document describes it.
func (d *description) responseTo(a *asked, path string, item, op docNode) (docNode, error) {
	status := strconv.Itoa(a.status)
	if op.value != nil {
		if r := op.get("responses", status); r.value != nil {
			return r, nil
		}
		// Any call may have a body that is too large, and a path is unknown where its service is not served.
		if a.status != http.StatusRequestEntityTooLarge && a.status != http.StatusNotFound {
			return docNode{}, fmt.Errorf("the document has no %s for this call", status)
		}
	}
	if a.method == http.MethodOptions && a.status == http.StatusNoContent && item.value != nil {
		return docNode{}, nil
	}
	name := general[a.status]
	if path == "/api/mail" || strings.HasPrefix(path, "/api/mail/") {
		name = "Mail" + name
	}
	if strings.HasPrefix(path, "/api/gate/") {
		name = "Gate" + name
	}
	r := d.root().get("components", "responses", name)
	if r.value == nil {
		return r, fmt.Errorf("the document has no general response %q for %s", name, status)
	}
	return r, nil
}

// maxRows is how many rows of a long list are validated if the call is not known.
const maxRows = 50

// conformEnvelope validates a body against the envelopes, whatever call it answers.
func (d *description) conformEnvelope(body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	envelope, _ := value.(map[string]any)
	if rows, isList := envelope["data"].([]any); isList {
		envelope["data"] = rows[:min(len(rows), maxRows)]
	}
	schemas := d.root().get("components", "schemas")
	for _, name := range schemas.keys() {
		if !strings.HasSuffix(name, "Failure") && !strings.HasSuffix(name, "Answer") {
			continue
		}
		bad := schemas.get(name).validate(value)
		if bad == nil {
			return nil
		}
		err = errors.Join(err, fmt.Errorf("no %s: %w", name, bad))
	}
	return fmt.Errorf("%s: %w", body, err)
}

func (a *asked) conformResponse(r docNode) (err error) {
	if r.value == nil {
		return nil
	}
	for _, name := range r.get("headers").keys() {
		h := r.get("headers", name)
		text := a.answer.Get(name)
		switch {
		case text != "":
			if bad := h.validateText(text); bad != nil {
				err = errors.Join(err, fmt.Errorf("response header %s: %q: %w", name, text, bad))
			}
		case h.get("required").value == true:
			err = errors.Join(err, fmt.Errorf("response header %s is missing", name))
		}
	}
	content := r.get("content")
	if a.method == http.MethodHead || content.value == nil {
		if len(a.answerBody) > 0 {
			err = errors.Join(err, errors.New("there is a body"))
		}
		return err
	}
	media, params, parseErr := mime.ParseMediaType(a.answer.Get("Content-Type"))
	schema := content.get(media).get("schema")
	switch {
	case parseErr != nil || schema.value == nil:
		return errors.Join(err, fmt.Errorf("the document has no content %q", a.answer.Get("Content-Type")))
	case media != "application/json":
		return errors.Join(err, schema.validate(string(a.answerBody)))
	case params["charset"] != "utf-8":
		err = errors.Join(err, fmt.Errorf("Content-Type %q is not as the document says", a.answer.Get("Content-Type")))
	}
	return errors.Join(err, schema.validateJSON(a.answerBody))
}

// conformWords checks what the document says in words only: which fields come with which code. In schemas it would be a choice
// between objects of the same fields, of which generators make nothing.
func (a *asked) conformWords(path string) error {
	var answer struct {
		Error struct {
			Code    string
			Details []any
		}
		Data json.RawMessage
	}
	_ = json.Unmarshal(a.answerBody, &answer) // what is no JSON has no code; conformResponse says so
	code := answer.Error.Code
	switch {
	case code == "DOMAIN_NOT_ALLOWED" || code == "CONFLICT" && strings.HasPrefix(path, "/api/platform/") && !strings.Contains(path, "/proposals/"):
		if len(answer.Error.Details) == 0 {
			return fmt.Errorf("%s comes without details", code)
		}
	case strings.HasSuffix(path, "/smtp-config/test") && a.status == http.StatusBadRequest:
		if (code == "VALIDATION_ERROR") != (answer.Data == nil) {
			return fmt.Errorf("%s has the data %s", code, answer.Data)
		}
	case a.method == http.MethodPost && strings.HasSuffix(path, "/resolve") && a.status == http.StatusOK:
		var entries []struct {
			Status int
			Code   *string
			Result map[string]any
		}
		if err := json.Unmarshal(answer.Data, &entries); err != nil {
			return err
		}
		for _, e := range entries {
			if (e.Status == http.StatusOK) != (e.Code == nil) || (e.Status == http.StatusOK) != (e.Result != nil) {
				return fmt.Errorf("an entry has status %d, code %v and result %v", e.Status, e.Code, e.Result)
			}
		}
	}
	return nil
}

// conformRequest validates a request that was accepted.
func (a *asked) conformRequest(item, op docNode, vars map[string]string, query string) (err error) {
	values, _ := url.ParseQuery(query) // what is malformed in it is no parameter of ours
	for _, p := range append(item.get("parameters").items(), op.get("parameters").items()...) {
		name := p.text("name")
		text := map[string]string{"path": vars[name], "query": values.Get(name), "header": a.header.Get(name)}[p.text("in")]
		if name == "X-Request-Id" {
			continue // one of another form is replaced, not refused
		}
		switch {
		case text != "":
			if bad := p.validateText(text); bad != nil {
				err = errors.Join(err, fmt.Errorf("parameter %s: %q: %w", name, text, bad))
			}
		case p.get("required").value == true:
			err = errors.Join(err, fmt.Errorf("parameter %s is missing", name))
		}
	}
	body := op.get("requestBody")
	switch {
	case body.value == nil:
		return err // a body that nobody wants is not looked at
	case len(a.body) == 0 && body.get("required").value == true:
		return errors.Join(err, errors.New("the document requires a body"))
	case len(a.body) == 0 && body.get("required").value == false:
		return err
	}
	return errors.Join(err, body.get("content", "application/json", "schema").validateJSON(a.body))
}

// conforming returns a client for tests that use net/http: it validates each exchange.
func conforming(t testing.TB) *http.Client {
	return &http.Client{Transport: conformingTransport{t, http.DefaultTransport}}
}

type conformingTransport struct {
	t   testing.TB
	via http.RoundTripper
}

func (c conformingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	a := &asked{method: req.Method, target: req.URL.RequestURI(), header: req.Header}
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		if a.body, err = io.ReadAll(body); err != nil {
			return nil, err
		}
	}
	res, err := c.via.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if a.answerBody, err = io.ReadAll(res.Body); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(a.answerBody))
	a.status, a.answer = res.StatusCode, res.Header
	if err := describedAPI(c.t).conform(a); err != nil {
		c.t.Error(err)
	}
	return res, nil
}

// Names in a JSON pointer (RFC 6901), escaped and plain.
var pointerEscaped, pointerPlain = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")
