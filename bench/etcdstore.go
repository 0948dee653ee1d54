package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/backends/etcd"
	"github.com/lockgateway/lockgateway/backends/replicated"
)

// rawValue is as long as the record of a lock that a gateway or two used.
var rawValue = strings.Repeat("v", 90)

func (e *etcdServers) goals() storeGoals {
	return storeGoals{
		uncontended:     atLeast(0.9),
		uncontendedP50:  atMost(1.15),
		mutex:           atLeast(0.7),
		semaphore:       atLeast(4),
		semaphoreAcross: atLeast(0.8),
	}
}

func (e *etcdServers) open(_ int, forgetAfter time.Duration) (replicated.Store, error) {
	return etcd.Open(etcd.Options{
		Connection: etcd.Connection{
			Endpoints:        e.endpoints,
			DialTimeout:      etcd.DefaultDialTimeout,
			KeepAliveTime:    etcd.DefaultKeepAliveTime,
			KeepAliveTimeout: etcd.DefaultKeepAliveTimeout,
		},
		Prefix:         etcd.DefaultPrefix,
		RequestTimeout: etcd.DefaultRequestTimeout,
		SessionTTL:     etcd.DefaultSessionTTL,
		ForgetAfter:    forgetAfter,
		Logger:         zap.NewNop(),
	})
}

func (e *etcdServers) requestTimeout() time.Duration { return etcd.DefaultRequestTimeout }

func (e *etcdServers) newWriter(i int) rawWriter { return etcdWriter(e.clients[i], newEtcdKey()) }

func newEtcdKey() string { return "/raw-writes/lock/1/" + newUUID() }

// etcdWriter makes transactions.
func etcdWriter(client *clientv3.Client, key string) rawWriter {
	var revision int64
	return func(ctx context.Context) error {
		answer, err := client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
			Then(clientv3.OpPut(key, rawValue)).
			Else(clientv3.OpGet(key)).
			Commit()
		if err != nil {
			return err
		}
		if !answer.Succeeded {
			return errOtherWriter
		}
		revision = answer.Header.Revision
		return nil
	}
}

func (e *etcdServers) newRelay(ctx context.Context) (*rawRelay, error) {
	key := newEtcdKey()
	heard := e.clients[1].Watch(clientv3.WithRequireLeader(ctx), key, clientv3.WithCreatedNotify())
	r := &rawRelay{from: etcdWriter(e.clients[0], key), to: e.newWriter(1), hear: func(ctx context.Context) error {
		select {
		case response, open := <-heard:
			if !open {
				return errors.New("the watch has ended")
			}
			return response.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	return r, r.hear(ctx) // that the watch was created
}

// tidy drops all revisions but the latest, and returns when they are gone.
func (e *etcdServers) tidy(ctx context.Context) error {
	latest, err := e.clients[0].Get(ctx, "any")
	if err == nil {
		_, err = e.clients[0].Compact(ctx, latest.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) { // nothing was written since the last time
		return fmt.Errorf("compacting: %w", err)
	}
	return nil
}

// kept counts keys, and what of the database is in use, without what is free in its
// file.
func (e *etcdServers) kept(ctx context.Context) (k kept, err error) {
	client := e.clients[0]
	counted, err := client.Get(ctx, etcd.DefaultPrefix+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return k, err
	}
	sleep(ctx, time.Second) // until a compaction's own pages are free
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		return k, err
	}
	return kept{records: counted.Count, size: status.DbSizeInUse}, nil
}
