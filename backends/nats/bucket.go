package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// Bucket says how to make the bucket, if there is none. One that is there is taken
// as it is, if nothing is wrong with it.
type Bucket struct {
	// Replicas is how many servers keep it. 0: three in a cluster, else one.
	Replicas int

	// Memory keeps it in memory instead of files.
	Memory bool

	// MaxBytes is its greatest size. 0: that of the account.
	MaxBytes int64

	// Placement chooses the servers. nil: any.
	Placement *Placement
}

// Placement chooses servers.
type Placement struct {
	// The name of the cluster. Default: any
	Cluster string `json:"cluster,omitempty"`

	// What all the servers must have among their tags.
	Tags []string `json:"tags,omitempty"`
}

// replicasInCluster is how many servers of a cluster keep the bucket, if nobody
// says otherwise. A server by itself keeps it alone.
const replicasInCluster = 3

// config is the stream that makes up the bucket. It looks like what `nats kv add`
// makes, so that `nats kv` works with it.
func (b Bucket) config(k keyspace) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              k.stream,
		Description:       "Locks of Lock Gateway",
		Subjects:          []string{k.prefix + ">"},
		MaxMsgsPerSubject: 1,
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		Replicas:          cmp.Or(b.Replicas, replicasInCluster),
		MaxBytes:          -1,
		MaxMsgs:           -1,
		MaxMsgSize:        -1,
		MaxConsumers:      -1,
		DenyDelete:        true,
		AllowRollup:       true,
		AllowDirect:       true,
		AllowMsgTTL:       true,
		// Whoever follows a lock subscribes to this. A watcher of the bucket would
		// cost the servers a consumer, and be deaf for 17 seconds when the server
		// dies that has it.
		RePublish: &jetstream.RePublish{Source: k.allLocks(), Destination: k.news + ">"},
	}
	if b.Memory {
		c.Storage = jetstream.MemoryStorage
	}
	if b.MaxBytes > 0 {
		c.MaxBytes = b.MaxBytes
	}
	if b.Placement != nil {
		c.Placement = &jetstream.Placement{Cluster: b.Placement.Cluster, Tags: b.Placement.Tags}
	}
	return c
}

// attach makes sure that a new connection leads to a bucket which can be used, and
// has followers read what they may have missed.
func (s *Store) attach(ctx context.Context, l *link) error {
	if err := s.look(ctx, l); err != nil {
		return err
	}
	s.feed.attached()
	return nil
}

// look makes sure that the servers are new enough and that there is a bucket which
// can be used, and looks whether it is the one from before.
func (s *Store) look(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeout(ctx, s.requestTimeout())
	defer cancel()
	if err := checkVersion(l.conn.ConnectedServerVersion()); err != nil {
		return err
	}
	js, err := s.jetStream(l.conn)
	if err != nil {
		return fmt.Errorf("using JetStream: %w", err)
	}
	begun, asked := s.history.begin(), time.Now()
	wanted := s.options.Load().config(s.keys)
	stream, err := js.Stream(ctx, s.keys.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		asked = time.Now()
		stream, err = s.makeBucket(ctx, js, wanted)
	}
	if err != nil {
		return attachError(err)
	}
	info := stream.CachedInfo()
	if s.options.Load().Replicas == 0 && !clustered(info) {
		wanted.Replicas = 1
	}
	if err := s.checkBucket(&info.Config, wanted); err != nil {
		return err
	}
	if !info.TimeStamp.IsZero() {
		s.clock.set(info.TimeStamp, asked)
	}
	oneServer := info.Config.Replicas == 1
	s.oneServer.Store(oneServer)
	another, doubtful := s.history.saw(begun, info.Created, info.State.LastSeq, oneServer)
	if doubtful {
		if another, err = s.probe(ctx, l); err != nil {
			return fmt.Errorf("finding out whether the bucket has lost something: %w", err)
		}
	}
	if another {
		s.logger().Error("the bucket was made anew, or has lost what was written last; so are the locks that were in it",
			zap.String("stream", s.keys.stream))
		s.feed.attached()
	}
	return nil
}

// probe writes something, to learn whether the stream has lost its end: a leader that
// was deposed cannot acknowledge it.
func (s *Store) probe(ctx context.Context, l *link) (another bool, err error) {
	_, err = s.publishOn(ctx, l, removal(s.keys.gateway+s.keys.probe(), nil), s.requestTimeout())
	if errors.Is(err, errAnotherHistory) {
		return true, nil
	}
	return false, explain(err)
}

// makeBucket makes the bucket. Whether there is a cluster only its servers know: those
// that we connect to may be leaf nodes of them.
func (s *Store) makeBucket(ctx context.Context, js jetstream.JetStream, wanted jetstream.StreamConfig) (jetstream.Stream, error) {
	stream, err := js.CreateStream(ctx, wanted)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == codeNoCluster && s.options.Load().Replicas == 0 {
		wanted.Replicas = 1
		stream, err = js.CreateStream(ctx, wanted)
	}
	if err == nil {
		s.logger().Info("a bucket for locks was made", zap.String("stream", s.keys.stream), zap.Int("replicas", wanted.Replicas))
	}
	return stream, err
}

// clustered reports whether a stream is kept by servers of a cluster. One that is by
// itself names none, or, as a leaf node, itself.
func clustered(info *jetstream.StreamInfo) bool {
	c := info.Cluster
	return c != nil && c.Name != "" && c.Name != c.Leader
}

func (s *Store) jetStream(conn *nats.Conn) (jetstream.JetStream, error) {
	if domain := s.options.Load().Domain; domain != "" {
		return jetstream.NewWithDomain(conn, domain)
	}
	return jetstream.New(conn)
}

// attachError says which errors waiting does not cure.
func attachError(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return refusalf("NATS: nobody answers calls of JetStream: start the servers with it, or check the setting domain and the user's permissions")
	case errors.As(err, &api) && api.ErrorCode == codeNoPeers: // as yet: the cluster is starting
	case errors.As(err, &api) && api.Code >= 400 && api.Code < 500:
		return refusalf("looking for the bucket: %v", explain(err))
	}
	return fmt.Errorf("looking for the bucket: %w", explain(err))
}
