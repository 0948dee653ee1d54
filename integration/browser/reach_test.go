package browser_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
)

// busy brings a page into a state that has something of everything on it: slots
// that are held and free, requests that wait here and elsewhere, one that is
// not sent, an error and a log.
func busy(t *testing.T, g *gatewaytest.Gateway, w *window) {
	t.Helper()
	w.expect("status of 400")
	w.fill("#max-value", "3")
	lock := "3/" + w.lockID()
	w.fill("#holder-name", "worker-7")
	w.fill("#ttl-ms", "600000")
	w.press("acquire")
	w.awaitLog(1, `"expiresInMs"`)
	w.fill("#holder-name", "")
	w.press("acquire")
	w.awaitLog(2, "400")
	w.fill("#ttl-ms", "")
	w.press("acquire")
	w.awaitLog(3, `"acquired":true`)
	w.press("acquire")
	w.awaitLog(4, `"acquired":true`)
	for n := range 4 {
		w.press("acquire")
		g.AwaitState(t, lock, 3, int64(n+1))
	}
	w.press("acquire")
	g.Queue(t, lock, "", 5)
	w.press("release")
	w.awaitLog(10, `"released":true`)
	w.awaitText("#queue .more", "and 1 from elsewhere")
	w.await("document.querySelectorAll('.unsent').length === 0 && document.querySelectorAll('.card').length === 4")
}

// fits fails the test if something is cut off at the side, or too small for a
// finger.
func fits(t *testing.T, w *window, finger int) {
	t.Helper()
	if wider := evaluate[int](w, "document.scrollingElement.scrollWidth - innerWidth"); wider > 0 {
		t.Errorf("the page is %d pixels wider than its window", wider)
	}
	const small = `[...document.querySelectorAll('button, input')].filter((e) => e.offsetParent && e.type !== 'radio')
		.filter((e) => e.getBoundingClientRect().height < %d).map((e) => e.id || e.innerText)`
	if buttons := evaluate[[]string](w, fmt.Sprintf(small, finger)); len(buttons) > 0 {
		t.Errorf("less than %d pixels high: %q", finger, buttons)
	}
}

func TestEveryoneCanUseIt(t *testing.T) {
	t.Parallel()
	g := serve(t)
	axe := axe(t)
	w := open(t, "http://"+g.Address()+"/")
	busy(t, g, w)
	evaluate[string](w, axe+"; ''")
	for _, scheme := range []string{"light", "dark"} {
		w.prefer(scheme)
		for _, width := range []int64{1280, 360} {
			w.size(width, 800)
			check := fmt.Sprintf("%s, %d pixels wide", scheme, width)
			if dark := evaluate[bool](w, "getComputedStyle(document.body).backgroundColor !== 'rgb(252, 251, 248)'"); dark != (scheme == "dark") {
				t.Errorf("%s: dark is %t", check, dark)
			}
			for _, violation := range violations(w) {
				t.Errorf("%s: %s", check, violation)
			}
			if width < 500 {
				fits(t, w, 40)
			} else {
				fits(t, w, 24)
			}
		}
	}
}

// violations are what axe finds wrong.
func violations(w *window) []string {
	w.t.Helper()
	const run = `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
		.then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.target + ': ' + n.failureSummary)))`
	return evaluate[[]string](w, run)
}

// The checker is fetched as npm does, once, into the folder for what is built.
const (
	axeVersion = "4.14.1"
	axeFolder  = "../../bin"
)

// axe returns the source of the accessibility checker.
func axe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(axeFolder, "axe-core-"+axeVersion+".tgz")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		npm := need(t, "npm")
		if err := os.MkdirAll(axeFolder, 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(npm, "pack", "--silent", "--pack-destination", axeFolder, "axe-core@"+axeVersion).CombinedOutput()
		if err != nil {
			t.Fatalf("fetching axe-core: %v\n%s", err, out)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err != nil {
			t.Fatalf("%s has no axe.min.js: %v", path, err)
		}
		if header.Name == "package/axe.min.js" {
			source, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			return string(source)
		}
	}
}

