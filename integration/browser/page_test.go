package browser_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lockgateway/lockgateway/integration/gatewaytest"
	"github.com/lockgateway/lockgateway/integration/process"
)

func TestAcquireWaitReleaseReset(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	w.awaitText("#summary", "Never acquired, or forgotten: value is {}")
	lock := "1/" + w.lockID()

	w.press("acquire")
	w.awaitLog(1, `200 {"acquired":true,"value":1}`)
	w.awaitText("#summary", "1 of 1 held, nobody waiting")
	w.awaitText("#slots li", "#1")
	g.ExpectState(t, lock, 1, 0)

	w.press("acquire")
	g.AwaitState(t, lock, 1, 1)
	w.awaitText("#summary", "1 of 1 held, 1 waiting")
	w.awaitText("#queue li b", "#2")
	w.awaitLog(2, "no answer yet")

	w.press("release")
	w.awaitLog(3, `200 {"released":true}`)
	w.awaitLog(2, `200 {"acquired":true,"value":1}`)
	w.awaitText("#slots li", "#2")
	w.awaitText("#queue li", "")
	g.ExpectState(t, lock, 1, 0)

	w.press("value")
	w.awaitLog(4, `200 {"value":1,"waiting":0}`)

	w.press("acquire")
	g.AwaitState(t, lock, 1, 1)
	w.press("reset")
	w.awaitLog(6, `200 {"reset":true}`)
	w.awaitLog(5, `200 {"acquired":false}`)
	w.awaitText("#slots li", "free")
	w.awaitText("#summary", "Never acquired, or forgotten: value is {}")
}

func TestQueueMovesInOrder(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	w.fill("#max-value", "2")
	lock := "2/" + w.lockID()
	for n := range 5 {
		w.press("acquire")
		g.AwaitState(t, lock, int64(min(n+1, 2)), int64(max(n-1, 0)))
	}
	w.awaitText("#queue li b", "#3 | #4 | #5")
	w.awaitText("#slots li", "#1 | #2")
	w.press("release")
	w.awaitText("#queue li b", "#4 | #5")
	w.awaitText("#slots li", "#2 | #3")
	w.press("release")
	w.awaitText("#queue li b", "#5")
	w.awaitText("#slots li", "#3 | #4")

	// Whoever waits elsewhere is seen too.
	elsewhere := g.Queue(t, lock, "", 2)
	w.awaitText("#queue .more", "and 1 from elsewhere")
	w.press("release")
	w.press("release")
	elsewhere.ExpectGrant(t)
	w.awaitText("#slots li", "#5 | held")
}

func TestTimeOut(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	g.Take(t, "1/"+w.lockID(), "")
	w.fill("#wait-ms", "50")
	w.press("acquire")
	w.awaitLog(1, `200 {"acquired":false}`)
	w.awaitText("#queue li", "")
	w.fill("#wait-ms", "0")
	w.press("acquire")
	w.awaitLog(2, `200 {"acquired":false}`)
}

func TestCancelTakesTheRequestOutOfTheQueue(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	lock := "1/" + w.lockID()
	g.Take(t, lock, "")
	for n := range 2 {
		w.press("acquire")
		g.AwaitState(t, lock, 1, int64(n+1))
	}
	w.awaitText("#queue li b", "#1 | #2")
	evaluate[string](w, "document.querySelector('#queue button').focus(); ''")
	evaluate[string](w, "document.querySelector('#queue button').click(); ''")
	w.awaitLog(1, "cancelled")
	g.AwaitState(t, lock, 1, 1)
	w.awaitText("#queue li b", "#2")
	if focused := evaluate[string](w, "document.activeElement.textContent"); focused != "Cancel request 2" {
		t.Errorf("after a cancellation the focus is on %q", focused)
	}
	evaluate[string](w, "document.activeElement.click(); ''")
	g.AwaitState(t, lock, 1, 0)
	w.awaitLog(2, "cancelled")
	if focused := evaluate[string](w, "document.activeElement.textContent"); focused != "Acquire" {
		t.Errorf("after the last cancellation the focus is on %q", focused)
	}
	g.ExpectRelease(t, lock, "", true)
	g.ExpectState(t, lock, 0, 0)
}

func TestHoldersAreNamedAndExpire(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	w.fill("#max-value", "3")
	w.fill("#holder-name", "ann & co")
	w.fill("#ttl-ms", "600000")
	w.press("acquire")
	w.awaitLog(1, `"expiresInMs":600000`)
	w.await("/^ann & co, (600|59\\d) s left$/.test(document.querySelector('#slots .held')?.innerText)")
	w.press("acquire") // renews
	w.awaitLog(2, `"value":1`)
	g.ExpectState(t, "3/"+w.lockID(), 1, 0)
	w.press("release")
	w.awaitLog(3, `{"released":true}`)
	w.awaitText("#slots li", "free | free | free")

	w.fill("#ttl-ms", "50")
	w.press("acquire")
	w.awaitLog(4, `"acquired":true`)
	w.awaitText("#summary", "0 of 3 held, nobody waiting")
}

