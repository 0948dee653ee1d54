// Command xbuild builds the Caddy that xcaddy.json describes: a JSON
// xcaddy.Builder, the one list of what a full build contains. xcaddy itself
// reads no such file.
//
//	go -C tools run ./xbuild [-manifest ../xcaddy.json] [-output ../bin/caddy]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/caddyserver/xcaddy"
	"golang.org/x/mod/module"
)

func main() {
	manifest := flag.String("manifest", "../xcaddy.json", "the JSON xcaddy.Builder to build")
	output := flag.String("output", "../bin/caddy", "the binary to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := build(ctx, *manifest, *output)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func build(ctx context.Context, manifest, output string) error {
	builder, err := read(manifest)
	if err != nil {
		return err
	}
	// The module that is replaced by the checkout may not be published, but must be
	// found all the same.
	if len(builder.Replacements) != 1 {
		return fmt.Errorf("%s must have one replacement, of the module by its checkout", manifest)
	}
	replaced := builder.Replacements[0]
	folder, err := os.MkdirTemp("", "xbuild-proxy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	version := module.Version{Path: string(replaced.Old), Version: "v0.0.0"}
	if err := writeProxy(folder, string(replaced.New), version); err != nil {
		return err
	}
	env, stop, err := serveProxy(ctx, folder, version.Path)
	if err != nil {
		return err
	}
	defer stop()
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return builder.Build(ctx, output)
}

// read reads a manifest. Local replacements in it are relative to its folder,
// since the Builder builds elsewhere.
func read(manifest string) (*xcaddy.Builder, error) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return nil, err
	}
	builder := new(xcaddy.Builder)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(builder); err != nil {
		return nil, fmt.Errorf("%s: %w", manifest, err)
	}
	for i, r := range builder.Replacements {
		if path := string(r.New); strings.HasPrefix(path, ".") {
			absolute, err := filepath.Abs(filepath.Join(filepath.Dir(manifest), path))
			if err != nil {
				return nil, err
			}
			builder.Replacements[i].New = xcaddy.ReplacementPath(absolute)
		}
	}
	return builder, nil
}
