package caddymodule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	defaultInterval = 2 * time.Second

	// clearScreen makes a terminal empty, and begins at its top.
	clearScreen = "\x1b[H\x1b[2J"
)

// watch shows something again and again until the process is told to end. It fails
// only if it fails at first: a Caddy that is restarted comes back.
func (c *caller) watch(interval time.Duration, show func(io.Writer) error) error {
	if interval <= 0 {
		return errors.New("--interval must be more than nothing")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	begin := ""
	if onTerminal(c.out) {
		begin = clearScreen
	}
	for first := true; ; first = false {
		var screen bytes.Buffer
		shown := make(chan error, 1)
		go func() { shown <- show(&screen) }() // ends with its request, or the process
		select {
		case err := <-shown:
			if err != nil && first {
				return err
			}
			if err != nil {
				fmt.Fprintln(&screen, err)
			}
		case <-ctx.Done():
			return nil
		}
		if _, err := fmt.Fprintf(c.out, "%s%s\n", begin, screen.Bytes()); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func onTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
