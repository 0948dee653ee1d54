// Command lock runs a command while it holds a lock:
//
//	lock nightly-backup ./backup.sh --full
//	lock -anonymous nightly-backup ./backup.sh --full
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	server := os.Getenv("LOCKS")
	if server == "" {
		server = "http://localhost:8080"
	}
	anonymous := flag.Bool("anonymous", false, "take the lock without a holder")
	flag.Parse()
	args := flag.Args()
	work := func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, args[1], args[2:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		return cmd.Run()
	}
	// A signal ends the command; then the lock is released.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	path := server + "/v1/1/" + url.PathEscape(args[0])
	var err error
	if *anonymous {
		err = withAnonymousLock(ctx, path, time.Minute, work)
	} else {
		err = withLock(ctx, path, time.Minute, func(ctx context.Context, _ uint64) error { return work(ctx) })
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// withLock calls work while it holds the lock, and gives it the fencing token.
func withLock(ctx context.Context, path string, wait time.Duration, work func(ctx context.Context, token uint64) error) (err error) {
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
		return errBusy
	}
	return work(ctx, answer.Token)
}

var errBusy = errors.New("somebody else has the lock")

// withAnonymousLock is the same without a holder. Nothing may be repeated then: if
// an answer is lost, the slot may stay held.
func withAnonymousLock(ctx context.Context, path string, wait time.Duration, work func(ctx context.Context) error) (err error) {
	query := url.Values{"waitTimeoutMs": {fmt.Sprint(wait.Milliseconds())}}
	answer, _, err := getOnce(ctx, path+"/acquire?"+query.Encode(), wait+30*time.Second)
	if err != nil {
		return err
	}
	if !answer.Acquired {
		return errBusy
	}
	defer func() {
		_, _, releaseErr := getOnce(context.WithoutCancel(ctx), path+"/release", 30*time.Second)
		err = errors.Join(err, releaseErr)
	}()
	return work(ctx)
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

// client opens a connection for each request: on one that is kept and dies,
// net/http repeats a GET by itself.
var client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}

func getOnce(ctx context.Context, url string, timeout time.Duration) (a answer, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return a, false, err
	}
	res, err := client.Do(req)
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
