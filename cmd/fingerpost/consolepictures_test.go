package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"fingerpost/cmd/testrig"
)

// TestConsolePictures asks axe about every page in both schemes, looks that nothing is wider than a phone, and keeps a
// picture of each page where FINGERPOST_PICTURES says.
func TestConsolePictures(t *testing.T) {
	v := newVisit(t)
	b := v.tab()
	pages := []struct{ name, path string }{
		{"sign-in", "/console/sign-in"},
		{"look-up", "/console/lookup?domain=www.acme.example"},
		{"now", "/console/"},
		{"empty", "/console/lookup"},
		{"projects", "/console/projects"},
		{"project", "/console/projects/" + v.acme},
		{"long-names", "/console/projects/" + v.worst},
		{"edit", "/console/edit?kind=project&project=" + v.acme},
		{"diff", ""},
		{"mail", "/console/mail?project=" + v.acme},
		{"template", "/console/template?project=" + v.acme + "&id=" + v.rowID(v.admin, "/api/mail/projects/"+v.acme+"/templates?limit=100", "code", "WELCOME")},
		{"smtp-test", "/console/smtp-test?project=" + v.acme},
		{"changes", "/console/changes"},
		{"live", "/console/live"},
		{"keys", "/console/keys"},
		{"sessions", "/console/sessions"},
		{"error", "/console/projects/1"},
		{"needs", "/console/"}, // from here on, a file is broken
		{"problems", "/console/problems"},
	}
	for i := range 40 { // for the figures, the log and the list of changes
		v.ask(http.MethodGet, fmt.Sprintf("/api/platform/projects/resolve?domain=shop%d.acme.example", i%4), v.admin, "")
	}
	v.ask(http.MethodPost, "/api/mail/send/raw", v.admin, `{"domain":"shop.acme.example","toEmail":"grace@example.com",`+
		`"subject":"Your order","bodyText":"It is on its way."}`,
		"X-Internal-Service-Token: "+v.admin, "X-Internal-Service-Name: shop", "Content-Type: application/json")
	dir := os.Getenv("FINGERPOST_PICTURES")
	for i, p := range pages {
		if i == 1 {
			b.signIn(v.admin)
		}
		b.size(1280, false)
		if p.name == "needs" {
			v.put("acme.hcl", strings.Replace(v.text("acme.hcl"), `status      = "ACTIVE"`, `status      = "ACTIV"`, 1))
			if err := poll(testrig.Patience, func() error {
				b.open(p.path)
				if !strings.Contains(b.text("main"), "Needs a person") {
					return fmt.Errorf("nothing needs a person yet")
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		if p.name == "diff" {
			b.open("/console/edit?kind=domain&project=" + v.acme)
			b.fill("domain", "brand-new.acme.example")
			b.press("Show the change")
		} else {
			b.open(p.path)
		}
		for _, dark := range []bool{false, true} {
			for _, width := range []int64{360, 768, 1280} {
				b.size(width, dark)
				var wide int64
				b.eval("document.documentElement.scrollWidth", &wide)
				if wide > width {
					t.Errorf("%s is %d px wide in a window of %d", p.name, wide, width)
				}
				var lines int64
				if b.eval(`document.querySelector("header.top").offsetHeight`, &lines); lines > 60 {
					t.Errorf("%s, %d px: the header is %d px high, which is more than a line", p.name, width, lines)
				}
				if judged := testrig.Size(t, true, dark == (width == 1280) && width != 768); judged {
					for _, finding := range b.axe() {
						t.Errorf("%s, %d px, dark %v: axe: %s", p.name, width, dark, finding)
					}
				}
				if dir != "" {
					var picture []byte
					b.do(chromedp.FullScreenshot(&picture, 100))
					picture = fewColours(t, picture)
					name := fmt.Sprintf("%s-%d", p.name, width)
					if dark {
						name += "-dark"
					}
					if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}