// All that a mouse can do, the keyboard can, in the order in which it is read.
func TestKeyboardAlone(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	lock := "1/" + w.lockID()
	key := func(keys string, options ...chromedp.KeyOption) {
		t.Helper()
		w.do(chromedp.KeyEvent(keys, options...))
	}
	onto := func(what string) {
		t.Helper()
		key(kb.Tab)
		const focused = "(document.activeElement.id || document.activeElement.textContent || document.activeElement.value).split('\\n')[0].trim()"
		if got := evaluate[string](w, focused); got != what {
			t.Fatalf("Tab leads to %q; want %q", got, what)
		}
		if line := evaluate[string](w, "getComputedStyle(document.activeElement.matches('[type=radio]') ? document.activeElement.nextSibling : document.activeElement).outlineStyle"); line == "none" {
			t.Errorf("one cannot see that %s has the focus", what)
		}
	}
	for _, stop := range []string{"Skip to the manual", "the manual", "lock-id", "new-id", "copy-id", "max-value", "wait-ms", "holder-name", "ttl-ms", "Acquire"} {
		onto(stop)
	}
	key(kb.Enter)
	w.awaitLog(1, `"acquired":true`)
	key(" ")
	g.AwaitState(t, lock, 1, 1)
	w.awaitText("#queue li b", "#2")
	for _, stop := range []string{"Release", "Value", "Reset", "Cancel request 2"} {
		onto(stop)
	}
	key(kb.Enter)
	w.awaitLog(2, "cancelled")
	g.AwaitState(t, lock, 1, 0)
	onto("Release") // the focus went back to Acquire
	key(kb.Enter)
	w.awaitLog(3, `"released":true`)
	for _, stop := range []string{"Value", "Reset", "curl"} {
		onto(stop)
	}
	key(kb.ArrowRight)
	w.await("document.querySelector('#code').innerText.includes('urllib')")
	onto("copy-code")
	key(kb.Enter)
	w.await("/^(Copied|It is selected)/.test(document.querySelector('#outcome').innerText)")
	for evaluate[string](w, "document.activeElement.textContent") != "acquire" {
		key(kb.Tab)
	}
	key(kb.Enter)
	w.await("location.hash === '#acquire'")
}

// Without JavaScript one can read the manual, and is told what is missing.
func TestReadableWithoutJavaScript(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/", func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return chromedp.Void{}, err
	})
	text := evaluate[string](w, "document.body.innerText")
	for _, want := range []string{"Trying needs JavaScript", "Distributed locks", "The API", "fencing token", "Do and don't", "504", "Is it fair?"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if enabled := evaluate[int](w, "document.querySelectorAll('form :enabled').length"); enabled > 0 {
		t.Errorf("%d controls that do nothing can be used", enabled)
	}
	if n := w.requests(".js"); n > 0 {
		t.Errorf("%d scripts were loaded", n)
	}
}

// Every link of the page to itself leads somewhere, and what it takes to show it
// is small.
func TestLinksAndWeight(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	const dead = "[...document.querySelectorAll('a[href^=\"#\"]')].map((a) => a.hash.slice(1)).filter((id) => !document.getElementById(id))"
	if ids := evaluate[[]string](w, dead); len(ids) > 0 {
		t.Errorf("these links lead nowhere: %q", ids)
	}
	const twice = "[...document.querySelectorAll('[id]')].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)"
	if ids := evaluate[[]string](w, twice); len(ids) > 0 {
		t.Errorf("these ids are there twice: %q", ids)
	}
	if n := evaluate[int](w, "document.querySelectorAll('h2[id], h3[id], h4[id], .question[id]').length"); n < 30 {
		t.Errorf("the manual has %d sections to link to", n)
	}
	w.awaitText("#summary", "Never acquired, or forgotten: value is {}")
	var weight struct{ Bytes, Files int }
	const sum = `JSON.stringify(performance.getEntries().filter((e) => e.decodedBodySize && !e.name.includes('/v1/'))
		.reduce((s, e) => ({ Bytes: s.Bytes + e.decodedBodySize, Files: s.Files + 1 }), { Bytes: 0, Files: 0 }))`
	if err := json.Unmarshal([]byte(evaluate[string](w, sum)), &weight); err != nil {
		t.Fatal(err)
	}
	if weight.Bytes > 100_000 || weight.Files < 8 {
		t.Errorf("the page has %d bytes in %d files", weight.Bytes, weight.Files)
	}
}
