package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"fingerpost/cmd/testrig"
)

// axeSource is axe-core 4.10.2 (MPL 2.0), as npm has it.
//
//go:embed testdata/axe.js
var axeSource string

// findBrowser returns the path of Chromium. Where there is none the test is skipped, and fails in CI.
func findBrowser(t *testing.T) (program string) {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path := testrig.Find(name); path != "" {
			return path
		}
	}
	testrig.Missing(t, "chromium", "chromium, to look at pages as people do")
	return ""
}

// A tab is a browser of its own, with cookies of its own.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string // of the console
	said []string
}

func newTab(t *testing.T, program, base string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-quic", true), chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // it must be gone before its folder is
	b := &tab{t: t, ctx: ctx, base: base}
	chromedp.ListenTarget(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *page.EventJavascriptDialogOpening:
			b.said = append(b.said, "dialog: "+ev.Message)
			go func() { _ = chromedp.Run(ctx, page.HandleJavaScriptDialog(false)) }()
		case *runtime.EventExceptionThrown:
			b.said = append(b.said, ev.ExceptionDetails.Error())
		}
	})
	b.do(network.Enable(), runtime.Enable())
	return b
}

// do runs steps of the browser, which wait for what they need.
func (b *tab) do(steps ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testrig.Patience)
	defer cancel()
	if err := chromedp.Run(ctx, steps...); err != nil {
		var at, text string
		ctx, cancel := context.WithTimeout(b.ctx, time.Second) // the page may be what is wrong
		defer cancel()
		_ = chromedp.Run(ctx, chromedp.Location(&at), chromedp.Text("body", &text, chromedp.ByQuery))
		b.t.Fatalf("%v\non %s:\n%s", err, at, cutMiddle(text, 3000))
	}
}

// open goes to a page of the console.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base+path), chromedp.WaitReady("main", chromedp.ByQuery))
}

// fill writes into fields, by their names. A script of the page may replace a field until it has the focus.
func (b *tab) fill(fields ...string) {
	b.t.Helper()
	for i := 0; i < len(fields); i += 2 {
		q := fmt.Sprintf("main [name=%q]:not([type=hidden])", fields[i])
		b.do(chromedp.WaitVisible(q, chromedp.ByQuery),
			chromedp.Evaluate(fmt.Sprintf("{ const f = document.querySelector(%q); f.focus(); f.value = ''; 0 }", q), nil))
		if fields[i+1] != "" {
			b.do(chromedp.KeyEvent(fields[i+1]))
		}
	}
}

// choose picks from a list.
func (b *tab) choose(name, value string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf("document.querySelector('main [name=%s]').value = %q; 0", name, value), nil))
}

// press presses the first button or link with the text in main, and waits for the page that comes.
func (b *tab) press(text string) {
	b.t.Helper()
	q := fmt.Sprintf("//main//*[self::button or self::a or self::summary][normalize-space(.)=%q]", text)
	ctx, cancel := context.WithTimeout(b.ctx, testrig.Patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(q, chromedp.BySearch)); err != nil {
		b.do(chromedp.ActionFunc(func(context.Context) error { return fmt.Errorf("press %q: %w", text, err) }))
	}
	b.do(chromedp.WaitReady("main", chromedp.ByQuery))
}

// text returns what people read in an element.
func (b *tab) text(q string) (s string) {
	b.t.Helper()
	b.do(chromedp.Text(q, &s, chromedp.ByQuery))
	return s
}

// sees waits until the text stands in main.
func (b *tab) sees(texts ...string) {
	b.t.Helper()
	for _, want := range texts {
		var all string
		if err := poll(testrig.Patience, func() error {
			if err := chromedp.Run(b.ctx, chromedp.Text("main", &all, chromedp.ByQuery)); err != nil {
				return err
			}
			if !strings.Contains(strings.Join(strings.Fields(all), " "), strings.Join(strings.Fields(want), " ")) {
				return fmt.Errorf("%q is not on the page", want)
			}
			return nil
		}); err != nil {
			b.t.Fatalf("%v:\n%s", err, all)
		}
	}
}

// at returns the path of the page.
func (b *tab) at() (path string) {
	b.t.Helper()
	b.do(chromedp.Location(&path))
	return strings.TrimPrefix(path, b.base)
}

// eval evaluates an expression in the page.
func (b *tab) eval(expression string, into any) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, into, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
}

// signIn signs in with a key.
func (b *tab) signIn(key string) {
	b.t.Helper()
	b.open("/console/sign-in")
	b.fill("key", key, "name", "Ada Lovelace", "email", "ada@example.com")
	b.do(chromedp.Click(`//button[normalize-space(.)="Sign in"]`, chromedp.BySearch), chromedp.WaitReady("nav.main", chromedp.ByQuery))
}

// size sets the window, and whether it is dark.
func (b *tab) size(width int64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do(emulation.SetDeviceMetricsOverride(width, 900, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// axe returns what axe-core finds wrong with the page by WCAG 2.2 A and AA.
func (b *tab) axe() (findings []string) {
	b.t.Helper()
	var raw string
	b.do(chromedp.Evaluate(axeSource+"; 0", nil))
	b.eval(`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], iframes: false}).then(r => JSON.stringify(
		r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 200) + " " + n.failureSummary).join(" | "))))`, &raw)
	if err := json.Unmarshal([]byte(raw), &findings); err != nil {
		b.t.Fatal(err)
	}
	return findings
}

// fewColours packs a picture: it keeps up to 64 colours of those that it has most of, without rare ones that are nearly the
// same as one of them, and takes the nearest for the rest.
func fewColours(t testing.TB, picture []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	r := from.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	used := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return counts[b] - counts[a] })
	var most color.Palette
	for _, c := range used {
		if len(most) < 64 && (counts[c] >= 300 || !slices.ContainsFunc(most, func(m color.Color) bool { return alike(m, c) })) {
			most = append(most, c)
		}
	}
	nearest := map[color.RGBA]uint8{}
	for _, c := range used {
		nearest[c] = uint8(most.Index(c))
	}
	to := image.NewPaletted(r, most)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			to.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// alike reports whether nobody tells two colours apart at the edges of letters.
func alike(a color.Color, b color.RGBA) bool {
	x := a.(color.RGBA)
	square := func(a, b uint8) int { return (int(a) - int(b)) * (int(a) - int(b)) }
	return square(x.R, b.R)+square(x.G, b.G)+square(x.B, b.B) < 200
}
