package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestInstalledSignIn signs in to an installed service for .ci/installed, with what the package and the sign-in page have
// printed: the page's address, a key, and a link that "fingerpost console-link" has made.
func TestInstalledSignIn(t *testing.T) {
	said, err := os.ReadFile(os.Getenv("FINGERPOST_INSTALLED"))
	if err != nil {
		t.Skip("takes an installed service: .ci/installed runs it")
	}
	find := func(pattern string) string {
		got := regexp.MustCompile(pattern).FindSubmatch(said)
		if got == nil {
			t.Fatalf("nothing like %s was printed:\n%s", pattern, said)
		}
		return string(got[1])
	}
	program, page := findBrowser(t), find(`the console is at (http\S+/console/)`)
	b := newTab(t, program, strings.TrimSuffix(page, "/console/"))
	b.open("/console/")
	b.sees("fingerpost keys create NAME --for admin", "fingerpost console-link")
	b.fill("key", find(`(fpk_\S+)`), "name", "Ada Lovelace", "email", "ada@example.com")
	b.press("Sign in")
	b.do(chromedp.WaitReady("nav.main", chromedp.ByQuery))
	b.open("/console/projects")
	b.sees("Acme")

	b = newTab(t, program, strings.TrimSuffix(page, "/console/"))
	b.open(find(`http\S+?(/console/sign-in\?link=[\w-]+)`))
	b.sees("This link signs you in once")
	b.press("Sign in")
	b.do(chromedp.WaitReady("nav.main", chromedp.ByQuery))
}