func TestLargeSemaphoresAreCounted(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	w.fill("#max-value", "0100000000000000000000000")
	for n := range 3 {
		w.press("acquire")
		w.awaitLog(n+1, fmt.Sprintf(`"value":%d`, n+1))
	}
	w.awaitText("#summary", "3 of 100000000000000000000000 held, nobody waiting")
	w.awaitText("#slots .held", "#1 | #2 | #3")
	w.awaitText("#slots .more", "and 99999999999999999999984 more free")
}

func TestErrorsAreShown(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	w.expect("status of 400")
	w.expect("status of 404")
	w.expect("ERR_CONNECTION_REFUSED")

	w.fill("#max-value", "1.5")
	w.awaitText("#summary", `maxValue "1.5" is not a positive integer in decimal digits`)
	w.press("acquire")
	w.awaitLog(1, "400")
	w.awaitText("#notice", `maxValue "1.5" is not a positive integer in decimal digits`)
	w.fill("#max-value", "1")
	w.fill("#ttl-ms", "1000")
	w.press("acquire")
	w.awaitText("#notice", "parameter ttlMs needs a holder, whose slot it ends")
	w.fill("#ttl-ms", "")
	w.press("acquire")
	w.awaitLog(3, "200")
	w.awaitText("#notice", "")

	w.fill("#lock-id", "..")
	w.press("acquire")
	w.awaitText("#notice", "A browser takes . and .. out of every address. Other clients can use such an id.")
	w.fill("#lock-id", "")
	w.press("acquire")
	w.awaitText("#notice", "the path must be /v1/{maxValue}/{lockId}/{action}, with no part of it empty")

	w.fill("#lock-id", "a")
	w.awaitText("#summary", "Never acquired, or forgotten: value is {}")
	g.Kill(t)
	w.awaitText("#summary", "The server cannot be reached.")
	w.press("release")
	w.awaitLog(5, "no answer")
	w.awaitText("#notice", "There was no answer. Whether the request was carried out is unknown.")
}

// Two windows have six connections together. All that waits in both of them
// must leave some for the release that ends the waiting.
func TestTwoWindowsSeeEachOther(t *testing.T) {
	t.Parallel()
	g := serve(t)
	a := open(t, "http://"+g.Address()+"/")
	b := a.another("http://" + g.Address() + "/")
	b.fill("#lock-id", a.lockID())
	lock := "1/" + a.lockID()

	a.press("acquire")
	a.awaitLog(1, `"acquired":true`)
	b.awaitText("#summary", "1 of 1 held, nobody waiting")
	b.awaitText("#slots li", "held")
	for n := range 3 {
		a.press("acquire")
		g.AwaitState(t, lock, 1, int64(n+1))
	}
	b.awaitText("#queue li", "3 from elsewhere")
	b.press("acquire")
	g.AwaitState(t, lock, 1, 4)
	b.awaitText("#queue li.more", "and 3 from elsewhere")
	for range 2 {
		a.press("acquire")
		b.press("acquire")
	}
	a.await("document.querySelectorAll('.unsent').length === 2 && !document.querySelector('#unsent').hidden")
	b.await("document.querySelectorAll('.unsent').length === 2 && !document.querySelector('#unsent').hidden")
	g.ExpectState(t, lock, 1, 4)

	// One that is not sent can be cancelled as well.
	evaluate[string](b, "[...document.querySelectorAll('.unsent button')].at(-1).click(); ''")
	b.awaitLog(3, "cancelled")

	granted := func() int {
		const count = "[...document.querySelectorAll('#log li')].filter((e) => e.innerText.includes('\"acquired\":true')).length"
		return evaluate[int](a, count) + evaluate[int](b, count)
	}
	for n := range 7 {
		b.press("release")
		process.Await(t, "the next one is granted", func() bool { return granted() == n+2 })
	}
	for n := 2; n <= 6; n++ {
		a.awaitLog(n, `"acquired":true`)
	}
	a.awaitText("#summary", "1 of 1 held, nobody waiting")
}

// A window that nobody sees asks for nothing.
func TestHiddenWindowIsQuiet(t *testing.T) {
	t.Parallel()
	g := serve(t)
	hidden := open(t, "http://"+g.Address()+"/")
	visible := hidden.another("http://" + g.Address() + "/")
	const asks = "/value?detail=1"
	set := func(isHidden bool) {
		evaluate[string](hidden, fmt.Sprintf("Object.defineProperty(document, 'hidden', { value: %t, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); ''", isHidden))
	}
	asksFor := func(w *window, n int) {
		until := w.requests(asks) + n
		process.Await(t, "the window asks for the value", func() bool { return w.requests(asks) >= until })
	}
	asksFor(hidden, 2)
	set(true)
	asksFor(visible, 1) // so that an answer that was under way is there
	before := hidden.requests(asks)
	asksFor(visible, 3)
	if after := hidden.requests(asks); after != before {
		t.Errorf("a hidden window sent %d requests", after-before)
	}
	set(false)
	asksFor(hidden, 2)
}

