package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// streams sends requests as streams of HTTP/2 connections, of which the client
// opens as many as the server's limit of streams asks for. So a crowd may be
// larger than the limit of open files.
type streams struct{ client *http.Client }

func newStreams() *streams {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &streams{&http.Client{Transport: &http.Transport{Protocols: protocols}}}
}

func (s *streams) send(ctx context.Context, address, path string, _ int) (waiting, error) {
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &stream{cancel: cancel, done: make(chan struct{})}
	go func() { // ends with the answer, or at close
		defer close(w.done)
		res, err := s.client.Do(req)
		if err != nil {
			w.err = err
			return
		}
		defer res.Body.Close()
		w.body, w.err = io.ReadAll(res.Body)
	}()
	return w, nil
}

func (s *streams) close() { s.client.CloseIdleConnections() }

// stream is a request under way.
type stream struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once body and err are set
	body   []byte
	err    error
}

func (w *stream) await() ([]byte, error) {
	select {
	case <-w.done:
		return w.body, w.err
	case <-time.After(answerTimeout):
		return nil, fmt.Errorf("no answer within %v", answerTimeout)
	}
}

func (w *stream) close() {
	w.cancel()
	<-w.done
}
