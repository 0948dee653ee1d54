package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// Follow tells of a record's latest change, and, whenever the watch was opened
// anew, that some may have been missed.
func (s *Store) Follow(ctx context.Context, key string, notify func(replicated.Event)) {
	s.feed.follow(ctx, &watch{
		key: s.keys.lock(key),
		opened: func() {
			if ctx.Err() == nil {
				notify(replicated.Event{Missed: true})
			}
		},
		changed: func(events []*mvccpb.Event) {
			if ctx.Err() == nil {
				notify(event(events[len(events)-1]))
			}
		},
	})
}

// event is what a change means to a follower. Deletion is of idle records only;
// which revision it has does not matter, so the follower may as well read.
func event(e *mvccpb.Event) replicated.Event {
	if e.GetType() == mvccpb.Event_DELETE {
		return replicated.Event{Missed: true}
	}
	return replicated.Event{Entry: replicated.Entry{
		Value:    e.GetKv().GetValue(),
		Revision: uint64(e.GetKv().GetModRevision()),
	}}
}

// FollowSessions watches for the keys of sessions that are deleted.
func (s *Store) FollowSessions(ctx context.Context, ended func(replicated.SessionID)) {
	s.feed.follow(ctx, &watch{
		key:     []byte(s.keys.sessions),
		end:     []byte(clientv3.GetPrefixRangeEnd(s.keys.sessions)),
		filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT},
		opened:  func() {},
		changed: func(events []*mvccpb.Event) {
			for _, e := range events {
				if id, err := s.keys.sessionID(e.GetKv().GetKey()); err == nil && ctx.Err() == nil {
					ended(id)
				}
			}
		},
	})
}
