package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/cluster"
)

// A metric is what /metrics says about one name.
type metric struct {
	kind, help string
	labels     []string          // of all its series, in order
	values     map[string]string // by what stands before the value
}

// metricsAt reads /metrics.
func metricsAt(t testing.TB, r *rig) (metrics map[string]*metric, text string) {
	t.Helper()
	res, err := r.client.Get(r.ops + "/metrics")
	must(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("/metrics is answered %d: %s", res.StatusCode, body)
	}
	return readMetrics(t, string(body)), string(body)
}

// readMetrics reads the text of a scrape, and fails for what no series may have.
func readMetrics(t testing.TB, text string) map[string]*metric {
	t.Helper()
	metrics := map[string]*metric{}
	sample := regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? (\S+)$`)
	label := regexp.MustCompile(`(\w+)="`)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, is := strings.CutPrefix(line, "# HELP "); is {
			name, help, _ := strings.Cut(rest, " ")
			metrics[name] = &metric{help: help, values: map[string]string{}}
			continue
		}
		if rest, is := strings.CutPrefix(line, "# TYPE "); is {
			name, kind, _ := strings.Cut(rest, " ")
			metrics[name].kind = kind
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("line %q", line)
			continue
		}
		of := metrics[m[1]]
		for _, ending := range []string{"_bucket", "_sum", "_count"} {
			if base := metrics[strings.TrimSuffix(m[1], ending)]; of == nil && base != nil {
				of = base
			}
		}
		if of == nil {
			t.Errorf("%q has no help", line)
			continue
		}
		if strings.HasPrefix(m[1], "fingerpost_") && (m[3] == "NaN" || strings.HasPrefix(m[3], "-")) {
			t.Errorf("%q: no such value means anything", line)
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" && !slices.Contains(of.labels, l[1]) {
				of.labels = append(of.labels, l[1])
			}
		}
		of.values[strings.TrimSuffix(line, " "+m[3])] = m[3]
	}
	return metrics
}

// ours are the names of the metrics that are fingerpost's own, in order.
func ours(metrics map[string]*metric) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(metrics)), func(name string) bool {
		return !strings.HasPrefix(name, "fingerpost_")
	})
}

