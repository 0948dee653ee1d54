package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// snippet is a fenced block of a Markdown file.
type snippet struct {
	file     string
	line     int
	language string
	text     string
	source   string // the file that a comment before the block says it shows
}

var sourceComment = regexp.MustCompile(`^<!-- (\S+) -->$`)

// snippets returns the fenced blocks of all documentation.
func snippets(t *testing.T) []snippet {
	t.Helper()
	files, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, root+"/README.md", root+"/CONTRIBUTING.md")
	var all []snippet
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		var open *snippet
		source := ""
		for i, line := range strings.Split(string(text), "\n") {
			language, fence := strings.CutPrefix(line, "```")
			switch {
			case fence && open == nil:
				open = &snippet{file: name, line: i + 1, language: language, source: source}
			case fence:
				all = append(all, *open)
				open = nil
			case open != nil:
				open.text += line + "\n"
			}
			if m := sourceComment.FindStringSubmatch(line); m != nil {
				source = m[1]
			} else if line != "" {
				source = ""
			}
		}
		if open != nil {
			t.Fatalf("%s:%d: the block has no end", name, open.line)
		}
	}
	return all
}

// Every snippet of the documentation is run, or is a file that another test
// runs.
func TestDocumentationIsTrue(t *testing.T) {
	t.Setenv("LOCKS", "of-the-environment")
	t.Setenv("LOCKS_HASH_KEY", "of-the-environment")
	s := startServer(t, onlySite, nil)
	for _, sn := range snippets(t) {
		switch {
		case sn.source != "":
			want, err := os.ReadFile(filepath.Join(root, sn.source))
			if err != nil {
				t.Errorf("%s:%d: %v", sn.file, sn.line, err)
			} else if !strings.Contains(string(want), sn.text) {
				t.Errorf("%s:%d is not what %s has", sn.file, sn.line, sn.source)
			}
		case sn.language == "console":
			s.expectSession(sn)
		case sn.language == "caddyfile":
			path := filepath.Join(t.TempDir(), "Caddyfile")
			text := strings.ReplaceAll(sn.text, authorityFile, authority(t).file)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := runCaddy(t, s.dir, "validate", "--config", path); err != nil {
				t.Errorf("%s:%d: %v\n%s", sn.file, sn.line, err, out)
			}
			if out, err := runCaddy(t, s.dir, "fmt", "--diff", path); err != nil {
				t.Errorf("%s:%d is not formatted: %v\n%s", sn.file, sn.line, err, out)
			}
		case sn.language == "json":
			path := filepath.Join(t.TempDir(), "caddy.json")
			if err := os.WriteFile(path, []byte(sn.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := runCaddy(t, s.dir, "validate", "--config", path); err != nil {
				t.Errorf("%s:%d: %v\n%s", sn.file, sn.line, err, out)
			}
		case sn.language == "bash":
			expectRunElsewhere(t, sn)
		case sn.language == "nginx": // TestNginxInFront runs it
		default:
			t.Errorf("%s:%d: nothing runs a block in %q", sn.file, sn.line, sn.language)
		}
	}
}

// changing is what differs in the output of each run.
var changing = regexp.MustCompile(`("token":|"expiresInMs":|"[a-z]*[sS]ince":|[Rr]etry-[Aa]fter: |[Dd]ate: )[^,}\r\n]*`)

// changingCell is what differs in a table: ages, tokens, and the width of columns.
var changingCell = regexp.MustCompile(`(  +)(\d+(\.\d+)?(ms|s|m|h)\S*|\d{16}|-)?`)

// expectSession runs the commands of a console session, the lines that begin
// with a dollar, and compares what they print with what follows them.
func (s *server) expectSession(sn snippet) {
	s.t.Helper()
	for block := range strings.SplitSeq(strings.TrimPrefix(sn.text, "$ "), "\n$ ") {
		command, want, _ := strings.Cut(block, "\n")
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		script := exec.CommandContext(ctx, "bash", "-c", strings.NewReplacer(
			"http://localhost:8080", "http://"+s.site,
			"http://localhost:2019", "http://"+s.admin,
			"caddy lock-gateway", binary+" lock-gateway --address "+s.admin,
		).Replace(command))
		// What the command leaves in the background must not keep the output open.
		script.WaitDelay = time.Second
		script.Env = append(os.Environ(), "CURL_HOME="+s.dir)
		got, err := script.Output()
		cancel()
		if err != nil {
			s.t.Errorf("%s:%d: %s: %v", sn.file, sn.line, command, err)
			continue
		}
		if tidy(string(got)) != tidy(want) {
			s.t.Errorf("%s:%d: %s\nprints %s\nnot    %s", sn.file, sn.line, command, got, want)
		}
	}
}

func tidy(output string) string {
	output = changingCell.ReplaceAllString(strings.ReplaceAll(output, "\r", ""), "  …")
	return strings.TrimSpace(changing.ReplaceAllString(output, "$1…"))
}

// expectRunElsewhere checks that the commands of a block are make's targets, or
// are run by .ci/run or the tests as they are written.
func expectRunElsewhere(t *testing.T, sn snippet) {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for line := range strings.Lines(sn.text) {
		command, _, _ := strings.Cut(line, "#")
		command = strings.TrimSpace(command)
		target, isMake := strings.CutPrefix(command, "make ")
		switch {
		case command == "":
		case isMake && strings.Contains(read("Makefile"), "\n"+target+": "):
		case !isMake && strings.Contains(read(".ci/run"), command):
		case strings.HasPrefix(command, "xcaddy build"): // TestBuildAsPublished runs what it finds here
		default:
			t.Errorf("%s:%d: nothing runs %q", sn.file, sn.line, command)
		}
	}
}

// All that Caddyfile.example has commented out works when it is not.
func TestExampleWorksWithEveryBlockTakenIn(t *testing.T) {
	text, err := os.ReadFile(root + "/Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "Caddyfile")
	whole := regexp.MustCompile(`(?m)^#([^ \n])`).ReplaceAll(text, []byte("$1"))
	whole = regexp.MustCompile(`(?m)^#$`).ReplaceAll(whole, nil)
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"validate", "--config", path}, {"fmt", "--diff", path}} {
		if out, err := runCaddy(t, t.TempDir(), args...); err != nil {
			t.Errorf("caddy %s: %v\n%s", args[0], err, out)
		}
	}
	if n := strings.Count(string(whole), "\tlock_gateway"); n < 7 {
		t.Errorf("the example has %d sites that serve locks", n)
	}
}
