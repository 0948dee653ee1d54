package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestListModulesShowsOurs(t *testing.T) {
	out, err := runCaddy(t, t.TempDir(), "list-modules")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	modules := strings.Fields(out)
	for _, want := range []string{"http.handlers.lock_gateway", "http.lock_gateway.backends.memory"} {
		if !slices.Contains(modules, want) {
			t.Errorf("%s is not listed", want)
		}
	}
}

// The example must be valid and formatted where there is nothing but the
// binary: no running server, no store.
func TestValidateNeedsNoServer(t *testing.T) {
	example, err := filepath.Abs("../../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"validate", "--adapter", "caddyfile", "--config", example},
		{"adapt", "--adapter", "caddyfile", "--config", example},
		{"fmt", "--diff", example},
	} {
		t.Run(args[0], func(t *testing.T) {
			out, err := runCaddy(t, t.TempDir(), args...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if args[0] == "adapt" && !strings.Contains(out, `"handler":"lock_gateway"`) {
				t.Errorf("the config has no lock gateway:\n%s", out)
			}
		})
	}
}

// The example shows the log filter that TestAccessLogWithoutLockIDs tries.
func TestExampleHasTheLogFilter(t *testing.T) {
	example, err := os.ReadFile("../../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(filterOfLockSite) {
		if line = strings.TrimSpace(line); !strings.Contains(string(example), line) {
			t.Errorf("it lacks %s", line)
		}
	}
}
