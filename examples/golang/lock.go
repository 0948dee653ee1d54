// Command lock runs a command while it holds a lock:
//
//	lock nightly-backup ./backup.sh --full
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"time"
)

func main() {
	server := os.Getenv("LOCKS")
	if server == "" {
		server = "http://localhost:8080"
	}
	err := withLock(context.Background(), server, os.Args[1], time.Minute, func(ctx context.Context, _ uint64) error {
		cmd := exec.CommandContext(ctx, os.Args[2], os.Args[3:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		return cmd.Run()
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// withLock calls work while it holds the lock, and gives it the fencing token.
func withLock(ctx context.Context, server, name string, wait time.Duration, work func(ctx context.Context, token uint64) error) (err error) {
	path := server + "/v1/1/" + url.PathEscape(name)
	// With a holder, both requests can be repeated: net/http may do so itself.
	query := url.Values{"holder": {rand.Text()}, "waitTimeoutMs": {fmt.Sprint(wait.Milliseconds())}}
	defer func() {
		// Also if no answer came, which may have been lost on its way, and if ctx
		// has ended.
		_, releaseErr := get(context.WithoutCancel(ctx), path+"/release?"+query.Encode(), 30*time.Second)
		err = errors.Join(err, releaseErr)
	}()
	answer, err := get(ctx, path+"/acquire?"+query.Encode(), wait+30*time.Second)
	if err != nil {
		return err
	}
	if !answer.Acquired {
		return errors.New("somebody else has the lock " + name)
	}
	return work(ctx, answer.Token)
}

type answer struct {
	Acquired bool
	Token    uint64
}

// get requests a URL until it is answered, at most five times.
func get(ctx context.Context, url string, timeout time.Duration) (a answer, err error) {
	for try := range 5 {
		if try > 0 {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return a, ctx.Err()
			}
		}
		var again bool
		if a, again, err = getOnce(ctx, url, timeout); !again {
			break
		}
	}
	return a, err
}

func getOnce(ctx context.Context, url string, timeout time.Duration) (a answer, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return a, false, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, true, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return a, true, err
	}
	if res.StatusCode != http.StatusOK {
		return a, res.StatusCode >= 500, fmt.Errorf("%s: %s", res.Status, body)
	}
	return a, false, json.Unmarshal(body, &a)
}
