package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"clients/oapi"
	"clients/ogen"
)

const tree = "../.."

// A reader of OpenAPI 3.0 finds every reference, and that each example has the form of its schema.
func TestReaderOf30(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile(filepath.Join(tree, "api/openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// kin-openapi takes a schema without a type for one without null, unlike the specification.
	doc.Components.Schemas["AuditValue"].Value.Nullable = true
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.0.") {
		t.Errorf("it is OpenAPI %s, which readers of 3.0 refuse", doc.OpenAPI)
	}
}

// A service is the real program on a copy of the example folder.
type service struct{ url, key string }

func serve(t *testing.T) service {
	t.Helper()
	dir := t.TempDir()
	config, binary := filepath.Join(dir, "projects.d"), filepath.Join(dir, "fingerpost")
	build := exec.Command("go", "build", "-o", binary, "./cmd/fingerpost")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.CopyFS(config, os.DirFS(filepath.Join(tree, "projects.d"))); err != nil {
		t.Fatal(err)
	}
	created, err := exec.Command(binary, "keys", "create", "clients", "--allow", "resolve,read,write,secrets", "--config", config, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var key struct{ Key string }
	if err := json.Unmarshal(created, &key); err != nil {
		t.Fatalf("%v: %s", err, created)
	}

	cmd := exec.Command(binary, "serve", "--config", config, "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			return service{url, key.Key}
		}
	}
	t.Fatal("it did not say where it listens")
	return service{}
}

func (s service) PlatformKey(context.Context, ogen.OperationName) (ogen.PlatformKey, error) {
	return ogen.PlatformKey{APIKey: s.key}, nil
}

func (s service) ServiceToken(context.Context, ogen.OperationName) (ogen.ServiceToken, error) {
	return ogen.ServiceToken{APIKey: s.key}, nil
}

func (s service) ServiceName(context.Context, ogen.OperationName) (ogen.ServiceName, error) {
	return ogen.ServiceName{APIKey: "clients"}, nil
}

func (s service) BearerToken(context.Context, ogen.OperationName) (ogen.BearerToken, error) {
	return ogen.BearerToken{}, nil
}

func (s service) InboundPassword(context.Context, ogen.OperationName) (ogen.InboundPassword, error) {
	return ogen.InboundPassword{}, nil
}

func (s service) InboundToken(context.Context, ogen.OperationName) (ogen.InboundToken, error) {
	return ogen.InboundToken{}, nil
}

// answered is the answer of a call, which is to have the type A.
func answered[A any](t *testing.T) func(any, error) A {
	return func(res any, err error) A {
		t.Helper()
		answer, ok := res.(A)
		if err != nil || !ok {
			t.Fatalf("%#v, %v", res, err)
		}
		return answer
	}
}

// ogen's client refuses an answer that the description does not allow: a null, a missing field, a value out of bounds.
func TestOgen(t *testing.T) {
	ctx, s := t.Context(), serve(t)
	c, err := ogen.NewClient(s.url, s)
	if err != nil {
		t.Fatal(err)
	}

	resolved := answered[*ogen.ResolveAnswerHeaders](t)(c.ResolveDomain(ctx, ogen.ResolveDomainParams{Domain: "globex.example"})).Response.Data.Resolved
	if resolved.Project.Slug != "globex" || !resolved.Project.Description.Null || !resolved.ServiceSettings.AuditEnabled {
		t.Errorf("resolve answers %+v", resolved)
	}

	batch := answered[*ogen.ResolveBatchAnswerHeaders](t)(c.ResolveDomains(ctx, &ogen.ResolveBatch{Domains: []string{"shop.acme.example", "nobody.example"}},
		ogen.ResolveDomainsParams{})).Response.Data
	if first := batch[0]; !first.Code.Null || first.Result.Value.Project.ResolvedProject.Description.Value != "Storefront and back office" {
		t.Errorf("the known name has %+v", first)
	}
	if second := batch[1]; second.Code.Value != "NOT_FOUND" || !second.Result.Null {
		t.Errorf("the unknown name has %+v", second)
	}

	project := ogen.GetProjectParams{ID: resolved.Project.ID, View: ogen.NewOptView("full")}
	full := answered[*ogen.ProjectViewHeaders](t)(c.GetProject(ctx, project)).Response
	if text, err := full.MarshalJSON(); err != nil || !strings.Contains(string(text), `"smtpConfig":null`) {
		t.Errorf("the whole project is %s, %v", text, err)
	}
	settings := answered[*ogen.ServiceSettingsAnswerHeaders](t)(c.GetServiceSettings(ctx, ogen.GetServiceSettingsParams{ID: resolved.Project.ID})).Response.Data
	if settings != resolved.ServiceSettings {
		t.Errorf("the settings are %+v, resolve has %+v", settings, resolved.ServiceSettings)
	}

	change := &ogen.ProjectUpdate{Description: ogen.NewOptNilProjectDescription("What is behind the door")}
	dry := answered[*ogen.ProjectWriteAnswerHeaders](t)(c.UpdateProject(ctx, change, ogen.UpdateProjectParams{ID: resolved.Project.ID, DryRun: ogen.NewOptDryRunQuery("1")}))
	if diff := string(dry.Response.Data.DryRunResult.Diff); !strings.Contains(diff, "+  description = ") {
		t.Errorf("the dry run has the diff %q", diff)
	}
	written := answered[*ogen.ProjectWriteAnswerHeaders](t)(c.UpdateProject(ctx, change, ogen.UpdateProjectParams{ID: resolved.Project.ID}))
	if got := written.Response.Data.Project.Description.Value; got != "What is behind the door" {
		t.Errorf("the project has the description %q", got)
	}

	keys := answered[*ogen.KeyListAnswerHeaders](t)(c.ListKeys(ctx, ogen.ListKeysParams{})).Response.Data
	if len(keys) == 0 || keys[0].Name != "clients" || !keys[0].ExpiresAt.Null {
		t.Errorf("the keys are %+v", keys)
	}
	domain := answered[*ogen.DomainAnswerHeaders](t)(c.CreateDomain(ctx, &ogen.DomainCreate{Domain: "gone.example"}, ogen.CreateDomainParams{ID: resolved.Project.ID})).Response.Data
	deleted := answered[*ogen.DeleteAnswerHeaders](t)(c.DeleteDomain(ctx, ogen.DeleteDomainParams{ProjectId: resolved.Project.ID, DomainId: domain.ID}))
	if !deleted.Response.Data.Null {
		t.Errorf("the deletion answers %+v", deleted.Response.Data)
	}
	answered[*ogen.AuditListAnswerHeaders](t)(c.ListAudit(ctx, ogen.ListAuditParams{}))
	answered[*ogen.ProjectListAnswerHeaders](t)(c.ListProjects(ctx, ogen.ListProjectsParams{}))
	answered[*ogen.UnknownDomainHeaders](t)(c.ResolveDomain(ctx, ogen.ResolveDomainParams{Domain: "nobody.example"}))
}

func TestOapiCodegen(t *testing.T) {
	s := serve(t)
	c, err := oapi.NewClientWithResponses(s.url, oapi.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-PLATFORM-KEY", s.key)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.ResolveDomainWithResponse(t.Context(), &oapi.ResolveDomainParams{Domain: "globex.example"})
	if err != nil || answer.JSON200 == nil {
		t.Fatalf("%v %s", err, answer.Body)
	}
	resolved, err := answer.JSON200.Data.AsResolved()
	if err != nil || resolved.Project.Slug != "globex" || resolved.Project.Description != nil {
		t.Fatalf("resolve answers %+v, %v", resolved, err)
	}
	whole := oapi.GetProjectParamsView("full")
	project, err := c.GetProjectWithResponse(t.Context(), resolved.Project.Id, &oapi.GetProjectParams{View: &whole})
	if err != nil || project.JSON200 == nil {
		t.Fatalf("%v %s", err, project.Body)
	}
	settings, err := c.GetServiceSettingsWithResponse(t.Context(), resolved.Project.Id, nil)
	if err != nil || settings.JSON200 == nil || settings.JSON200.Data != resolved.ServiceSettings {
		t.Fatalf("%v %s", err, settings.Body)
	}
}
