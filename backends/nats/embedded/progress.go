package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

// progressFile has the progress of a server that is alone, as far as it had got when
// it was last looked at.
const progressFile = "progress.json"

// progress is the last sequence of each stream. A server that finds a damaged message
// when it starts drops all that come after it, and says nothing.
type progress map[string]uint64

func progressOf(state *server.JSInfo) progress {
	p := make(progress)
	for _, account := range state.AccountDetails {
		for _, stream := range account.Streams {
			p[stream.Name] = stream.State.LastSeq
		}
	}
	return p
}

// missing returns what is gone since before, or nil.
func (p progress) missing(before progress) error {
	for stream, last := range before {
		if p[stream] < last {
			return fmt.Errorf("the stream %s ends with message %d, and had %d", stream, p[stream], last)
		}
	}
	return nil
}

// readProgress returns what saveProgress wrote last.
func (s serverSettings) readProgress() (progress, error) {
	path := filepath.Join(s.dir, progressFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p progress
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return p, nil
}

func (s serverSettings) saveProgress(p progress) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(s.dir, progressFile), text)
}

// checkProgress returns why a server that is alone must not serve what it has read, or
// nil. Messages that were not yet to be on the disk may be gone after a power failure;
// that is told only.
func (n *node) checkProgress(s *server.Server) error {
	before, err := n.settings.readProgress()
	if err != nil {
		return fmt.Errorf("dir: %w; remove it to start without knowing whether anything is missing", err)
	}
	state, err := jetStreamOf(s)
	if err != nil {
		return err
	}
	gone := progressOf(state).missing(before)
	if gone == nil {
		return nil
	}
	if n.settings.syncInterval > 0 {
		n.logger.Load().Error("what was written last is gone, as after a power failure: locks that are held may be granted again; use sync_interval always if that must not be",
			zap.String("dir", n.settings.dir), zap.String("missing", gone.Error()))
		return nil
	}
	return fmt.Errorf("dir: what is in %s is damaged: %w; put a backup there, or remove %s to go on without what is missing, whose locks can then be granted again",
		n.settings.dir, gone, progressFile)
}

// noteProgress writes down how far a server that is alone has got, if that is not
// written yet. A file that is behind only tells of less.
func (n *node) noteProgress(now progress) {
	if n.settings.cluster != nil || maps.Equal(now, n.noted) {
		return
	}
	if err := n.settings.saveProgress(now); err != nil {
		n.logger.Load().Debug("the progress of the embedded NATS server was not written", zap.Error(err))
		return
	}
	n.noted = now
}

// jetStreamOf asks a server for all about its streams.
func jetStreamOf(s *server.Server) (*server.JSInfo, error) {
	state, err := s.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	// One that gives up says first that it does, and then has no streams.
	if err == nil && !s.JetStreamEnabled() {
		err = errGaveUp
	}
	return state, err
}
