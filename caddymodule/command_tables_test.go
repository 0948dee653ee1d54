package caddymodule

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"unicode"
)

// What a hint has is pasted into a shell.
func TestShellWordsComeBackFromAShell(t *testing.T) {
	for _, name := range []string{
		"1/plain-id_2.x:y,@%+", "1/two words", "1/it's", "1/$HOME `id` $(id) \\ \" *?[a]!~#;&|<>", "1/-x", "1/ümlaut 🔒",
		"1/\x1b[2J\a", "1/two\nlines\n\n", "1/a\u202eb\u00a0c", "1/\\033%s", "-n", "",
	} {
		word := shellWord(name)
		if strings.ContainsFunc(word, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%q is written %q, which a terminal may obey", name, word)
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s.' "+word).CombinedOutput()
		if err != nil || string(out) != name+"." {
			t.Errorf("%q is written %s, which a shell takes for %q: %v", name, word, out, err)
		}
	}
	if word := shellWord("1/my-lock"); word != "1/my-lock" {
		t.Errorf("a plain name is written %s", word)
	}
}

func TestListsTellWhatToAddForTheNextPage(t *testing.T) {
	var out bytes.Buffer
	if err := printList(&out, listJSON{Matching: 2, Next: "1/two words", Locks: []lockJSON{{Lock: "1/two words"}}}); err != nil {
		t.Fatal(err)
	}
	if want := "more: --after '1/two words'\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("the list is\n%s\nwithout %s", out.String(), want)
	}
}
