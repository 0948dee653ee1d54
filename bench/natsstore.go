package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/nats"
	"github.com/lockgateway/lockgateway/backends/replicated"
)

const (
	natsBucket = nats.DefaultBucket
	natsStream = "KV_" + natsBucket

	// Keys of raw writes. The stream publishes again what is below the second, as
	// the gateways' locks are, and where.
	rawKeys   = "raw-writes."
	heardKeys = "locks."
	heardNews = "lockgateway." + natsBucket + "."
)

func (s *natsServers) goals() storeGoals {
	return storeGoals{
		uncontended:     atLeast(0.65),
		uncontendedP50:  atMost(1.5),
		semaphore:       atLeast(2),
		semaphoreAcross: atLeast(0.3),
	}
}

func (s *natsServers) requestTimeout() time.Duration { return nats.DefaultRequestTimeout }

// open lets gateways begin at one server each, which may or may not lead the
// stream.
func (s *natsServers) open(i int, forgetAfter time.Duration) (replicated.Store, error) {
	return nats.Open(nats.Options{
		Connection: nats.Connection{
			Servers:     []string{s.urls[i%len(s.urls)]},
			DialTimeout: nats.DefaultDialTimeout,
		},
		Name:           natsBucket,
		RequestTimeout: nats.DefaultRequestTimeout,
		SessionTTL:     nats.DefaultSessionTTL,
		ForgetAfter:    forgetAfter,
		Logger:         zap.NewNop(),
	})
}

func (s *natsServers) newWriter(i int) rawWriter { return natsWriter(s.kv[i], rawKeys+newUUID()) }

// natsWriter updates a key of the bucket.
func natsWriter(kv jetstream.KeyValue, key string) rawWriter {
	var revision uint64
	value := []byte(rawValue)
	return func(ctx context.Context) error {
		for {
			next, err := kv.Update(ctx, key, value, revision)
			var refusal *jetstream.APIError
			switch {
			case err == nil:
				revision = next
				return nil
			case !errors.As(err, &refusal):
				return err
			case refusal.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
				return errOtherWriter
			case refusal.ErrorCode != stillWriting:
				return err
			}
		}
	}
}

// stillWriting is the code with which a cluster refuses a write at times, since it
// has not yet noted that the last one is done, of which it has told already.
const stillWriting = 10164

// newRelay hears as gateways do. A watcher would cost a consumer.
func (s *natsServers) newRelay(context.Context) (*rawRelay, error) {
	key := newUUID()
	heard, err := s.conns[1].SubscribeSync(heardNews + key)
	if err != nil {
		return nil, err
	}
	return &rawRelay{
		from: natsWriter(s.kv[0], heardKeys+key),
		to:   s.newWriter(1),
		hear: func(ctx context.Context) error {
			_, err := heard.NextMsgWithContext(ctx)
			return err
		},
	}, s.conns[1].Flush() // until the server knows
}

// ownLocks returns none: NATS has none.
func (s *natsServers) ownLocks(context.Context, int, int) ([]ownLocks, error) { return nil, nil }

// kept is the bucket.
func (s *natsServers) kept(ctx context.Context) (k kept, err error) {
	js, err := jetstream.New(s.conns[0])
	if err != nil {
		return k, err
	}
	stream, err := js.Stream(ctx, natsStream)
	if err != nil {
		return k, fmt.Errorf("looking at the bucket: %w", err)
	}
	state := stream.CachedInfo().State
	return kept{records: int64(state.Msgs), size: int64(state.Bytes)}, nil
}

// tidy does nothing: the bucket keeps one message of each key.
func (s *natsServers) tidy(context.Context) error { return nil }
