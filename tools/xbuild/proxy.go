package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// writeProxy writes a module proxy (https://go.dev/ref/mod#goproxy-protocol)
// into a folder, with one version of the module in a git checkout: what is
// committed there.
func writeProxy(folder, checkout string, version module.Version) (err error) {
	escaped, err := module.EscapePath(version.Path)
	if err != nil {
		return err
	}
	versions := filepath.Join(folder, escaped, "@v")
	if err := os.MkdirAll(versions, 0o700); err != nil {
		return err
	}
	goMod, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]string{"Version": version.Version})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"list":                    []byte(version.Version + "\n"),
		version.Version + ".info": info,
		version.Version + ".mod":  goMod,
	} {
		if err := os.WriteFile(filepath.Join(versions, name), content, 0o600); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(versions, version.Version+".zip"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	return zip.CreateFromVCS(archive, version, checkout, "HEAD", "")
}

// serveProxy serves a folder's proxy for one module, and all other modules from
// the proxy that Go uses anyway. It returns the environment in which Go uses it,
// and stop, which ends it.
//
// A folder alone will not do. For a package of an unpublished module Go also asks
// for modules at the paths below, and only a clear "not found" lets it go on.
func serveProxy(ctx context.Context, folder, modulePath string) (env []string, stop func(), err error) {
	escaped, err := module.EscapePath(modulePath)
	if err != nil {
		return nil, nil, err
	}
	upstream, err := upstreamProxy(ctx)
	if err != nil {
		return nil, nil, err
	}
	files := http.FileServer(http.Dir(folder))
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/"+escaped+"/") {
				files.ServeHTTP(w, r)
			} else {
				http.Redirect(w, r, upstream+r.URL.EscapedPath(), http.StatusFound)
			}
		}),
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() { // ends at stop
		defer close(done)
		_ = server.Serve(listener) // says only that it was closed
	}()
	stop = func() {
		_ = server.Close() // nothing is under way any more
		<-done
	}
	return []string{
		"GOPROXY=http://" + listener.Addr().String(),
		"GONOSUMDB=" + modulePath,
		"GOPRIVATE=", "GONOPROXY=",
	}, stop, nil
}

// upstreamProxy returns the first proxy in GOPROXY.
func upstreamProxy(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOPROXY").Output()
	if err != nil {
		return "", err
	}
	list := strings.TrimSpace(string(out))
	for _, url := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '|' }) {
		if strings.HasPrefix(url, "http") {
			return strings.TrimSuffix(url, "/"), nil
		}
	}
	return "", fmt.Errorf("GOPROXY is %q; building needs a module proxy in it", list)
}
