package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// profileRounds writes a CPU profile of the server under each workload.
func profileRounds(ctx context.Context, s *server, l *load, o httpOptions) error {
	const seconds = 5
	for kind := respond; kind <= pairs; kind++ {
		name := fmt.Sprintf("%s-%v-%d.pprof", o.profile, kind, len(l.workers))
		failed := make(chan error, 1)
		// Ends with the profile, which the round outlasts a little.
		go func() { failed <- s.saveProfile(ctx, name, seconds) }()
		_, err := l.round(s, kind, (seconds+1)*time.Second)
		if profileErr := <-failed; err == nil {
			err = profileErr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *server) saveProfile(ctx context.Context, name string, seconds int) error {
	body, err := s.debug(ctx, fmt.Sprintf("profile?seconds=%d", seconds))
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(body), 0o600)
}

// debug asks the server's admin API for one of Go's profiles.
func (s *server) debug(ctx context.Context, profile string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/debug/pprof/"+profile, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var b strings.Builder
	if _, err := io.Copy(&b, res.Body); err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("profile %s: %s: %s", profile, res.Status, b.String())
	}
	return b.String(), nil
}
