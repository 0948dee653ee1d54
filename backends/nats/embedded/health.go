package embedded

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/nats"
)

// sightHolds is how long a node of a cluster counts as current after it was last
// known to be. Elections take 4 to 9 seconds.
const sightHolds = 10 * time.Second

var errGaveUp = errors.New("JetStream has given up, as it does when the disk is full or cannot be written to")

// sight is what a server said of itself when it was looked at.
type sight struct {
	stored int64 // bytes
	peers  int64 // that it is connected to

	judged   time.Time // when it told
	problems []server.HealthzError
}

// look asks a server how it is, and notes how far it has got. It returns why the
// server will not write any more, or nil. Only watch calls it.
func (n *node) look(s *server.Server) (broken error) {
	if !s.JetStreamEnabled() {
		return errGaveUp
	}
	now := &sight{judged: time.Now(), problems: health(s)}
	if state, err := jetStreamOf(s); err == nil {
		now.stored = int64(state.Store)
		n.noteProgress(progressOf(state))
	}
	if peers, err := s.Routez(nil); err == nil {
		now.peers = connected(peers)
	}
	if before := n.seen.Load(); before != nil && before.current("") == nil && untold(now.problems) {
		now.judged, now.problems = before.judged, nil
	}
	n.seen.Store(now)
	n.tellCurrent(now)
	for _, p := range now.problems {
		if isWriteError(p) {
			return errors.New(p.Error)
		}
	}
	return nil
}

// tellCurrent tells the log when a node of a cluster has caught up with the others, or
// may have fallen behind, of which it may be a while ago that the node was told. Only
// look calls it.
func (n *node) tellCurrent(now *sight) {
	if n.settings.cluster == nil || n.ctx.Err() != nil {
		return
	}
	problem := now.current("")
	if is := problem == nil; is != n.toldCurrent {
		n.toldCurrent = is
		if is {
			n.logger.Load().Info("this node has all data of the cluster")
		} else {
			n.logger.Load().Warn("this node may not have all data of the cluster, and is not ready", zap.Error(problem))
		}
	}
}

func health(s *server.Server) []server.HealthzError {
	return s.Healthz(&server.HealthzOptions{Details: true}).Errors
}

// untold reports whether a server says nothing of its streams, as while the nodes
// elect who leads them all. Streams have leaders of their own and go on meanwhile, so
// nodes need not all be taken out of service.
func untold(problems []server.HealthzError) bool {
	for _, p := range problems {
		if (p.Type == server.HealthzErrorJetStream || p.Type == server.HealthzErrorConn) && !isWriteError(p) {
			return true
		}
	}
	return false
}

// unread reports whether a server could not read its data.
func unread(p server.HealthzError) bool {
	return (p.Type == server.HealthzErrorStream || p.Type == server.HealthzErrorAccount) && !isWriteError(p)
}

func isWriteError(p server.HealthzError) bool { return strings.Contains(p.Error, "write error") }

// current returns nil if the server has all that it is to keep of a stream, or of all
// if that is "".
func (s *sight) current(stream string) error {
	if s == nil {
		return errors.New("the embedded NATS server has not told yet whether it has the data")
	}
	for _, p := range s.problems {
		if stream == "" || p.Stream == "" || p.Stream == stream {
			return errors.New("the embedded NATS server may not have all data yet: " + p.Error)
		}
	}
	if age := time.Since(s.judged); age > sightHolds {
		return fmt.Errorf("the embedded NATS server has not told for %v whether it has the data", age.Round(time.Second))
	}
	return nil
}

// Current implements nats.ClusterNode. A server that is alone has what there is.
func (n *node) Current(stream string) error {
	if n.settings.cluster == nil {
		return nil
	}
	return n.seen.Load().current(stream)
}

// Interface guards
var (
	_ nats.LocalServer = (*node)(nil)
	_ nats.ClusterNode = (*node)(nil)
)
