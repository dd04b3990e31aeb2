package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"fingerpost/api/conditions"
	"fingerpost/cmd/testrig"
)

const alertsFile = "dist/alerts.yaml"

func readText(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return string(text)
}

// TestAlertsFile: the rules are those of the table of conditions. With FINGERPOST_WRITE set they are written.
func TestAlertsFile(t *testing.T) {
	if os.Getenv("FINGERPOST_WRITE") != "" {
		must(t, os.WriteFile(alertsFile, []byte(conditions.Rules()), 0o644))
	}
	if readText(t, alertsFile) != conditions.Rules() {
		t.Errorf("%s is not what the table of conditions says: FINGERPOST_WRITE=1 go test -run TestAlertsFile ./cmd/fingerpost "+
			"writes it", alertsFile)
	}
}

// TestAlerts: Prometheus takes the rules, and each fires when it should, with the sentence that is expected, and not
// otherwise.
func TestAlerts(t *testing.T) {
	t.Parallel()
	rules, cases := readText(t, alertsFile), readText(t, "testdata/alerts_test.yaml")
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(rules, -1) {
		for _, kind := range []string{"fires", "is quiet"} {
			if strings.Count(cases, "  - name: "+m[1]+" "+kind+"\n") != 1 {
				t.Errorf("testdata/alerts_test.yaml has no case %q", m[1]+" "+kind)
			}
		}
	}
	promtool := testrig.Need(t, "promtool")[0]
	for _, args := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", "testdata/alerts_test.yaml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestAlertsLeadSomewhere: each kind of condition has a section of a guide that the program serves, and each section of
// the guide to the alerts has an alert.
func TestAlertsLeadSomewhere(t *testing.T) {
	t.Parallel()
	docs := newDocuments("test", slog.Default())
	ids := map[string]map[string]bool{} // by page
	named := map[string]bool{}
	for _, k := range conditions.Kinds() {
		page, anchor, _ := strings.Cut(k.GuidePath(), "#")
		named[anchor] = named[anchor] || k.Alert.Name != ""
		if ids[page] == nil {
			w := httptest.NewRecorder()
			docs.ServeHTTP(w, httptest.NewRequest(http.MethodGet, page, nil))
			if w.Code != http.StatusOK {
				t.Fatalf("%s: %s is answered %d", k.ID, page, w.Code)
			}
			tree, err := html.Parse(w.Body)
			must(t, err)
			d := &document{ids: map[string]bool{}}
			d.read(t, page, tree)
			ids[page] = d.ids
		}
		if anchor != "" && !ids[page][anchor] {
			t.Errorf("%s: %s has no section %q", k.ID, page, anchor)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(readText(t, "guides/alerts.md"), -1) {
		if anchor := strings.ReplaceAll(strings.ToLower(m[1]), " ", "-"); !named[anchor] {
			t.Errorf("guides/alerts.md has a section %q, and no alert leads to it", m[1])
		}
	}
}

// TestAlertsOnKubernetes: the Prometheus operator gets the same rules. With FINGERPOST_WRITE set they are written.
func TestAlertsOnKubernetes(t *testing.T) {
	t.Parallel()
	want := "# Made of dist/alerts.yaml by TestAlertsOnKubernetes.\napiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n" +
		"metadata: {name: fingerpost}\nspec:\n"
	_, groups, found := strings.Cut(readText(t, alertsFile), "\ngroups:\n")
	if !found {
		t.Fatal("no groups")
	}
	for line := range strings.Lines("groups:\n" + groups) {
		if line != "\n" {
			line = "  " + line
		}
		want += line
	}
	const file = "dist/kubernetes/components/monitoring/alerts.yaml"
	if os.Getenv("FINGERPOST_WRITE") != "" {
		must(t, os.WriteFile(file, []byte(want), 0o644))
	}
	if readText(t, file) != want {
		t.Errorf("%s differs from %s: FINGERPOST_WRITE=1 go test -run TestAlertsOnKubernetes ./cmd/fingerpost writes it", file,
			alertsFile)
	}
}

// TestReleasesHaveAlerts: the archives and the packages bring what the guide says that they do.
func TestReleasesHaveAlerts(t *testing.T) {
	t.Parallel()
	release, packages := readText(t, "../../.ci/release"), readText(t, "dist/package/nfpm.yaml")
	for _, file := range []string{alertsFile, dashboardFile} {
		if !strings.Contains(release, "cmd/fingerpost/"+file) {
			t.Errorf(".ci/release does not put %s into the archives", file)
		}
		if !strings.Contains(packages, "cmd/fingerpost/"+file+", dst: /usr/share/fingerpost/"+path.Base(file)) {
			t.Errorf("nfpm.yaml does not have %s", file)
		}
	}
}
