package settings

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
)

// Replacer fills in the placeholders of settings, up to the first that has no value:
// that would make another cluster, user, secret or name of data of what was meant.
type Replacer struct {
	replacer *caddy.Replacer
	err      error
}

// NewReplacer returns a Replacer of what is known everywhere, such as {env.NAME}.
func NewReplacer() *Replacer { return &Replacer{replacer: caddy.NewReplacer()} }

// Fill fills in the placeholders of a setting.
func (r *Replacer) Fill(setting string, value *string) {
	if r.err != nil {
		return
	}
	filled, err := r.replacer.ReplaceOrErr(*value, true, true)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", setting, err)
		return
	}
	*value = filled
}

// FillAll fills in those of a setting with several values.
func (r *Replacer) FillAll(setting string, values []string) {
	for i := range values {
		r.Fill(setting, &values[i])
	}
}

// Err returns an error that names the setting with the placeholder without a value, or
// nil.
func (r *Replacer) Err() error { return r.err }
