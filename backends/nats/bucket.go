package nats

import (
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
// says otherwise.
const replicasInCluster = 3

// config is the stream that makes up the bucket. It looks like what `nats kv add`
// makes, so that `nats kv` works with it.
func (b Bucket) config(k keyspace, clustered bool) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              k.stream,
		Description:       "Locks of Lock Gateway",
		Subjects:          []string{k.prefix + ">"},
		MaxMsgsPerSubject: 1,
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		Replicas:          b.replicas(clustered),
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

func (b Bucket) replicas(clustered bool) int {
	switch {
	case b.Replicas > 0:
		return b.Replicas
	case clustered:
		return replicasInCluster
	default:
		return 1
	}
}

// attach makes sure that the servers are new enough and that there is a bucket
// which can be used, and looks whether it is the one from before.
func (s *Store) attach(ctx context.Context, conn *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.requestTimeout())
	defer cancel()
	if err := checkVersion(conn.ConnectedServerVersion()); err != nil {
		return err
	}
	js, err := s.jetStream(conn)
	if err != nil {
		return fmt.Errorf("using JetStream: %w", err)
	}
	begun, asked := s.history.begin(), time.Now()
	wanted := s.options.Load().config(s.keys, conn.ConnectedClusterName() != "")
	stream, err := js.Stream(ctx, s.keys.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		asked = time.Now()
		if stream, err = js.CreateStream(ctx, wanted); err == nil {
			s.logger().Info("a bucket for locks was made", zap.String("stream", s.keys.stream), zap.Int("replicas", wanted.Replicas))
		}
	}
	if err != nil {
		return attachError(err)
	}
	info := stream.CachedInfo()
	if err := s.checkBucket(&info.Config, wanted); err != nil {
		return err
	}
	if !info.TimeStamp.IsZero() {
		s.clock.set(info.TimeStamp, asked)
	}
	if s.history.saw(begun, info.Created, info.State.LastSeq) {
		s.logger().Error("the bucket was made anew, or has lost what was written last; so are the locks that were in it",
			zap.String("stream", s.keys.stream))
	}
	s.feed.attached()
	return nil
}

func (s *Store) jetStream(conn *nats.Conn) (jetstream.JetStream, error) {
	if domain := s.options.Load().Domain; domain != "" {
		return jetstream.NewWithDomain(conn, domain)
	}
	return jetstream.New(conn)
}

// noPeers is "no suitable peers for placement".
const noPeers jetstream.ErrorCode = 10005

// attachError says which errors waiting does not cure.
func attachError(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return refusalf("NATS: nobody answers calls of JetStream: start the servers with it, or check the setting domain and the user's permissions")
	case errors.As(err, &api) && api.ErrorCode == noPeers: // as yet: the cluster is starting
	case errors.As(err, &api) && api.Code >= 400 && api.Code < 500:
		return refusalf("looking for the bucket: %v", explain(err))
	}
	return fmt.Errorf("looking for the bucket: %w", explain(err))
}
