package hostile_test

import (
	"strings"
	"testing"

	"github.com/lockgateway/lockgateway/backends/replicated"
	"github.com/lockgateway/lockgateway/backends/replicated/hostile"
)

// A gateway that breaks the rules of store.go is wrong, which a test must show.
func TestMisusePanics(t *testing.T) {
	c := hostile.New(t, hostile.Config{})
	defer c.Close()
	g := open(t, c)
	for name, misuse := range map[string]func(){
		"no key":           func() { _, _ = g.Get(t.Context(), "") },
		"a key too long":   func() { _, _ = g.Get(t.Context(), strings.Repeat("k", replicated.MaxKeyLength+1)) },
		"a key of no text": func() { _, _ = g.swap(t.Context(), "\xff", 0, "a") },
		"a value too long": func() { _, _ = g.swap(t.Context(), "k", 0, strings.Repeat("a", 80<<10)) },
		"no session":       func() { _, _ = g.Swap(t.Context(), replicated.Swap{Key: "k"}) },
		"no time":          func() { _, _ = g.NewExpiring(t.Context(), 0) },
		"no swap is held":  func() { c.Hold(of("k")).Lose() },
		"another cluster":  func() { hostile.New(t, hostile.Config{}).Cut(g.Store) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("nothing panicked")
				}
			}()
			misuse()
		})
	}
}
