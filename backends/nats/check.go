package nats

import (
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// leastMessageSize has room for the largest record, and its headers.
const leastMessageSize = 128 << 10

// checkBucket refuses a bucket that would lose locks, and warns of one that serves
// worse than was asked for. (What the servers do with writes before they are on disk
// is theirs: no client can see it.)
func (s *Store) checkBucket(have *jetstream.StreamConfig, want jetstream.StreamConfig) error {
	var problems []string
	for _, c := range []struct {
		wrong   bool
		problem string
	}{
		{have.MaxMsgsPerSubject != 1, "history must be 1: what an expired key was before would come back"},
		{have.MaxAge > 0, "max_age (ttl) discards locks that are held; it must be 0"},
		{have.SubjectDeleteMarkerTTL > 0, "subject_delete_marker_ttl must be 0: a marker of the server can destroy a newer write that was acknowledged"},
		{!have.AllowMsgTTL, "allow_msg_ttl must be true, for sessions and holders that expire"},
		{have.Discard != jetstream.DiscardNew, "discard must be new: old would discard locks that are held when the bucket is full"},
		{have.DiscardNewPerSubject, "discard_new_per_subject must be false: no lock could change"},
		{have.Retention != jetstream.LimitsPolicy, "retention must be limits: others discard what a consumer has read"},
		{have.Mirror != nil || len(have.Sources) > 0, "it is a mirror of others, or has sources"},
		{!slices.Equal(have.Subjects, want.Subjects), "subjects must be " + want.Subjects[0] + " alone"},
		{have.SubjectTransform != nil, "subject_transform must not be set"},
		{have.Sealed, "it is sealed"},
		{have.NoAck, "no_ack must be false"},
		{have.AllowMsgCounter, "allow_msg_counter must be false"},
		{have.PersistMode == jetstream.AsyncPersistMode, "persist_mode must not be async: writes would be acknowledged before they are made"},
		{have.MaxMsgSize > 0 && have.MaxMsgSize < leastMessageSize, "max_msg_size must be 128 KiB or more"},
	} {
		if c.wrong {
			problems = append(problems, c.problem)
		}
	}
	if len(problems) > 0 {
		return refusalf("the bucket cannot keep locks: stream %s: %s", s.keys.stream, strings.Join(problems, "; "))
	}
	if r := have.RePublish; r == nil || r.Source != want.RePublish.Source || r.Destination != want.RePublish.Destination || r.HeadersOnly {
		s.warn("the bucket does not publish changes again, so that waiters are woken after a second or two only; it should have"+
			" --republish-source and --republish-destination", zap.String("source", want.RePublish.Source), zap.String("destination", want.RePublish.Destination))
	}
	if have.Replicas < want.Replicas {
		s.warn("the bucket has fewer replicas than it should", zap.Int("has", have.Replicas), zap.Int("should", want.Replicas))
	}
	if have.Storage == jetstream.MemoryStorage {
		s.warn("the bucket is in memory: its locks are lost when its servers stop at the same time")
	}
	return nil
}

// warnEvery is how often the log is told the same at most that may recur.
const warnEvery = time.Minute

// warnAgain tells the log, but not too often.
func (s *Store) warnAgain(text string) {
	if told, ok := s.warned.Load(text); ok && time.Since(told.(time.Time)) < warnEvery {
		return
	}
	s.warned.Delete(text)
	s.warn(text)
}

// warn tells the log once.
func (s *Store) warn(text string, fields ...zap.Field) {
	if _, told := s.warned.LoadOrStore(text, time.Now()); !told {
		s.logger().Warn(text, append(fields, zap.String("stream", s.keys.stream))...)
	}
}
