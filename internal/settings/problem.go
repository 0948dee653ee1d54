package settings

import (
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// Problem is what is wrong with a setting, by itself or beside another one. It is an
// error that begins with the setting's name.
type Problem struct{ setting, text string }

// Wrong tells what is wrong with a setting, which is named as in a Caddyfile. One in a
// block within the module's has the name of that block before its own, or none.
func Wrong(setting, text string) *Problem { return &Problem{setting, text} }

// In returns the problem as one of a setting in the block.
func (p *Problem) In(block string) *Problem { return &Problem{block + " " + p.setting, p.text} }

// Error implements error.
func (p *Problem) Error() string { return p.setting + ": " + p.text }

// If tells what is wrong with a setting, or returns nil if it is not wrong.
func If(wrong bool, setting, text string) *Problem {
	if !wrong {
		return nil
	}
	return Wrong(setting, text)
}

// First returns the first of problems that there is, or nil.
func First(problems ...*Problem) *Problem {
	for _, p := range problems {
		if p != nil {
			return p
		}
	}
	return nil
}

// Below reports whether a duration is given and too short.
func Below(d caddy.Duration, least time.Duration) bool {
	return d != 0 && time.Duration(d) < least
}

// IsName reports whether a text is a name as JetStream and file systems take it, or
// empty.
func IsName(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(letters, r) })
}

// HasPlaceholder reports whether a text has a placeholder that is not filled in yet.
func HasPlaceholder(text string) bool { return strings.Contains(text, "{") }
