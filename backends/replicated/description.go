package replicated

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

// String returns the ID as it is shown to people.
func (id SessionID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// description is what a gateway tells of itself, as JSON.
type description struct {
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// describe returns this gateway's description.
func describe() string {
	const longest = 255 // of a host's name
	host, _ := os.Hostname()
	text, err := json.Marshal(description{Host: host[:min(len(host), longest)], Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return ""
	}
	return string(text)
}

// Gateways implements lock.Inspector.
func (b *Backend) Gateways(ctx context.Context) ([]lock.Gateway, error) {
	if b.closed.Load() {
		return nil, lock.ErrClosing
	}
	ctx, cancel := context.WithTimeout(ctx, b.requestTimeout())
	defer cancel()
	sessions, err := b.store.Sessions(ctx)
	if err != nil {
		return nil, b.inspectError(ctx, err)
	}
	own := b.gateways.current()
	list := make([]lock.Gateway, 0, len(sessions))
	for _, s := range sessions {
		var d description
		_ = json.Unmarshal([]byte(s.Description), &d) // else it is another version's, and nothing is known
		list = append(list, lock.Gateway{ID: s.ID.String(), Self: own != nil && own.ID() == s.ID, Host: d.Host, Since: d.Since})
	}
	slices.SortFunc(list, func(x, y lock.Gateway) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.ID, y.ID))
	})
	return list, nil
}
