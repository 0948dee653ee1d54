package etcd

import (
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A cluster that compacts what a gateway is behind with ends thousands of watches at
// once. All are opened again; the log is told once.
func TestCompactedWatchesAreOpenedAnewAndLoggedOnce(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	s, err := Open(Options{
		Connection:     Connection{Endpoints: []string{"http://127.0.0.1:1"}, DialTimeout: time.Second},
		RequestTimeout: time.Second,
		ForgetAfter:    time.Hour,
		Logger:         zap.New(core),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const watches = 1000
	var f feed
	f.init(s)
	f.mu.Lock()
	for range watches {
		f.open(&watch{key: []byte("a")})
	}
	f.mu.Unlock()
	for id := range int64(watches) {
		if err := f.handle(&pb.WatchResponse{WatchId: id + 1, Canceled: true, CompactRevision: 7}); err != nil {
			t.Fatal(err)
		}
	}
	for id := range int64(watches) {
		if f.watches[id+1] != nil || f.watches[watches+id+1] == nil {
			t.Fatalf("watch %d is not opened under another ID", id+1)
		}
	}
	if n := logs.FilterMessageSnippet("compacted").Len(); n != 1 {
		t.Errorf("the log was told %d times", n)
	}
}
