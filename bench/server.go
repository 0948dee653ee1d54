package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const gatewayModule = "github.com/lockgateway/lockgateway"

// server is a Caddy, or an etcd, that runs as a child process, so that its CPU
// time and its heap are its own.
type server struct {
	command *exec.Cmd
	log     *bytes.Buffer
	ended   chan error // receives how the process ended
	admin   string     // the address of Caddy's admin API
}

// launch starts a server.
func launch(binary string, args, env []string) (*server, error) {
	s := &server{command: exec.Command(binary, args...), log: new(bytes.Buffer), ended: make(chan error, 1)}
	s.command.Env = append(os.Environ(), env...)
	s.command.Stdout, s.command.Stderr = s.log, s.log
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	// Ends when the process does; stop waits for it.
	go func() { s.ended <- s.command.Wait() }()
	return s, nil
}

// buildCaddy compiles a main package of moduleDir as a user would, into dir.
func buildCaddy(ctx context.Context, dir, moduleDir, pkg string) (string, error) {
	binary := filepath.Join(dir, "caddy")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", binary, pkg)
	build.Dir = moduleDir
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// gatewayDir returns the folder of the checkout that is measured. Building there
// takes the dependencies that its users get, whatever this module asks for.
func gatewayDir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", gatewayModule).Output()
	if err != nil {
		return "", fmt.Errorf("looking for the checkout (run this in bench/): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// startServer runs a binary with the given sites, and returns when they answer.
// It writes into dir, which the caller removes.
func startServer(ctx context.Context, dir, binary string, sites []site) (*server, error) {
	admin, err := freeAddress()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(config, []byte(caddyfile(admin, sites)), 0o600); err != nil {
		return nil, err
	}
	s, err := launch(binary, []string{"run", "--config", config, "--adapter", "caddyfile"},
		[]string{"HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir})
	if err != nil {
		return nil, err
	}
	s.admin = admin
	for _, site := range sites {
		if err := s.waitFor(ctx, site.address); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	return s, nil
}

// waitFor returns when the server listens on an address.
func (s *server) waitFor(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("the server ended: %w\n%s", err, s.log)
		case <-ctx.Done():
			return fmt.Errorf("the server does not listen on %s: %w", address, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the process, by force: nothing in it is worth keeping.
func (s *server) stop() error {
	if err := s.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.ended // it was killed, which is an error that says nothing
	return nil
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
