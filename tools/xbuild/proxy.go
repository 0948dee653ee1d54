package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

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

// proxied returns the environment in which Go finds modules in a proxy's folder,
// and all others in its module cache: nowhere else, since a proxy that does not
// know of an unpublished module may say so in a way that ends the search. It
// first fills the cache with what the checkout's module needs.
func proxied(ctx context.Context, folder, checkout string) ([]string, error) {
	// The whole graph, and the packages of all that is built.
	for _, args := range [][]string{{"mod", "graph"}, {"list", "-deps", "./..."}} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = checkout
		if out, err := cmd.Output(); err != nil {
			return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	cache, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return nil, err
	}
	downloads := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	return []string{
		"GOPROXY=file://" + filepath.ToSlash(folder) + ",file://" + filepath.ToSlash(downloads) + ",off",
		"GOSUMDB=off", // what is in the cache was checked when it got there
		"GOFLAGS=-mod=mod",
		"GOPRIVATE=", "GONOPROXY=", "GONOSUMDB=",
	}, nil
}
