// Package page has the web page on which one tries locks and reads how they
// work. All of it is embedded: it needs nothing from elsewhere, and its
// Content-Security-Policy forbids it to ask.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/lockgateway/lockgateway/internal/lockhttp"
)

//go:generate go -C ../../tools run ./manual -output ../internal/page

//go:embed page.html manual.html contents.html
var texts embed.FS

//go:embed assets
var assets embed.FS

// assetFolder is where the assets are, relative to the page. It is named such
// that it is in nobody's way on a site that has other things beside the page.
const assetFolder = "lock_gateway/"

// policy lets the page load its own assets, send requests to its own site, and
// nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// contentTypes are the types of all that there is, whatever the system thinks.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Page is the page at a path.
type Page struct {
	folder string          // ends with a slash
	files  map[string]file // by path
}

type file struct {
	content, contentType, etag string
}

// pathForm are the paths that look the same in a request line, decoded, and
// resolved.
var pathForm = regexp.MustCompile(`^/([A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*$`)

// At returns the page for a path, with or without a slash at its end.
func At(folder string) (*Page, error) {
	if !strings.HasSuffix(folder, "/") {
		folder += "/"
	}
	if !pathForm.MatchString(folder) {
		return nil, fmt.Errorf("%q is not a path such as / or /help, of letters, digits and -._~ only", folder)
	}
	if strings.HasPrefix(folder, lockhttp.Prefix) {
		return nil, fmt.Errorf("%q is under %s, where the locks are", folder, lockhttp.Prefix)
	}
	p := &Page{folder: folder, files: make(map[string]file)}
	p.files[folder] = newFile(".html", strings.NewReplacer(
		"{{assets}}", assetFolder,
		"{{api}}", "./"+strings.Repeat("../", strings.Count(folder, "/")-1),
		"{{contents}}", mustRead(texts, "contents.html"),
		"{{manual}}", mustRead(texts, "manual.html"),
	).Replace(mustRead(texts, "page.html")))
	entries, err := assets.ReadDir("assets")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		p.files[folder+assetFolder+e.Name()] = newFile(path.Ext(e.Name()), mustRead(assets, "assets/"+e.Name()))
	}
	return p, nil
}

func newFile(extension, content string) file {
	sum := sha256.Sum256([]byte(content))
	return file{
		content:     content,
		contentType: contentTypes[extension],
		etag:        `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
	}
}

// mustRead reads what the compiler has put there.
func mustRead(fs embed.FS, name string) string {
	text, err := fs.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Has reports whether a path is the page's, or one of its assets'.
func (p *Page) Has(path string) bool {
	_, ok := p.files[path]
	return ok || path+"/" == p.folder
}

// Serve answers a request for a path that the page has. The address is the path
// that the client asked for, before anything was stripped from it.
func (p *Page) Serve(w http.ResponseWriter, r *http.Request, address string) {
	// Without the slash at its end, all the page's addresses would be wrong.
	if f, ok := p.files[r.URL.Path]; ok && (r.URL.Path != p.folder || strings.HasSuffix(address, "/")) {
		f.serve(w, r)
		return
	}
	w.Header().Set("Location", "./"+url.PathEscape(path.Base(address))+"/")
	w.WriteHeader(http.StatusPermanentRedirect)
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	// It may be kept, and is asked for again each time: after an upgrade its
	// parts must be of one version.
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.etag)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(f.content))
}
