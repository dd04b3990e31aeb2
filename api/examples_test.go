package api_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

// TestOpenAPISchemas compiles every schema of the document and validates every example against the schema next to it.
func TestOpenAPISchemas(t *testing.T) {
	d := describedAPI(t)
	schemas, examples := 0, 0
	var walk func(n docNode)
	walk = func(n docNode) {
		if schema := n.getIf("schema"); schema.value != nil {
			schemas++
			for where, example := range examplesOf(n) {
				examples++
				if err := schema.validate(example); err != nil {
					t.Errorf("%s: %v", where, err)
				}
			}
		}
		switch v := n.value.(type) {
		case map[string]any:
			if _, isRef := v["$ref"]; isRef {
				return
			}
			for name, child := range v {
				if name != "example" && name != "examples" && name != "value" {
					walk(docNode{d, n.at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name), child})
				}
			}
		case []any:
			for i, child := range v {
				walk(docNode{d, n.at + "/" + strconv.Itoa(i), child})
			}
		}
	}
	walk(d.root())
	for _, name := range d.root().get("components", "schemas").keys() {
		schema := d.root().get("components", "schemas", name)
		schemas++
		if err := schema.validate(nil); err != nil && strings.Contains(err.Error(), "is no schema") {
			t.Error(err)
		}
		for _, example := range schema.get("examples").items() {
			examples++
			if err := schema.validate(example.value); err != nil {
				t.Errorf("%s: %v", example.at, err)
			}
		}
	}
	if schemas < 100 || examples < 100 {
		t.Errorf("%d schemas, %d examples: were they found?", schemas, examples)
	}
}

func examplesOf(n docNode) map[string]any {
	all := map[string]any{}
	if m, _ := n.value.(map[string]any); m["example"] != nil {
		all[n.at+"/example"] = m["example"]
	}
	for _, name := range n.get("examples").keys() {
		e := n.get("examples", name)
		all[e.at] = e.get("value").value
	}
	return all
}

// TestOpenAPIRefs follows every $ref.
func TestOpenAPIRefs(t *testing.T) {
	d := describedAPI(t)
	var walk func(n docNode)
	walk = func(n docNode) {
		switch v := n.value.(type) {
		case map[string]any:
			if ref, isRef := v["$ref"].(string); isRef && (!strings.HasPrefix(ref, "#/") || n.followed().value == nil) {
				t.Errorf("%s: %s leads nowhere", n.at, ref)
			}
			for name, child := range v {
				walk(docNode{d, n.at + "/" + name, child})
			}
		case []any:
			for i, child := range v {
				walk(docNode{d, n.at + "/" + strconv.Itoa(i), child})
			}
		}
	}
	walk(d.root())
}

// TestOpenAPICodes: the document lists every code of api/README.md, Errors, and the description of some response names
// each.
func TestOpenAPICodes(t *testing.T) {
	d := describedAPI(t)
	listed := map[string]bool{}
	for _, code := range d.root().get("components", "schemas", "ErrorCode", "enum").items() {
		listed[code.value.(string)] = true
	}
	for _, code := range []catalog.Code{catalog.CodeValidation, catalog.CodeUnauthorized, catalog.CodeForbidden, catalog.CodeDomainNotVerified,
		catalog.CodeProjectSuspended, catalog.CodeNotFound, catalog.CodeConflict, catalog.CodeFileInvalid, catalog.CodeFileChanged,
		catalog.CodeReadOnly, catalog.CodePrecondition, catalog.CodeInternal, catalog.CodeUnavailable,
		catalog.CodeMailDisabled, catalog.CodeSMTPNotConfigured, catalog.CodeTemplateInactive, catalog.CodeIdempotencyMismatch,
		"METHOD_NOT_ALLOWED", "REQUEST_TIMEOUT", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "HEADERS_TOO_LARGE", "RATE_LIMITED"} {
		if !listed[string(code)] {
			t.Errorf("ErrorCode lacks %s", code)
		}
	}
	told := ""
	for _, name := range d.root().get("components", "responses").keys() {
		told += d.root().get("components", "responses", name).text("description") + "\n"
	}
	for code := range listed {
		if !regexp.MustCompile("`" + code + "`").MatchString(told) {
			t.Errorf("no response is said to have %s", code)
		}
	}
}

// TestOpenAPISMTPCodes: every code that the mailer gives is listed, and no other.
func TestOpenAPISMTPCodes(t *testing.T) {
	files, err := filepath.Glob("../mailer/smtp/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources of the mailer: %v", err)
	}
	sends, err := filepath.Glob("../mailer/*.go")
	if err != nil || len(sends) == 0 {
		t.Fatalf("no sources of the mailer: %v", err)
	}
	files = append(files, sends...)
	given := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"(SMTP_[A-Z_]+)"`).FindAllSubmatch(text, -1) {
			given[string(m[1])] = true
		}
	}
	listed := map[string]bool{}
	for _, code := range describedAPI(t).root().get("components", "schemas", "SmtpCode", "enum").items() {
		listed[code.value.(string)] = true
	}
	for code := range given {
		if !listed[code] {
			t.Errorf("SmtpCode lacks %s", code)
		}
	}
	for code := range listed {
		if !given[code] {
			t.Errorf("SmtpCode has %s, which nothing gives", code)
		}
	}
}