// TestMetrics: a server with everything on has each metric that the alerts name, and the table of the README explains
// each. One with nothing on has the same, but for git, the cluster, verification, webhooks and inbound blocks. With FINGERPOST_WRITE set the table is written.
func TestMetrics(t *testing.T) {
	t.Parallel()
	c := idleCluster(t, "fra1")
	c.put("defaults.hcl", "defaults {\n  verification {}\n}\n")
	c.put("hooks.hcl", "webhook \"crm\" {\n  url    = \"https://crm.acme.example/\"\n"+
		"  secret = \"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"\n}\n"+
		"inbound \"ses\" {\n  format = \"ses\"\n  secret = \"s3cret-of-a-provider\"\n}\n")
	g := newGitRig(t, c.rig)
	ca := newCA(t, "ours")
	end := time.Now().Add(30 * 24 * time.Hour).Truncate(time.Second)
	cert, key := ca.issue("node", end)
	c.flags = append(c.flags, "--git", "--git-pull", "1h", "--git-push", "--gate-listen", "127.0.0.1:0", "--tls-cert", cert,
		"--tls-key", key, "--cluster-ca", ca.file())
	plain := newRig(t, nil)
	without, _ := metricsAt(t, plain)
	c.begin()
	fra := c.idleEdge("fra1", "")
	edgeCert, edgeKey := ca.issue("fra1", end)
	fra.flags = append(fra.flags, "--cluster-ca", ca.file(), "--tls-cert", edgeCert, "--tls-key", edgeKey)
	fra.start()
	fra.untilStatus("the edge follows", func(s cluster.Status) bool { return s.Connected && s.Whole })
	g.whole()
	ask := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer ask.CloseIdleConnections()
	for target, status := range map[string]int{
		c.gateURL() + "/check?domain=shop.acme.example":               http.StatusOK,
		c.gateURL() + "/check?domain=nobody.example":                  http.StatusForbidden,
		c.gateURL() + "/check?domain=shop.acme.example&auth=required": http.StatusUnauthorized,
		c.gateURL() + "/ask": http.StatusBadRequest,
		c.url + "/api/platform/projects/resolve?domain=shop.acme.example&key=no": http.StatusUnauthorized,
		c.url + "/api/gate/check?domain=shop.acme.example":                       http.StatusUnauthorized,
		c.url + "/api/gate/check?domain=shop.acme.example&key=" + c.keys["all"]:  http.StatusUnauthorized,
		c.url + "/" + c.keys["all"] + "?s3cret":                                  http.StatusNotFound,
	} {
		res, err := ask.Get(target)
		must(t, err)
		res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("%s: %d, want %d", target, res.StatusCode, status)
		}
	}
	if out, code := c.run("backup", "--ops-url", c.ops, c.path("../backup")); code != cli.ExitOK {
		t.Fatalf("backup: %d %s", code, out)
	}
	testrig.Eventually(t, "the edge is heard", func() bool {
		metrics, _ := metricsAt(t, c.rig)
		return metrics["fingerpost_cluster_edge_ready"] != nil &&
			metrics["fingerpost_cluster_edge_ready"].values[`fingerpost_cluster_edge_ready{edge="fra1"}`] == "1"
	})
	metrics, text := metricsAt(t, c.rig)

	for series, want := range map[string]string{
		"fingerpost_ready": "1", "fingerpost_config_projects": "3", "fingerpost_cluster_edges": "1",
		"fingerpost_git_sync_failing": "0", "fingerpost_git_overruled_branches": "0", "fingerpost_mail_stopped_mails": "0",
		`fingerpost_gateway_answers_total{result="passed"}`:          "1",
		`fingerpost_gateway_answers_total{result="denied"}`:          "1",
		`fingerpost_gateway_answers_total{result="unauthenticated"}`: "3",
		`fingerpost_gateway_answers_total{result="invalid"}`:         "1",
		`fingerpost_gateway_answers_total{result="failed"}`:          "0",
		`fingerpost_config_writes_total{result="written"}`:           "0",
		`fingerpost_domains{ownership="failing"}`:                    "0",
		`fingerpost_webhook_off{webhook="crm"}`:                      "0",
		`fingerpost_mail_inbound_total{inbound="ses",result="full"}`: "0",
		"fingerpost_webhooks_problem":                                "0",
		"fingerpost_tls_certificate_expiry_timestamp_seconds":        fmt.Sprintf("%v", float64(end.Unix())),
	} {
		name, _, _ := strings.Cut(series, "{")
		if metrics[name] == nil || metrics[name].values[series] != want {
			t.Errorf("%s: %+v, want %s", series, metrics[name], want)
		}
	}
	if metrics["fingerpost_backup_last_success_timestamp_seconds"].values["fingerpost_backup_last_success_timestamp_seconds"] == "0" {
		t.Error("the backup is not told")
	}
	if free := metrics["fingerpost_ledger_disk_free_ratio"].values["fingerpost_ledger_disk_free_ratio"]; !strings.HasPrefix(free, "0.") {
		t.Errorf("%s of the disk is free", free)
	}
	for _, secret := range append(slices.Collect(maps.Values(c.keys)), "s3cret", "fpk_") {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in the metrics", secret)
		}
	}
	group := regexp.MustCompile(`^fingerpost_(git_|cluster_|domains$|webhook_|mail_inbound_)`)
	always := slices.DeleteFunc(ours(metrics), group.MatchString)
	if got := ours(without); !slices.Equal(got, always) {
		t.Errorf("with nothing on there is\n%v\nwith everything on, but for git, the cluster, verification and webhooks,\n%v", got, always)
	}
	checkNames(t, metrics, alertsFile)
	checkNames(t, metrics, dashboardFile)
	checkTable(t, metrics)
	promtool := exec.CommandContext(t.Context(), testrig.Need(t, "promtool")[0], "check", "metrics")
	promtool.Stdin = strings.NewReader(text)
	if out, err := promtool.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// checkNames fails for metrics that a file names and a server does not have.
func checkNames(t *testing.T, metrics map[string]*metric, file string) {
	t.Helper()
	named := regexp.MustCompile(`\b(?:fingerpost|process|go)_[a-z_]+`).FindAllString(readText(t, file), -1)
	if len(named) < 20 {
		t.Errorf("%s names %d metrics", file, len(named))
	}
	for _, name := range named {
		base := name
		for _, ending := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, ending)
		}
		if m := metrics[base]; metrics[name] == nil && (m == nil || m.kind != "histogram") {
			t.Errorf("%s names %s, which a server with everything on does not have", file, name)
		}
	}
}

const metricsReadme = "../../api/ops/README.md"

