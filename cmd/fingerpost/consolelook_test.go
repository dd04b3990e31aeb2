package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

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
