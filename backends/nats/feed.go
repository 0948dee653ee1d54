package nats

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/lockgateway/lockgateway/backends/replicated"
)

// roomForNews is how much news may wait to be handed out. What finds no room is
// lost, and its followers are told that they missed something.
const roomForNews = 8192

// feed has all subscriptions of a store: one for each lock that is followed, so that
// others cost nothing. All send to one channel. Two goroutines that end with the
// store serve it: one subscribes, one hands out the news.
type feed struct {
	store *Store
	news  chan *nats.Msg
	wake  chan struct{} // has room for one; tells the one that subscribes

	mu     sync.Mutex // guards what follows
	closed bool
	topics map[string]*topic  // by subject
	link   *link              // that they are subscribed to on,
	behind map[*topic]bool    // all but these
	fresh  map[*follower]bool // are to be told that they may have missed something
	again  bool               // all are
	idle   []*nats.Subscription
}

// topic is a lock that is followed. The feed's mu guards it.
type topic struct {
	subject      string
	subscription *nats.Subscription // the last; nil: none yet
	followers    []*follower        // another slice with each change
}

func (f *feed) init(s *Store) {
	f.store = s
	f.news = make(chan *nats.Msg, roomForNews)
	f.wake = make(chan struct{}, 1)
	f.topics = make(map[string]*topic)
	f.behind = make(map[*topic]bool)
	f.fresh = make(map[*follower]bool)
}

// follow tells a follower of news, until its context is done.
func (f *feed) follow(subject string, w *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	t := f.topics[subject]
	if t == nil {
		t = &topic{subject: subject}
		f.topics[subject] = t
		f.behind[t] = true
	}
	w.topic = t
	t.followers = append(append([]*follower(nil), t.followers...), w)
	f.fresh[w] = true
	w.unbind = context.AfterFunc(w.ctx, func() { f.leave(w) })
	f.kick()
}

func (f *feed) leave(w *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := w.topic
	var others []*follower
	for _, other := range t.followers {
		if other != w {
			others = append(others, other)
		}
	}
	t.followers = others
	delete(f.fresh, w)
	if len(others) > 0 || f.topics[t.subject] != t {
		return
	}
	delete(f.topics, t.subject)
	delete(f.behind, t)
	if t.subscription != nil {
		f.idle = append(f.idle, t.subscription)
		f.kick()
	}
}

// kick wakes the goroutine that subscribes.
func (f *feed) kick() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// attached is called when a connection was found to lead to a bucket that can be
// used. Followers may have missed something before.
func (f *feed) attached() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.again = true
	f.kick()
}

// missed is called when news of a subject found no room.
func (f *feed) missed(subject string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.topics[subject]; t != nil {
		for _, w := range t.followers {
			f.fresh[w] = true
		}
		f.kick()
	}
}

// subscribe keeps the topics subscribed to, until the store is closed.
func (f *feed) subscribe() {
	ctx := f.store.ctx
	for wait := firstRetry; ; {
		select {
		case <-f.wake:
		case <-ctx.Done():
			return
		}
		_, l, err := f.store.link(ctx)
		if err == nil {
			err = f.subscribeOn(ctx, l)
		}
		if err == nil {
			wait = firstRetry
			continue
		}
		f.kick()
		if !sleep(ctx, wait) {
			return
		}
		wait = min(2*wait, lastRetry)
	}
}

// subscribeOn subscribes to what is not subscribed to, waits until the server knows,
// and tells followers to read.
func (f *feed) subscribeOn(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeout(ctx, f.store.requestTimeout())
	defer cancel()
	topics, told, idle := f.todo(l)
	for _, s := range idle {
		_ = s.Unsubscribe() // else its connection has gone, and it, too
	}
	var err error
	for len(topics) > 0 && err == nil {
		var s *nats.Subscription
		if s, err = l.conn.ChanSubscribe(topics[0].subject, f.news); err == nil {
			f.subscribed(topics[0], s)
			topics = topics[1:]
		}
	}
	if err == nil && len(told) > 0 {
		err = l.conn.FlushWithContext(ctx)
	}
	if err != nil {
		f.undone(topics, told)
		return explain(err)
	}
	for _, w := range told {
		w.tell(replicated.Event{Missed: true})
	}
	return nil
}

// todo returns the topics that are to be subscribed to on a link, the followers that
// are to be told then, and what is to be unsubscribed. What it costs is in proportion
// to these.
func (f *feed) todo(l *link) (topics []*topic, told []*follower, idle []*nats.Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.link != l {
		topics = slices.AppendSeq(topics, maps.Values(f.topics))
	} else {
		topics = slices.AppendSeq(topics, maps.Keys(f.behind))
	}
	if f.again {
		for _, t := range f.topics {
			told = append(told, t.followers...)
		}
	} else {
		told = slices.AppendSeq(told, maps.Keys(f.fresh))
	}
	idle = f.idle
	clear(f.behind)
	clear(f.fresh)
	f.link, f.again, f.idle = l, false, nil
	return topics, told, idle
}

func (f *feed) subscribed(t *topic, s *nats.Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.subscription = s
	if f.topics[t.subject] != t { // all have left
		f.idle = append(f.idle, s)
		f.kick()
	}
}

// undone takes back what todo returned, but for those who have left.
func (f *feed) undone(topics []*topic, told []*follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range topics {
		if f.topics[t.subject] == t {
			f.behind[t] = true
		}
	}
	for _, w := range told {
		if w.ctx.Err() == nil {
			f.fresh[w] = true
		}
	}
}

// deliver hands out news until the store is closed.
func (f *feed) deliver() {
	for {
		select {
		case m := <-f.news:
			f.handOut(m)
		case <-f.store.ctx.Done():
			return
		}
	}
}

func (f *feed) handOut(m *nats.Msg) {
	f.mu.Lock()
	var followers []*follower
	if t := f.topics[m.Subject]; t != nil {
		followers = t.followers
	}
	f.mu.Unlock()
	e := event(m)
	for _, w := range followers {
		w.tell(e)
	}
}

// close forgets all followers. It is called when the goroutines have ended.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, t := range f.topics {
		for _, w := range t.followers {
			w.unbind()
		}
	}
	clear(f.topics)
}
