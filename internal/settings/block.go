package settings

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Block is the block of a module in a Caddyfile. It knows where its settings are, and
// those of the blocks within it, of which none shares a name with another.
type Block struct {
	whole caddyfile.Dispenser            // at the module's name
	at    map[string]caddyfile.Dispenser // at each setting that was read so far
}

// NewBlock returns the block of the module whose name d is at.
func NewBlock(d *caddyfile.Dispenser) *Block {
	return &Block{whole: *d, at: make(map[string]caddyfile.Dispenser)}
}

// Each calls read at each setting of the block that comes next in d: the module's, or
// that of the setting which d is at. It refuses arguments before the block, and settings
// that are given twice.
func (b *Block) Each(d *caddyfile.Dispenser, read func() error) error {
	if err := NoArgument(d); err != nil {
		return err
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if _, given := b.at[d.Val()]; given {
			return d.Errf("%s is given twice", d.Val())
		}
		b.at[d.Val()] = *d
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// Refuse makes an error of a problem, with the line where the setting is, or, if it is
// missing, where the module is. It returns nil if there is none.
func (b *Block) Refuse(problem *Problem) error {
	if problem == nil {
		return nil
	}
	// In a block within it is named after that.
	where, given := b.at[problem.setting[strings.LastIndexByte(problem.setting, ' ')+1:]]
	if !given {
		where = b.whole
	}
	return where.WrapErr(problem)
}
