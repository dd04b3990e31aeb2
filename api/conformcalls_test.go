package api_test

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A call is an operation of openapi.yaml with a path that a server of the tests answers.
type call struct {
	method, path string
	op, item     docNode
}

func (c call) String() string { return c.method + " " + c.path }

// takes reports whether the document names a parameter of the call.
func (c call) takes(in, name string) bool {
	return slices.ContainsFunc(append(c.item.get("parameters").items(), c.op.get("parameters").items()...), func(p docNode) bool {
		return p.text("in") == in && p.text("name") == name
	})
}

// needsKey reports whether one of the keys' headers comes with the call.
func (c call) needsKey(scheme string) bool {
	return slices.ContainsFunc(c.op.get("security").items(), func(s docNode) bool { return s.get(scheme).value != nil })
}

// describedCalls lists every call. ids replace the parameters of paths.
func describedCalls(t testing.TB, ids map[string]string) (all []call) {
	t.Helper()
	paths := describedAPI(t).root().get("paths")
	for _, template := range paths.keys() {
		path := template
		for name, id := range ids {
			path = strings.ReplaceAll(path, "{"+name+"}", id)
		}
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
			if op := paths.get(template, strings.ToLower(method)); op.value != nil {
				all = append(all, call{method, path, op, paths.get(template)})
			}
		}
	}
	return all
}

var anyIDs = map[string]string{"id": "1", "projectId": "1", "domainId": "1000", "templateId": "1", "logId": "1", "slug": "acme", "name": "all",
	"commit": "5657785bc0f1a2a54b1b1f2a1a9d0f9f0f4b7d11"}

// smallestBodies have the fields that calls demand, by operationId; the others demand none.
var smallestBodies = map[string]string{
	"saveTemplate":   `{"code":"HELLO","name":"Hello","subjectTemplate":"Hello","bodyText":"Hello"}`,
	"putTemplate":    `{"code":"HELLO","name":"Hello","subjectTemplate":"Hello","bodyText":"Hello"}`,
	"createProject":  `{"name":"Initech"}`,
	"setProjects":    `{"projects":["acme"],"set":{"labels":{"plan":"gold"}}}`,
	"createDomain":   `{"domain":"new.acme.example"}`,
	"createKey":      `{"name":"app","allow":["read"]}`,
	"createWebhook":  `{"name":"app","url":"https://app.example/"}`,
	"saveSmtpConfig": `{"host":"smtp.acme.example","fromEmail":"shop@acme.example"}`,
	"putSmtpConfig":  `{"host":"smtp.acme.example","fromEmail":"shop@acme.example"}`,
}

// body is the smallest that the call takes, "" for none.
func (c call) body() string {
	if c.op.get("requestBody").value == nil {
		return ""
	}
	return cmp.Or(smallestBodies[c.op.text("operationId")], "{}")
}

// askDescribed makes a call with the smallest body that it takes, and further headers.
func (h *house) askDescribed(c call, key string, headers ...string) *answer {
	key, more := c.keyHeaders(key)
	return h.askBody(c.method, c.path, key, c.body(), append(headers, more...)...)
}

// keyHeaders returns the platform key, or the header fields of the mail service.
func (c call) keyHeaders(key string) (platform string, mail []string) {
	if c.needsKey("serviceToken") {
		return "", []string{"X-Internal-Service-Token: " + key, "X-Internal-Service-Name: test"}
	}
	return key, nil
}

// The code of an unknown epoch is in the enum of every call that takes X-Min-Position, and so is that of a proposal where
// nothing can be proposed.
func TestCodesOfHeadersAreDescribed(t *testing.T) {
	h := start(t)
	for _, c := range describedCalls(t, anyIDs) {
		if c.needsKey("platformKey") {
			a := h.askDescribed(c, h.all, "X-Min-Position: ffffffffffffffff.1")
			if reason, _, isGate := strings.Cut(a.Header.Get("X-Gate-Reason"), ":"); !isGate || reason != "POSITION_UNKNOWN" {
				a.check(t, http.StatusConflict, "POSITION_UNKNOWN")
			}
		}
		if c.takes("header", "X-Propose") {
			h.askDescribed(c, h.all, "X-Propose: new-shop").check(t, http.StatusConflict, "GIT_NOT_ENABLED")
		}
	}
}

// Every write that takes dryRun is tried out with the smallest body that it takes, and is answered as described.
func TestDryRunsAreDescribed(t *testing.T) {
	d, _ := newDryRunDesk(t)
	d.exchange(t, exchange{method: http.MethodPut, path: "/api/mail/projects/@acme/templates", header: http.Header{},
		body: smallestBodies["putTemplate"], status: http.StatusCreated})
	ids := map[string]string{"id": "@acme", "projectId": "@acme", "domainId": "@shop.acme.example", "templateId": "@HELLO", "name": "acme-team"}
	for _, c := range describedCalls(t, ids) {
		if !c.takes("query", "dryRun") {
			continue
		}
		e := exchange{method: c.method, path: d.path(t, c.path) + "?dryRun=1", header: http.Header{}, body: c.body(), status: http.StatusOK}
		d.exchange(t, e)
	}
}

// A body has no default: for PUT, and for POST where something exists, what is left out stays. Generated clients would send
// the default and change it.
func TestBodiesHaveNoDefaults(t *testing.T) {
	t.Parallel()
	for _, c := range describedCalls(t, nil) {
		schemas := allParts([]docNode{c.op.get("requestBody", "content", "application/json", "schema")})
		for _, s := range schemas {
			for _, name := range s.get("properties").keys() {
				if s.get("properties", name, "default").value != nil {
					t.Errorf("%s: %s has a default", c, name)
				}
			}
		}
	}
}
