package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
)

const (
	root       = "../.."
	modulePath = "github.com/lockgateway/lockgateway"
)

// handler and backends are what a full build must have.
var (
	handler  = "http.handlers.lock_gateway"
	backends = []string{"http.lock_gateway.backends.memory", "http.lock_gateway.backends.etcd", "http.lock_gateway.backends.nats", "http.lock_gateway.backends.nats.embedded"}
)

// The manifest is the list of what a full build contains; the root package must
// not have another.
func TestRootPackageImportsWhatTheManifestLists(t *testing.T) {
	builder, err := read(root + "/xcaddy.json")
	if err != nil {
		t.Fatal(err)
	}
	var listed, imported []string
	for _, p := range builder.Plugins {
		listed = append(listed, p.PackagePath)
	}
	file, err := parser.ParseFile(token.NewFileSet(), root+"/lockgateway.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		imported = append(imported, strings.Trim(spec.Path.Value, `"`))
	}
	slices.Sort(listed)
	slices.Sort(imported)
	if !slices.Equal(listed, imported) {
		t.Errorf("xcaddy.json lists %v, the root package imports %v", listed, imported)
	}
	goMod, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/caddyserver/caddy/v2 " + builder.CaddyVersion; !strings.Contains(string(goMod), want) {
		t.Errorf("go.mod does not require %s", want)
	}
}

func TestBadManifestIsRefused(t *testing.T) {
	for _, text := range []string{`{"dependencies":[]}`, `{`, `{"plugins":1}`} {
		path := filepath.Join(t.TempDir(), "xcaddy.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s gave the error %v; want one that names the file", text, err)
		}
	}
}

// From a checkout, as README.md says.
func TestBuildFromCheckout(t *testing.T) {
	output := filepath.Join(t.TempDir(), "caddy")
	cmd := exec.Command("go", "run", ".", "-manifest", root+"/xcaddy.json", "-output", output)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	expectModules(t, output, append([]string{handler}, backends...)...)
	expectLocks(t, output)
}

// As if published: every xcaddy command of README.md, as it is written.
func TestBuildAsPublished(t *testing.T) {
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	env := publish(t)
	commands := 0
	for line := range strings.Lines(string(readme)) {
		if command := strings.TrimSpace(line); strings.HasPrefix(command, "xcaddy build") {
			commands++
			t.Run(command, func(t *testing.T) {
				dir := t.TempDir()
				run(t, dir, env, command)
				expectModules(t, filepath.Join(dir, "caddy"), handler, backends[0])
				expectLocks(t, filepath.Join(dir, "caddy"))
			})
		}
	}
	if commands < 2 {
		t.Errorf("README.md has %d xcaddy commands; want a full and a slim build", commands)
	}
}

// A plugin of others builds beside it, and nobody's versions are in the way.
func TestBuildBesideAnotherPlugin(t *testing.T) {
	const other = "github.com/mholt/caddy-l4"
	dir := t.TempDir()
	run(t, dir, publish(t), "xcaddy build v2.11.9 --with "+modulePath+" --with "+other+"@v0.1.2")
	expectModules(t, filepath.Join(dir, "caddy"), handler, backends[0], "layer4")
	expectLocks(t, filepath.Join(dir, "caddy"))
}

// publish makes a proxy that has the checkout as a published version, and
// returns the environment that finds it there, and xcaddy in the PATH.
func publish(t *testing.T) []string {
	t.Helper()
	proxy := t.TempDir()
	// A version that is new each time: Go keeps those it has seen.
	version := fmt.Sprintf("v0.1.%d", time.Now().Unix())
	if err := writeProxy(proxy, root, module.Version{Path: modulePath, Version: version}); err != nil {
		t.Fatal(err)
	}
	env, stop, err := serveProxy(t.Context(), proxy, modulePath)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/caddyserver/xcaddy/cmd/xcaddy").CombinedOutput(); err != nil {
		t.Fatalf("building xcaddy: %v\n%s", err, out)
	}
	return append(env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func run(t *testing.T, dir string, env []string, command string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

func expectModules(t *testing.T, caddy string, modules ...string) {
	t.Helper()
	out, err := exec.Command(caddy, "list-modules").Output()
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Fields(string(out))
	for _, m := range modules {
		if !slices.Contains(have, m) {
			t.Errorf("list-modules does not have %s", m)
		}
	}
}

// expectLocks starts the binary and takes a lock.
func expectLocks(t *testing.T, caddy string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	l.Close()
	dir := t.TempDir()
	config := fmt.Sprintf("{\n\tadmin off\n}\nhttp://:%d {\n\tbind 127.0.0.1\n\tlock_gateway\n}\n", addr.Port)
	if err := os.WriteFile(filepath.Join(dir, "Caddyfile"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, caddy, "run")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it is killed
	}()
	var answer struct{ Acquired bool }
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		res, err := http.Get("http://" + addr.String() + "/v1/1/a/acquire?holder=a")
		if err == nil {
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || json.Unmarshal(body, &answer) != nil || !answer.Acquired {
				t.Errorf("acquiring gave %s, error %v", body, err)
			}
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the binary serves nothing: %v", err)
		}
	}
}
