package browser_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lockgateway/lockgateway/integration/process"
)

var screenshots = flag.String("screenshots", "", "write screenshots of the page to this folder")

// With the flag, pictures of the page are made for people to look at.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("no folder is given")
	}
	g := serve(t)
	w := open(t, "http://"+g.Address()+"/")
	w.prefer("light")
	busy(t, g, w)
	w.do(chromedp.MouseClickXY(1, 1)) // so that nothing is pointed at
	for _, picture := range []struct {
		name, scheme, at string
		width, height    int64
	}{
		{"light", "light", "body", 1120, 860},
		{"dark", "dark", "body", 1120, 860},
		{"manual", "light", "#acquire", 1120, 860},
		{"manual-dark", "dark", "#questions", 1120, 860},
		{"tablet", "light", "body", 768, 1000},
		{"phone", "light", "body", 390, 1500},
		{"phone-dark", "dark", "body", 390, 844},
		{"phone-manual", "light", "#value", 390, 844},
	} {
		w.prefer(picture.scheme)
		w.size(picture.width, picture.height)
		evaluate[string](w, "document.activeElement.blur(); document.querySelector('"+picture.at+"').scrollIntoView(); ''")
		ctx, cancel := context.WithTimeout(w.ctx, process.Soon)
		png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*screenshots, picture.name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