// A lock id is a secret, and a link with one could be followed by a program.
func TestLockIDStaysOnThePage(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	first := w.lockID()
	w.await("/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(document.querySelector('#lock-id').value)")
	w.do(chromedp.Click(chromedp.CSS("#new-id")))
	id := w.lockID()
	if id == first {
		t.Errorf("a new id is the old one, %s", id)
	}
	w.do(chromedp.SendKeys(chromedp.CSS("#lock-id"), "x\r")) // Enter is Acquire
	w.awaitLog(1, `"acquired":true`)
	if at := evaluate[string](w, "location.href"); at != "http://"+g.Address()+"/" {
		t.Errorf("the page's address became %s", at)
	}
	if n := evaluate[int](w, "localStorage.length + sessionStorage.length + document.cookie.length"); n != 0 {
		t.Error("the page stored something")
	}
	const bad = "[...document.querySelectorAll('[href], [src], [action]')].filter((e) => /\\/v1\\//.test(e.outerHTML.split('>')[0])).length"
	if n := evaluate[int](w, bad); n != 0 {
		t.Errorf("%d links lead to locks", n)
	}
	// Nor is anything of the API kept by the browser.
	w.expect("ERR_CACHE_MISS")
	if n := evaluate[int](w, "fetch('v1/1/x/value', { cache: 'only-if-cached', mode: 'same-origin' }).then((r) => r.status, () => 0)"); n != 0 {
		t.Errorf("the browser has a value in its cache: %d", n)
	}
	w.do(chromedp.Reload())
	w.await("document.querySelector('#lock-id').value.length === 36")
	if again := w.lockID(); again == id || again == id+"x" {
		t.Errorf("after a reload the page still knows the id")
	}
}

// What is copied does what the page does, whatever the id.
func TestCodeRunsAsItIsCopied(t *testing.T) {
	t.Parallel()
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	w.fill("#lock-id", "it's \"$HOME\" `id` \\ %41 {a} [b] é!")
	w.press("acquire")
	w.awaitLog(1, `"value":1`)
	w.press("value")
	w.awaitLog(2, `{"value":1,"waiting":0}`)
	for language, run := range map[string]func(code string) *exec.Cmd{
		"curl":       func(code string) *exec.Cmd { return exec.Command(need(t, "bash"), "-c", code) },
		"python":     func(code string) *exec.Cmd { return exec.Command(need(t, "python3"), "-c", code) },
		"javascript": func(code string) *exec.Cmd { return exec.Command(need(t, "node"), "--input-type=module", "-e", code) },
		"go": func(code string) *exec.Cmd {
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			return exec.Command("go", "run", file)
		},
	} {
		evaluate[string](w, fmt.Sprintf("document.querySelector('[value=%s]').click(); ''", language))
		out, err := run(evaluate[string](w, "document.querySelector('#code').textContent")).CombinedOutput()
		printed := strings.NewReplacer("'", "", `"`, "", " ", "").Replace(string(out))
		if err != nil || !strings.Contains(printed, "value:1") {
			t.Errorf("%s: %v\n%s", language, err, out)
		}
	}

	// On plain HTTP a browser lets pages have no clipboard.
	evaluate[string](w, "Object.defineProperty(navigator, 'clipboard', { value: undefined }); ''")
	w.do(chromedp.Click(chromedp.CSS("#copy-code")))
	w.await("getSelection().toString().trim() === document.querySelector('#code').textContent")
	w.await("document.querySelector('#outcome').textContent === 'Copied'")
}

// Wherever the page is, it finds its assets and the API.
func TestPageUnderOtherPaths(t *testing.T) {
	t.Parallel()
	need(t, "chromium")
	// The last handler's block ends where that of the gateway's own would.
	g := gatewaytest.Start(t, "gateway", `page /help/me
	}
	handle_path /locks/* {
		lock_gateway {
			page
		}
	}
	handle_path /more/locks/* {
		lock_gateway {
			page /try
		}`)
	var w *window
	for i, path := range []string{"/help/me", "/help/me/", "/locks/", "/more/locks/try", "/more/locks/try/#release"} {
		if url := "http://" + g.Address() + path; w == nil {
			w = open(t, url)
		} else {
			w = w.another(url)
		}
		w.fill("#lock-id", "shared")
		w.fill("#max-value", "9")
		// Not with the mouse: the page may be gliding to a section.
		evaluate[string](w, "document.querySelector('[data-action=acquire]').click(); ''")
		w.awaitLog(1, fmt.Sprintf(`"value":%d`, i+1))
		if style := evaluate[string](w, "getComputedStyle(document.querySelector('.fields')).display"); style != "grid" {
			t.Errorf("%s has no style", path)
		}
	}
}