// checkTable compares the table of the README with the help of the metrics.
func checkTable(t *testing.T, metrics map[string]*metric) {
	t.Helper()
	var table strings.Builder
	table.WriteString("| metric | labels | kind | what it says |\n|---|---|---|---|\n")
	for _, name := range ours(metrics) {
		m := metrics[name]
		labels := ""
		if len(m.labels) > 0 {
			slices.Sort(m.labels)
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", name, labels, m.kind, strings.ReplaceAll(m.help, "|", `\|`))
	}
	readme := readText(t, metricsReadme)
	before, rest, found := strings.Cut(readme, "| metric | labels |")
	_, after, ended := strings.Cut(rest, "\n\n")
	if !found || !ended {
		t.Fatalf("%s has no table", metricsReadme)
	}
	want := before + table.String() + "\n" + after
	if os.Getenv("FINGERPOST_WRITE") != "" {
		must(t, os.WriteFile(metricsReadme, []byte(want), 0o644))
	} else if readme != want {
		t.Errorf("the table in %s is not what /metrics says: FINGERPOST_WRITE=1 go test -run TestMetrics ./cmd/fingerpost writes it",
			metricsReadme)
	}
}

// TestMetricsHold: whatever is asked makes no series of its own, and scrapes at the same time as each other, a flood and
// reloads see counters that never go back.
func TestMetricsHold(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := idleRig(t, t.TempDir(), nil)
	r.flags = []string{"--gate-listen", "127.0.0.1:0"}
	r.start()
	get := func(method, url string, headers ...string) (body string) {
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Error(err)
			return ""
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			if req.Header.Set(name, value); name == "Host" {
				req.Host = value
			}
		}
		res, err := r.client.Do(req)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	gate := r.gateURL()
	const key = "X-PLATFORM-KEY: "
	flood := func(round int) {
		for i := range 40 {
			odd := fmt.Sprintf("odd%d-%d", round, i)
			for _, base := range []string{r.url, gate, r.ops} {
				get("GET", base+"/"+odd)
				get(strings.ToUpper(strings.ReplaceAll(odd, "-", "")), base+"/check/"+odd, "Host: "+odd+".example", "X-Forwarded-Host: "+odd)
			}
			get("GET", gate+"/check?domain="+odd+".example&deny=404", "Authorization: Bearer "+odd)
			get("GET", r.url+"/api/platform/projects/"+odd, key+r.keys["all"])
			get("GET", r.url+"/api/platform/projects/resolve?domain="+odd+".example", key+odd)
			get("GET", r.url+"/docs/"+odd)
			get("GET", r.url+"/console/"+odd)
			get("GET", r.ops+"/metrics?"+odd+"=1", "Accept: "+odd)
		}
	}
	series := func() (n int) {
		metrics, text := metricsAt(t, r)
		for _, name := range ours(metrics) {
			n += len(metrics[name].values)
		}
		if strings.Contains(strings.ToLower(text), "odd") {
			t.Error("text of a client is in the metrics")
		}
		return n
	}
	flood(1) // with more bad keys than one address may try: their refusals are of both kinds
	before := series()

	var all sync.WaitGroup
	scrapes := make([][]string, 4)
	for i := range scrapes {
		all.Go(func() {
			for range 20 {
				scrapes[i] = append(scrapes[i], get("GET", r.ops+"/metrics"))
			}
		})
	}
	all.Go(func() { flood(2) })
	for i := range 10 {
		r.put("more.hcl", fmt.Sprintf("project \"more\" {\n  name = \"More %d\"\n  domain \"more.example\" {}\n}\n", i))
		get("POST", r.ops+"/reload")
	}
	all.Wait()
	for _, scrapes := range scrapes {
		last := map[string]float64{}
		for _, text := range scrapes {
			for name, m := range readMetrics(t, text) {
				if m.kind == "gauge" {
					continue
				}
				for at, text := range m.values {
					if strings.Contains(at, "quantile=") { // of a summary: no count
						continue
					}
					value, err := strconv.ParseFloat(text, 64)
					if err != nil || value < last[at] {
						t.Errorf("%s of %s: %s after %v: %v", at, name, text, last[at], err)
					}
					last[at] = value
				}
			}
		}
	}
	if after := series(); after != before {
		t.Errorf("the same flood with other names made %d series of %d", after, before)
	}
}

// TestDroppedSpansAreTold: spans that the collector refuses are counted.
func TestDroppedSpansAreTold(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusBadRequest)
	}))
	defer refuses.Close()
	r := idleRig(t, t.TempDir(), nil)
	r.flags = []string{"--otlp", refuses.URL}
	r.start()
	r.ask(http.MethodGet, "/api/platform/projects/resolve?domain=shop.acme.example", r.keys["all"], "",
		"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	const dropped = "fingerpost_trace_spans_dropped_total"
	testrig.Eventually(t, "dropped spans are counted", func() bool {
		metrics, _ := metricsAt(t, r)
		return metrics[dropped].values[dropped] != "0"
	})
}
