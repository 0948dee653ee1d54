package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// feed has all watches of a store, on one stream with two goroutines, however
// many records are followed. (The client's own watches cost two goroutines each,
// and one round trip after the other when a stream breaks.)
//
// A watch is always opened from now on: etcd serves one from the past only every
// 100 ms. So whatever breaks, all watches of the stream are opened again, and
// their followers told that they may have missed something.
type feed struct {
	store *Store
	wake  chan struct{} // has room for one; tells the sender of requests

	warned time.Time // when the log was last told of a compaction; run's goroutine only

	mu       sync.Mutex // guards what follows
	started  bool
	closed   bool
	lastID   int64
	watches  map[int64]*watch
	serving  bool               // a stream is open
	requests []*pb.WatchRequest // that it is to be sent
	cut      context.CancelFunc // ends the stream, also one that is being opened
}

// watch is what one follower is told of.
type watch struct {
	key, end []byte // end is empty for one key
	filters  []pb.WatchCreateRequest_FilterType

	// opened and changed are called by the feed's goroutine, and do not block.
	opened  func()
	changed func([]*mvccpb.Event)

	// The feed's mu guards these.
	id     int64
	ended  bool
	unbind func() bool // takes back that the watch ends with a context
}

func (f *feed) init(s *Store) {
	f.store = s
	f.wake = make(chan struct{}, 1)
	f.watches = make(map[int64]*watch)
}

// follow opens a watch, until ctx is done.
func (f *feed) follow(ctx context.Context, w *watch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || !f.started && !f.store.run(f.run) {
		return
	}
	f.started = true
	f.open(w)
	w.unbind = context.AfterFunc(ctx, func() { f.leave(w) })
}

// open has a watch opened under an ID that the stream has not seen. Called with
// mu held.
func (f *feed) open(w *watch) {
	f.lastID++
	w.id = f.lastID
	f.watches[w.id] = w
	f.send(w.create())
}

func (w *watch) create() *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
		CreateRequest: &pb.WatchCreateRequest{Key: w.key, RangeEnd: w.end, Filters: w.filters, WatchId: w.id},
	}}
}

// send leaves a request to the stream's sender. Without a stream there is no need:
// the next one begins with all watches. Called with mu held.
func (f *feed) send(r *pb.WatchRequest) {
	if !f.serving {
		return
	}
	f.requests = append(f.requests, r)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *feed) leave(w *watch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	delete(f.watches, w.id)
	f.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
		CancelRequest: &pb.WatchCancelRequest{WatchId: w.id},
	}})
}

// close forgets all watches. It is called when the goroutine has ended.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, w := range f.watches {
		w.ended = true
		w.unbind()
	}
	clear(f.watches)
}

// reopen ends the stream, so that the next one is opened, on the connection that
// is then in force.
func (f *feed) reopen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut != nil {
		f.cut()
	}
}

// run keeps a stream open until the store is closed.
func (f *feed) run() {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		served, err := f.serve()
		if served {
			wait = firstRetry
		}
		if !sleep(f.store.ctx, wait) {
			return
		}
		if served {
			f.store.logger().Info("the watch on etcd broke and is opened anew; what may have been missed is read", zap.Error(err))
		}
	}
}

// serve opens a stream and all watches on it, and hands out what comes until the
// stream breaks. It reports whether anything came.
func (f *feed) serve() (served bool, err error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(f.store.ctx))
	f.mu.Lock()
	f.cut = cancel
	f.mu.Unlock()
	defer cancel()
	c, err := f.store.clients(ctx)
	if err != nil {
		return false, err
	}
	stream, err := c.watch.Watch(ctx, callOptions...)
	if err != nil {
		return false, explain(err)
	}
	f.mu.Lock()
	f.serving, f.requests = true, nil
	for _, w := range f.watches {
		f.send(w.create())
	}
	f.mu.Unlock()
	defer f.stopServing()
	var sender sync.WaitGroup
	sender.Go(func() { f.sendAll(ctx, stream) })
	defer sender.Wait()
	defer cancel() // which ends the sender
	for {
		response, err := stream.Recv()
		if err != nil {
			return served, explain(err)
		}
		served = true
		if err := f.handle(response); err != nil {
			return served, err
		}
	}
}

func (f *feed) stopServing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serving, f.requests = false, nil
}

// sendAll sends requests until ctx is done or the stream breaks, as its receiver
// learns by itself.
func (f *feed) sendAll(ctx context.Context, stream pb.Watch_WatchClient) {
	for {
		f.mu.Lock()
		requests := f.requests
		f.requests = nil
		f.mu.Unlock()
		for _, r := range requests {
			if stream.Send(r) != nil {
				return
			}
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return
		}
	}
}

// handle hands out a response. An error means that the stream is of no use.
func (f *feed) handle(r *pb.WatchResponse) error {
	f.mu.Lock()
	w := f.watches[r.GetWatchId()]
	compacted := w != nil && r.GetCanceled() && r.GetCompactRevision() != 0
	if compacted {
		// It was too slow for the cluster, which compacted what it had not sent.
		delete(f.watches, w.id)
		f.open(w)
		w = nil
	}
	f.mu.Unlock()
	if compacted {
		f.warnOfCompaction()
	}
	switch {
	case r.GetCanceled() && (w != nil || r.GetCreated()):
		// What ends one watch ends all: the token, or the permission.
		return fmt.Errorf("etcd ended a watch: %s", r.GetCancelReason())
	case w == nil:
		// Its follower has left.
	case r.GetCreated():
		w.opened()
	case len(r.GetEvents()) > 0:
		w.changed(r.GetEvents())
	}
	return nil
}

// warnEvery is how often the log is told of compactions, which may end all watches at
// once.
const warnEvery = time.Minute

func (f *feed) warnOfCompaction() {
	if time.Since(f.warned) < warnEvery {
		return
	}
	f.warned = time.Now()
	f.store.logger().Warn("etcd compacted events before this gateway had them; they are made up for by reading")
}
