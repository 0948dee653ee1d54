package etcd

import (
	"context"
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// pageLength is how many keys are read at a time.
const pageLength = 500

// Records reads the keys of all locks in their order, each page as it is then: at one
// revision for all pages, that could be compacted meanwhile.
func (s *Store) Records(ctx context.Context, yield func(string, replicated.Entry) bool) error {
	err := s.list(ctx, s.keys.locks, func(kv *mvccpb.KeyValue) bool {
		key := strings.TrimPrefix(string(kv.GetKey()), s.keys.locks)
		return yield(key, replicated.Entry{Value: kv.GetValue(), Revision: uint64(kv.GetModRevision())})
	})
	if err != nil {
		return fmt.Errorf("listing the records: %w", err)
	}
	return nil
}

// Sessions reads the keys of all sessions.
func (s *Store) Sessions(ctx context.Context) (sessions []replicated.SessionInfo, err error) {
	err = s.list(ctx, s.keys.sessions, func(kv *mvccpb.KeyValue) bool {
		if id, err := s.keys.sessionID(kv.GetKey()); err == nil {
			sessions = append(sessions, replicated.SessionInfo{ID: id, Description: string(kv.GetValue())})
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("listing the sessions: %w", err)
	}
	return sessions, nil
}

// list yields the keys that begin so, until yield returns false.
func (s *Store) list(ctx context.Context, prefix string, yield func(*mvccpb.KeyValue) bool) error {
	page := &pb.RangeRequest{
		Key:      []byte(prefix),
		RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix)),
		Limit:    pageLength,
	}
	for {
		var answer *pb.RangeResponse
		err := s.call(ctx, func(ctx context.Context, c *clients) (err error) {
			begun := s.history.begin()
			if answer, err = c.kv.Range(ctx, page, callOptions...); err == nil {
				s.history.check(begun, answer.GetHeader())
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, kv := range answer.GetKvs() {
			if !yield(kv) {
				return nil
			}
			page.Key = append(kv.GetKey(), 0) // the first key after it
		}
		if !answer.GetMore() {
			return nil
		}
	}
}
