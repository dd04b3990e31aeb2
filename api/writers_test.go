package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// Many clients write to one project and to projects of their own at the same time: nothing is lost, nothing fails, and
// each project has one primary domain.
func TestWritersAtTheSameTime(t *testing.T) {
	const clients, each = 16, 8
	d := newDesk(t, map[string]string{"acme.hcl": "# kept\nproject \"acme\" {\n  name = \"Acme\" # and this\n}\n"})
	send := func(method, path, body string) (int, []byte) {
		req, err := http.NewRequest(method, "http://"+d.addr+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, nil
		}
		req.Header.Set("X-PLATFORM-KEY", d.key)
		res, err := conforming(t).Do(req)
		if err != nil {
			t.Error(err)
			return 0, nil
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return res.StatusCode, b
	}
	shared := d.path(t, "/api/platform/projects/@acme/domains")
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			status, b := send("POST", "/api/platform/projects", fmt.Sprintf(`{"name":"Client %d","slug":"client-%d"}`, c, c))
			var made struct{ Data struct{ ID int64 } }
			if err := json.Unmarshal(b, &made); status != http.StatusCreated || err != nil {
				t.Errorf("create: %d %s", status, b)
				return
			}
			own := fmt.Sprintf("/api/platform/projects/%d/domains", made.Data.ID)
			for n := range each {
				for path, suffix := range map[string]string{shared: "acme", own: "own"} {
					status, b := send("POST", path, fmt.Sprintf(`{"domain":"c%d-n%d.%s.example","primary":true}`, c, n, suffix))
					if status != http.StatusCreated {
						t.Errorf("%s: %d %s", path, status, b)
					}
				}
			}
		})
	}
	all.Wait()
	seen := map[int64]bool{}
	err := d.resolver.EachProject(func(p *catalog.Project) bool {
		want := each
		if p.Slug == "acme" {
			want = clients * each
		}
		domains, total, err := d.resolver.Domains(p.ID, resolver.Query{})
		if err != nil || total != want {
			t.Errorf("%s has %d domains, want %d, %v", p.Slug, total, want, err)
		}
		primaries := 0
		for _, x := range domains {
			if seen[x.ID] {
				t.Errorf("id %d twice", x.ID)
			}
			if seen[x.ID] = true; x.Primary {
				primaries++
			}
		}
		if primaries != 1 {
			t.Errorf("%s has %d primary domains", p.Slug, primaries)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	d.compareFresh(t)
	for path, content := range d.files(t) {
		if strings.HasSuffix(path, ".tmp") {
			t.Errorf("%s was left behind", path)
		}
		if path == "acme.hcl" && !(bytes.HasPrefix([]byte(content), []byte("# kept\n")) && strings.Contains(content, "# and this")) {
			t.Errorf("a comment is gone:\n%s", content)
		}
	}
}
