package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
)

// clientLock is the mutex of etcd's Go client. Each locker needs a session of
// its own.
type clientLock struct{ mutex *concurrency.Mutex }

func (l clientLock) lock(ctx context.Context) error   { return l.mutex.Lock(ctx) }
func (l clientLock) unlock(ctx context.Context) error { return l.mutex.Unlock(ctx) }

// serviceLock is the lock service of etcd's servers. Each locker needs a lease
// of its own.
type serviceLock struct {
	service v3lockpb.LockClient
	name    string
	lease   int64
	key     []byte // while it is locked
}

func (l *serviceLock) lock(ctx context.Context) error {
	answer, err := l.service.Lock(ctx, &v3lockpb.LockRequest{Name: []byte(l.name), Lease: l.lease})
	l.key = answer.GetKey()
	return err
}

func (l *serviceLock) unlock(ctx context.Context) error {
	_, err := l.service.Unlock(ctx, &v3lockpb.UnlockRequest{Key: l.key})
	return err
}

// ownLocks returns a lock of the client's kind and one of the servers'. Their
// sessions last until the clients are closed.
func (e *etcdServers) ownLocks(ctx context.Context, lockers, n int) ([]ownLocks, error) {
	name := "/concurrency/" + newUUID()
	mutex, service := ownLocks{name: "concurrency.Mutex"}, ownLocks{name: "etcd's lock service"}
	for i := range lockers {
		client := e.clients[i%n]
		session, err := concurrency.NewSession(client)
		if err != nil {
			return nil, fmt.Errorf("a session for etcd's own locks: %w", errors.Join(err, ctx.Err()))
		}
		mutex.lockers = append(mutex.lockers, clientLock{concurrency.NewMutex(session, name)})
		service.lockers = append(service.lockers, &serviceLock{
			service: v3lockpb.NewLockClient(client.ActiveConnection()),
			name:    name + "/service",
			lease:   int64(session.Lease()),
		})
	}
	mutex.queued = func(ctx context.Context) (int64, error) {
		answer, err := e.clients[n-1].Get(ctx, name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return 0, err
		}
		return answer.Count - 1, nil // the first holds it
	}
	return []ownLocks{mutex, service}, nil
}
