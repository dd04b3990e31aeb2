package api_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

var pathParam = regexp.MustCompile(`\{[A-Za-z]+\}`)

// Every call of the description names the permission that a key lacks. Each is called with a key that has all others.
func TestForbiddenNamesThePermission(t *testing.T) {
	t.Parallel()
	h := start(t)
	d, keys := &catalog.Declared{}, map[catalog.Permission]string{}
	for _, lacks := range []catalog.Permission{catalog.MayRead, catalog.MayWrite | catalog.MayPropose, catalog.MayMail,
		catalog.MayResolve | catalog.MayRead, catalog.MaySecrets, catalog.MayWrite, catalog.MayWrite | catalog.MayPropose | catalog.MayMail} {
		all := catalog.MayAll | catalog.MayPropose
		keys[lacks] = h.newKey(d, fmt.Sprintf("lacks-%d", lacks), all&^lacks)
	}
	h.apply("lacking.hcl", d)
	seen := 0
	paths, _ := describedAPI(t).doc["paths"].(map[string]any)
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for method, op := range methods {
			o, _ := op.(map[string]any)
			needs := fmt.Sprint(o["security"]) // as Go prints it: [map[platformKey:[read]]]
			lacks, want := catalog.Permission(0), ""
			switch {
			case strings.Contains(needs, "[resolve]"):
				lacks, want = catalog.MayResolve|catalog.MayRead, "resolve"
			case strings.Contains(needs, "[read]"):
				lacks, want = catalog.MayRead, "read"
			case strings.Contains(needs, "[write]") && strings.Contains(needs, "[mail]"):
				lacks, want = catalog.MayWrite|catalog.MayPropose|catalog.MayMail, "write"
			case strings.Contains(needs, "[write]"):
				lacks, want = catalog.MayWrite|catalog.MayPropose, "write"
			case strings.Contains(needs, "[mail]"):
				lacks, want = catalog.MayMail, "mail"
			default:
				continue
			}
			seen++
			url := pathParam.ReplaceAllStringFunc(path, func(param string) string {
				if strings.HasSuffix(strings.ToLower(param), "id}") {
					return "1"
				}
				if param == "{commit}" {
					return strings.Repeat("a", 40)
				}
				return "acme"
			})
			if want == "resolve" {
				url += "?domain=shop.acme.example"
				if strings.HasSuffix(path, "/events") || method == "post" {
					url, _, _ = strings.Cut(url, "?")
				}
			}
			ask := func(query, key, want string) {
				header := "X-PLATFORM-KEY: " + key
				if strings.HasPrefix(path, "/api/mail") {
					header = "X-Internal-Service-Token: " + key + "\r\nX-Internal-Service-Name: tests"
				}
				h.requires(t, h.ask(strings.ToUpper(method), url+query, "", header), want)
			}
			switch onKeys := strings.HasPrefix(path, "/api/platform/keys"); {
			case onKeys:
				ask("", keys[lacks], "write")
				ask("", keys[catalog.MayWrite], "write") // keys cannot be proposed
				ask("", keys[catalog.MaySecrets], "secrets")
			case strings.HasPrefix(path, "/api/platform/webhooks"):
				ask("", keys[lacks], "write")
				ask("", keys[catalog.MaySecrets], "secrets")
			case method == "delete" && strings.HasSuffix(path, "/proposals/{name}"), // by whoever made it
				strings.HasSuffix(path, "/proposals/{name}/update"):
				ask("", keys[lacks], "propose")
			case method == "delete" && strings.HasSuffix(path, "/suppressions"): // a whole list is not removed
				ask("?address=ada%40example.com", keys[lacks], want)
			default:
				ask("", keys[lacks], want)
			}
			if want == "write" && strings.Contains(fmt.Sprint(o["parameters"]), "parameters/Propose") {
				ask("?dryRun=1", keys[lacks], "propose")
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d calls need a permission", seen)
	}
	// A key that is bound to another project lacks no permission.
	if a := h.ask("GET", "/api/platform/projects/2", h.acme); a.StatusCode != 403 || strings.Contains(string(a.body), "requires") {
		t.Errorf("another project: %d %s", a.StatusCode, a.body)
	}
	// Nothing is said of permissions to somebody without a key.
	if a := h.ask("GET", "/api/platform/projects/2", ""); a.StatusCode != 401 || strings.Contains(string(a.body), "requires\"") {
		t.Errorf("no key: %d %s", a.StatusCode, a.body)
	}
}

// requires checks that an answer is a 403 that names a permission.
func (h *house) requires(t *testing.T, a *answer, want string) {
	t.Helper()
	e, _ := a.json["error"].(map[string]any)
	got, _ := e["requires"].(string)
	if reason := a.Header.Get("X-Gate-Reason"); reason != "" { // gateways have no body
		_, got, _ = strings.Cut(reason, "which requires ")
	}
	if a.StatusCode != 403 || got != want {
		t.Errorf("%s %s: %d, requires %q, want %q: %s", a.Request.Method, a.Request.URL, a.StatusCode, got, want, a.body)
	}
}
