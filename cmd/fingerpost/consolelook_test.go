package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"fingerpost/cmd/testrig"
)

// look checks a page of the console at three widths in both schemes: nothing is wider than the window, and the header is one
// line. It asks axe about two of these six, and in a campaign about all. FINGERPOST_PICTURES=FOLDER keeps pictures.
func (b *tab) look(name string) {
	b.t.Helper()
	for _, dark := range []bool{false, true} {
		for _, width := range []int64{360, 768, 1280} {
			b.size(width, dark)
			var wide, header int64
			if b.eval("document.documentElement.scrollWidth", &wide); wide > width {
				b.t.Errorf("%s is %d px wide in a window of %d", name, wide, width)
			}
			if b.eval(`document.querySelector("header.top")?.offsetHeight ?? 0`, &header); header > 60 {
				b.t.Errorf("%s, %d px: the header is %d px high, which is more than a line", name, width, header)
			}
			var broken string
			if width == 360 {
				b.eval(brokenWords, &broken)
			}
			if broken != "" {
				b.t.Errorf("%s: on a phone words are broken in their middle, or a list is too long:\n%s", name, cutMiddle(broken, 600))
			}
			var cut string
			if b.eval(`[...document.querySelectorAll(".scroll:has(table.stack)")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel + ": " + e.scrollWidth + " px").join("\n")`, &cut); cut != "" && width != 768 {
				b.t.Errorf("%s, %d px: a list is cut off at its right end: %s", name, width, cut)
			}
			var heads string
			if b.eval(`[...document.querySelectorAll("table.stack:has(thead) tbody td:not([data-label], [colspan], :first-child)")].map(e => e.outerHTML).join("\n")`, &heads); heads != "" {
				b.t.Errorf("%s: on a phone these cells stand without the head of their column:\n%s", name, cutMiddle(heads, 600))
			}
			if judged := testrig.Size(b.t, true, dark == (width == 1280) && width != 768); judged {
				for _, finding := range b.axe() {
					b.t.Errorf("%s, %d px, dark %v: axe: %s", name, width, dark, finding)
				}
			}
			if dir := os.Getenv("FINGERPOST_PICTURES"); dir != "" {
				b.picture(dir, name, width, dark)
			}
		}
	}
	b.size(1280, false)
}

// brokenWords lists the words of at most 20 letters whose letters stand in several lines. Codes and names of domains, which have
// other characters, may be longer than a line.
const brokenWords = `(() => {
	const closed = [...document.querySelectorAll("main details:not([open])")];
	closed.forEach(d => d.open = true);
	const found = [], words = /(?<![^\s])\p{L}{2,20}(?![^\s,.:;])/gu, range = document.createRange();
	const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let text; text = all.nextNode();) {
		if (!text.parentElement.checkVisibility()) continue;
		for (const word of text.data.matchAll(words)) {
			range.setStart(text, word.index);
			range.setEnd(text, word.index + word[0].length);
			const lines = new Set([...range.getClientRects()].filter(r => r.width > 0).map(r => Math.round(r.top)));
			if (lines.size > 1) found.push(word[0] + " in " + text.parentElement.closest("td, th, p, li, h1, h2, a, div").outerHTML.slice(0, 120));
		}
	}
	if (document.documentElement.scrollWidth > innerWidth) found.push("all unfolded, the page is wider than the window");
	for (const row of document.querySelectorAll("table:is(.three, .projects) tbody tr"))
		if (getComputedStyle(row).gridTemplateRows.split(" ").length > 3) found.push("a row of a list has more than three lines");
	closed.forEach(d => d.open = false);
	return found.join("\n");
})()`

// The check of broken words finds one, and lets those alone that stand whole.
func TestConsoleBrokenWords(t *testing.T) {
	v := newVisit(t)
	b := v.tab()
	b.open("/console/sign-in")
	b.size(360, false)
	var found string
	if b.eval(brokenWords, &found); found != "" {
		t.Errorf("the page of signing in: %s", found)
	}
	b.eval(`document.querySelector("main").insertAdjacentHTML("beforeend", "<details><p id=narrow>Configuration</p></details>"); document.querySelector("#narrow").style.width = "30px"; 0`, nil)
	if b.eval(brokenWords, &found); !strings.Contains(found, "Configuration in") {
		t.Errorf("a word in a column of 30 px: %q", found)
	}
}

// picture keeps a picture of the whole page in a folder, and where the README shows it.
func (b *tab) picture(dir, name string, width int64, dark bool) {
	b.t.Helper()
	var height int64 // frames beyond the window are not painted
	b.eval("document.documentElement.scrollHeight", &height)
	var picture []byte
	b.do(emulation.SetDeviceMetricsOverride(width, max(height, 900), 1, false))
	b.eval(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))`, nil)
	b.do(chromedp.CaptureScreenshot(&picture))
	picture = fewColours(b.t, picture)
	ending := ".png"
	if dark {
		ending = "-dark.png"
	}
	must(b.t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d%s", name, width, ending)), picture, 0o644))
	if width == 1280 && os.Getenv("FINGERPOST_WRITE") != "" && slices.Contains(shown(b.t), name+ending) {
		must(b.t, os.WriteFile(filepath.Join(consoleFolder, "pictures", name+ending), picture, 0o644))
	}
}
