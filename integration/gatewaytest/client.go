package gatewaytest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Client sends requests to one address. Each has a connection of its own, so
// that no request is ever sent twice: Go repeats a GET by itself if a
// connection dies that served one before.
type Client struct {
	address string
	http    *http.Client
}

// NewClient returns a client of a gateway, or of a relay to one.
func NewClient(address string) *Client {
	return &Client{address: address, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// Answer is what came of a request.
type Answer struct {
	// Err says why there is no answer. The other fields are then zero.
	Err error

	Status int
	Body   string

	// What the body says. Value is nil where it says nothing of it.
	Acquired, Released, Reset bool
	Value                     *int64
	Token                     uint64
	ExpiresInMs               int64
	Waiting                   int64
	Holders                   []Holder
	Detail                    string
}

// Holder is a named holder in the answer to value.
type Holder struct {
	Holder      string
	Token       uint64
	ExpiresInMs int64
}

// OK reports whether the request was carried out.
func (a Answer) OK() bool { return a.Err == nil && a.Status == http.StatusOK }

// Refused reports whether the request certainly was not carried out.
func (a Answer) Refused() bool { return a.Err == nil && a.Status == http.StatusServiceUnavailable }

// Unknown reports whether the request may have been carried out, or may be yet.
func (a Answer) Unknown() bool { return a.Err != nil || a.Status == http.StatusGatewayTimeout }

// Held is the number of holders, which is 0 also where the lock is unknown.
func (a Answer) Held() int64 {
	if a.Value == nil {
		return 0
	}
	return *a.Value
}

// String is for messages.
func (a Answer) String() string {
	if a.Err != nil {
		return fmt.Sprintf("no answer (%v)", a.Err)
	}
	return fmt.Sprintf("%d %s", a.Status, a.Body)
}

// Acquire tries once, unless the query says otherwise. A lock is written as in
// a path: 1/name.
func (c *Client) Acquire(ctx context.Context, lock, query string) Answer {
	return c.Get(ctx, lock, "acquire", query)
}

// Release frees a slot.
func (c *Client) Release(ctx context.Context, lock, query string) Answer {
	return c.Get(ctx, lock, "release", query)
}

// Value reads the state of a lock, with all details.
func (c *Client) Value(ctx context.Context, lock string) Answer {
	return c.Get(ctx, lock, "value", "detail=1")
}

// Reset empties a lock.
func (c *Client) Reset(ctx context.Context, lock string) Answer {
	return c.Get(ctx, lock, "reset", "")
}

// Get sends a request and reads the answer.
func (c *Client) Get(ctx context.Context, lock, action, query string) Answer {
	url := "http://" + c.address + "/v1/" + lock + "/" + action
	if query != "" {
		url += "?" + query
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return Answer{Err: err}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return Answer{Err: err}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return Answer{Err: err}
	}
	a := Answer{Status: res.StatusCode, Body: string(body)}
	if err := json.Unmarshal(body, &a); err != nil {
		return Answer{Err: fmt.Errorf("%d %q: %w", res.StatusCode, body, err)}
	}
	return a
}

// Named is the query of a request by a holder, with more if there is more.
func Named(holder string, more ...string) string { return join("holder="+holder, more) }

// ForLong is the query of a request that something else must end: its wait is
// longer than a test may take, so that a request that nobody ends hangs.
func ForLong(more ...string) string { return join("waitTimeoutMs=600000", more) }

// Wait is the query of a request that waits so long at most.
func Wait(d time.Duration, more ...string) string {
	return join(fmt.Sprintf("waitTimeoutMs=%d", d.Milliseconds()), more)
}

// TTL is the query of a request for a slot that frees itself.
func TTL(d time.Duration, more ...string) string {
	return join(fmt.Sprintf("ttlMs=%d", d.Milliseconds()), more)
}

func join(query string, more []string) string {
	for _, m := range more {
		query += "&" + m
	}
	return query
}
