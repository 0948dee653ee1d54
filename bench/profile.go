package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/pprof"
	"strings"
	"time"
)

const profileSeconds = 5

// profileRounds writes a CPU profile of the server under each workload.
func profileRounds(ctx context.Context, s *server, l *load, o httpOptions) error {
	for kind := respond; kind <= pairs; kind++ {
		name := fmt.Sprintf("%s-%v-%d.pprof", o.profile, kind, len(l.workers))
		failed := make(chan error, 1)
		// Ends with the profile, which the round outlasts a little.
		go func() { failed <- s.saveProfile(ctx, name, profileSeconds) }()
		_, err := l.round(s, kind, (profileSeconds+1)*time.Second)
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

// saveProfiles writes a CPU profile of this process under each cell.
func (e *experiment) saveProfiles(ctx context.Context, servers store, prefix string) error {
	for i, c := range e.cells {
		f, err := os.Create(fmt.Sprintf("%s-%d.pprof", prefix, i))
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		_, err = c.round(ctx, servers, profileSeconds*time.Second)
		pprof.StopCPUProfile()
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Println(f.Name(), c.name)
	}
	return nil
}
