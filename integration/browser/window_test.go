// Package browser_test uses the gateway's page as people do, in a real browser.
package browser_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
)

func TestMain(m *testing.M) { gatewaytest.Main(m) }

// need returns the path of a program. It must be there in CI; elsewhere a test
// that needs it is left out.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// serve starts a gateway that has the page at its root.
func serve(t *testing.T) *gatewaytest.Gateway {
	t.Helper()
	need(t, "chromium")
	return gatewaytest.Start(t, "gateway", "page")
}

// window is a tab of a browser. Its methods are for the test's goroutine.
type window struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu       sync.Mutex
	expected []string // parts of messages that are no problem
	problems []string // what must not happen on the page
	urls     []string // that were requested
}

// open opens a page in a browser of its own.
func open(t *testing.T, url string, before ...chromedp.Action[chromedp.Void]) *window {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(need(t, "chromium")),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1280, 900),
		chromedp.WSURLReadTimeout(process.Soon),
	}
	if os.Geteuid() == 0 { // for whom Chromium has no sandbox
		options = append(options, chromedp.NoSandbox)
	}
	// The browser outlives the test's own context, so that it ends in order.
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], options...)...)
	t.Cleanup(cancel)
	ctx, _ := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		bounded, stop := context.WithTimeout(ctx, process.Soon)
		defer stop()
		if err := chromedp.Cancel(bounded); err != nil {
			t.Error("closing the browser:", err)
		}
	})
	return newWindow(ctx, t, url, before...)
}

// another opens a page in a further window of the same browser.
func (w *window) another(url string) *window {
	w.t.Helper()
	ctx, cancel := chromedp.NewContext(w.ctx)
	w.t.Cleanup(cancel)
	return newWindow(ctx, w.t, url)
}

func newWindow(ctx context.Context, t *testing.T, url string, before ...chromedp.Action[chromedp.Void]) *window {
	t.Helper()
	if err := chromedp.Do(ctx); err != nil { // starts it, without a time limit that would end it
		t.Fatal("starting the browser:", err)
	}
	scheme, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	w := &window{t: t, ctx: ctx, origin: scheme + "://" + host + "/"}
	if err := chromedp.Listen(ctx, w.note); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.report)
	w.do(before...)
	w.do(chromedp.Navigate(url))
	return w
}

// note keeps what must not happen: a message on the console, which is also where
// a violation of the Content-Security-Policy is told, an exception, or a
// request to somewhere else.
func (w *window) note(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	problem := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		problem = fmt.Sprintf("the console has a message of type %s", e.Type)
	case *runtime.EventExceptionThrown:
		problem = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			problem += " " + e.ExceptionDetails.Exception.Description
		}
	case *log.EventEntryAdded:
		problem = e.Entry.Text + " " + e.Entry.URL
	case *network.EventRequestWillBeSent:
		w.urls = append(w.urls, e.Request.URL)
		if !strings.HasPrefix(e.Request.URL, w.origin) {
			problem = "a request to " + e.Request.URL
		}
	}
	if problem != "" {
		w.problems = append(w.problems, problem)
	}
}

// expect says that the console will have such a message.
func (w *window) expect(message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected = append(w.expected, message)
}

// report fails the test for each problem that was not expected, and for each
// expected one that there was not.
func (w *window) report() {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[string]bool)
problems:
	for _, problem := range w.problems {
		for _, message := range w.expected {
			if strings.Contains(problem, message) {
				seen[message] = true
				continue problems
			}
		}
		w.t.Error(problem)
	}
	for _, message := range w.expected {
		if !seen[message] {
			w.t.Errorf("the console has no %q", message)
		}
	}
}

// requests counts the requests whose address has the part.
func (w *window) requests(part string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, url := range w.urls {
		if strings.Contains(url, part) {
			n++
		}
	}
	return n
}

func (w *window) do(actions ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, process.Soon)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		w.t.Fatal(err)
	}
}

// evaluate returns what a JavaScript expression is, a promise resolved.
func evaluate[T any](w *window, expression string) T {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, process.Soon)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		w.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// await waits until a JavaScript expression is true.
func (w *window) await(expression string) {
	w.t.Helper()
	deadline := time.After(process.Soon)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !evaluate[bool](w, expression) {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("not within %v: %s\nthe page reads: %s", process.Soon, expression, evaluate[string](w, "document.querySelector('.instrument').innerText"))
		}
	}
}

// awaitText waits until an element reads as given. Where spaces are is the
// layout's matter.
func (w *window) awaitText(selector, text string) {
	w.t.Helper()
	w.await(fmt.Sprintf("[...document.querySelectorAll(%q)].map((e) => e.innerText.trim().replace(/\\s+/g, ' ')).join(' | ') === %q", selector, text))
}

// awaitLog waits until the log's entry of a request has the text.
func (w *window) awaitLog(request int, text string) {
	w.t.Helper()
	w.await(fmt.Sprintf("document.querySelector('#log li[value=\"%d\"]')?.innerText.includes(%q) === true", request, text))
}

// press clicks on a button with the mouse.
func (w *window) press(action string) {
	w.t.Helper()
	w.do(chromedp.Click(chromedp.CSS("[data-action=" + action + "]")))
}

// fill puts a text into a field instead of what is there, all at once.
func (w *window) fill(field, text string) {
	w.t.Helper()
	command := fmt.Sprintf("'insertText', false, %q", text)
	if text == "" {
		command = "'delete'"
	}
	if !evaluate[bool](w, fmt.Sprintf("document.querySelector(%q).select(), document.execCommand(%s)", field, command)) {
		w.t.Fatalf("%s cannot be filled in", field)
	}
}

// lockID is the lock id that the page has.
func (w *window) lockID() string {
	w.t.Helper()
	return evaluate[string](w, "document.querySelector('#lock-id').value")
}

// size makes the window as large as a screen.
func (w *window) size(width, height int64) {
	w.t.Helper()
	w.do(chromedp.EmulateViewport(width, height))
}

// prefer has the page find a preference of its reader: dark or light.
func (w *window) prefer(scheme string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, process.Soon)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"},
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}
