package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/api/conditions"
	"fingerpost/api/ops"
	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// config implements ops.Config.
type config struct {
	status                configsrc.Status
	reloads, confirms     int
	reloadErr, confirmErr error
}

func (c *config) Status() configsrc.Status                      { return c.status }
func (c *config) EachWrite(func(string, uint64))                {}
func (c *config) Reload(context.Context) error                  { c.reloads++; return c.reloadErr }
func (c *config) Confirm(context.Context, catalog.Author) error { c.confirms++; return c.confirmErr }

func TestOps(t *testing.T) {
	h := start(t)
	c := &config{status: configsrc.Status{State: "held", Errors: 3, Held: &configsrc.Held{Reason: "too many"}, LastSuccess: time.Unix(1700000000, 500e6)}}
	if _, err := ops.New(ops.Options{}); err == nil {
		t.Error("no error without a server")
	}
	o, err := ops.New(ops.Options{Resolver: h.resolver, Figures: h.server, Streams: h.server.EventStreams(), Config: c, Logger: slog.New(slog.DiscardHandler), Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- o.Serve(ln) }()
	ask := func(method, path string, headers ...string) (int, string) {
		t.Helper()
		req, _ := http.NewRequest(method, "http://"+ln.Addr().String()+path, nil)
		for _, line := range headers {
			name, value, _ := strings.Cut(line, ": ")
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	expect := func(method, path string, want int, headers ...string) string {
		t.Helper()
		status, body := ask(method, path, headers...)
		if status != want {
			t.Errorf("%s %s: %d, want %d: %s", method, path, status, want, body)
		}
		return body
	}

	expect("GET", "/livez", 200)
	expect("GET", "/readyz", 503)
	o.SetReady(true)
	expect("GET", "/readyz", 200)
	o.SetReady(false)
	expect("GET", "/readyz", 503)
	expect("GET", "/debug/pprof/", 200)
	expect("GET", "/debug/pprof/heap", 200)
	expect("GET", "/none", 404)

	var status struct {
		Version string
		Store   struct{ Degraded bool }
		Formats struct{ Store, Ledger int }
		Config  struct{ State string }

		Conditions []conditions.Condition
	}
	if err := json.Unmarshal([]byte(expect("GET", "/status", 200)), &status); err != nil || status.Version != "v1" || status.Config.State != "held" ||
		status.Formats.Store != resolver.StoreFormat || status.Formats.Ledger != resolver.LedgerFormat {
		t.Errorf("status %+v, %v", status, err)
	}
	ids := map[string]string{}
	for _, c := range status.Conditions {
		ids[c.ID] = c.Sentence
	}
	if len(ids) != 3 || ids["not-ready"] == "" || ids["files-broken"] != "The files have 3 errors." || ids["reload-held"] == "" {
		t.Errorf("conditions %v", ids)
	}

	expect("GET", "/reload", 405)
	expect("POST", "/reload", 200)
	expect("POST", "/reload/confirm", 200)
	expect("POST", "/reload", 403, "Origin: http://evil.example", "Sec-Fetch-Site: cross-site")
	for _, path := range []string{"/status", "/metrics", "/debug/pprof/"} { // a page of another site, with GET too
		expect("GET", path, 403, "Sec-Fetch-Site: cross-site")
		expect("GET", path, 200, "Sec-Fetch-Site: same-origin")
	}
	expect("GET", "/livez", 200, "Sec-Fetch-Site: cross-site")
	c.reloadErr = errors.New("read projects.d: no such folder")
	if body := expect("POST", "/reload", 409); !strings.Contains(body, "no such folder") {
		t.Errorf("%s", body)
	}
	if c.reloads != 2 || c.confirms != 1 {
		t.Errorf("%d reloads, %d confirmations", c.reloads, c.confirms)
	}

	tag := h.ask("GET", resolveURL+"?domain=globex.example", h.all).Header.Get("ETag")
	h.ask("GET", resolveURL+"?domain=globex.example", h.all, "If-None-Match: "+tag)
	h.ask("GET", resolveURL+"?domain=nobody.example", h.all)
	h.ask("GET", "/api/platform/projects/1", "")
	h.ask("BREW", "/secret-path", "")
	o.SetReady(true)
	metrics := expect("GET", "/metrics", 200)
	for _, want := range []string{
		`fingerpost_http_request_duration_seconds_count{method="GET",route="/api/platform/projects/resolve",status="200"} 1`,
		`fingerpost_http_request_duration_seconds_count{method="GET",route="/api/platform/projects/resolve",status="304"} 1`,
		`fingerpost_http_request_duration_seconds_count{method="GET",route="/api/platform/projects/resolve",status="404"} 1`,
		`fingerpost_http_request_duration_seconds_count{method="GET",route="/api/platform/projects/{id}",status="401"} 1`,
		`fingerpost_http_request_duration_seconds_count{method="other",route="",status="404"} 1`,
		`fingerpost_http_request_duration_seconds_bucket{method="GET",route="/api/platform/projects/resolve",status="200",le="+Inf"} 1`,
		`fingerpost_auth_failures_total{reason="missing"} 1`,
		`fingerpost_auth_failures_total{reason="expired"} 0`,
		`fingerpost_resolve_cache_total{result="miss"} `,
		`fingerpost_config_last_reload_success_timestamp_seconds 1.7000000005e+09`,
		"fingerpost_config_problems 3", "fingerpost_config_held 1", "fingerpost_config_generation 1", "fingerpost_store_degraded 0",
		"fingerpost_ready 1", "fingerpost_audit_available 1", "fingerpost_audit_gaps 0", "fingerpost_ledger_disk_free_ratio 1",
		"fingerpost_key_expiry_timestamp_seconds 0", "fingerpost_trace_spans_dropped_total 0",
		"fingerpost_tls_certificate_expiry_timestamp_seconds 0", "fingerpost_backup_last_success_timestamp_seconds 0",
		"go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if strings.Contains(metrics, "secret-path") || strings.Contains(metrics, "BREW") {
		t.Error("the caller's text is in the metrics")
	}
	if err := o.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
