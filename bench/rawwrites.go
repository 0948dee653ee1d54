package main

import (
	"context"
	"errors"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// rawValue is as long as the record of a lock that a gateway or two used.
var rawValue = strings.Repeat("v", 90)

// rawWriter makes the least transaction that could keep a lock, one after the
// other, on a key of its own: what anything that is kept in etcd has to pay.
type rawWriter struct {
	client   *clientv3.Client
	key      string
	revision int64
}

func newRawWriter(client *clientv3.Client) *rawWriter {
	return &rawWriter{client: client, key: "/raw-writes/lock/1/" + newUUID()}
}

func (w *rawWriter) write(ctx context.Context) error {
	answer, err := w.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(w.key), "=", w.revision)).
		Then(clientv3.OpPut(w.key, rawValue)).
		Else(clientv3.OpGet(w.key)).
		Commit()
	if err != nil {
		return err
	}
	if !answer.Succeeded {
		return errors.New("somebody else writes this key")
	}
	w.revision = answer.Header.Revision
	return nil
}

// rawRelay is the least that a handoff from one gateway to another could take:
// one writes, the other hears of it and writes, too.
type rawRelay struct {
	from, to *rawWriter
	heard    clientv3.WatchChan
}

func newRawRelay(ctx context.Context, from, to *clientv3.Client) (*rawRelay, error) {
	r := &rawRelay{from: newRawWriter(from), to: newRawWriter(to)}
	r.heard = to.Watch(clientv3.WithRequireLeader(ctx), r.from.key, clientv3.WithCreatedNotify())
	return r, r.hear(ctx) // that it was created
}

func (r *rawRelay) hear(ctx context.Context) error {
	select {
	case response, open := <-r.heard:
		if !open {
			return errors.New("the watch has ended")
		}
		return response.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *rawRelay) pass(ctx context.Context, _ int) (time.Duration, error) {
	answered := begin(ctx, func(ctx context.Context) error {
		if err := r.hear(ctx); err != nil {
			return err
		}
		return r.to.write(ctx)
	})
	sent := time.Now()
	if err := r.from.write(ctx); err != nil {
		return 0, err
	}
	at, err := answered()
	return at.Sub(sent), err
}
