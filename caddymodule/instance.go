package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/lockgateway/lockgateway/lock"
)

// backendNamespace is where the guest modules are that open backends.
const backendNamespace = "http.lock_gateway.backends."

// Opener is what a guest module in the namespace http.lock_gateway.backends
// implements. Its configuration is complete once it is provisioned.
type Opener interface {
	caddy.Module

	// DataName names the data that the configuration stands for, and nothing
	// else of it: handlers whose backends have the same module and data name
	// share one open backend, also across config reloads.
	DataName() string

	// Open opens the backend. It must not wait for anything outside of the
	// process: Caddy calls it while it loads a config.
	Open() (lock.Backend, error)

	// Configure applies the settings to a backend that an Opener of the same
	// module and data name has opened.
	Configure(backend lock.Backend)
}

// instances are the open backends, by module and data name. The pool's
// references are the handlers of all configs that are loaded.
var instances = caddy.NewUsagePool()

// opened are the instances of the pool that are whole, by the pool's key. To walk the
// pool itself is to wait for whoever opens a backend; and that may wait for whoever
// collects metrics, and walks.
var opened sync.Map

// instance is an open backend and those who use it. It is closed when the last
// handler and the last request are done with it.
type instance struct {
	key     string // in the pool
	backend lock.Backend
	module  string // of the backend: memory, etcd or nats
	meters  *meters
	limitLog

	// requests counts the requests under way, and one more while there are
	// handlers. Once it is 0 the backend is closed.
	requests atomic.Int64

	// waiting counts the acquires under way that may wait.
	waiting atomic.Int64

	// orphaned says that no loaded config has the backend any more.
	orphaned atomic.Bool

	mu   sync.Mutex // guards uses
	uses []*use     // by handlers, oldest first
}

// use is a handler's share in an instance.
type use struct {
	instance  *instance
	handler   *Handler
	key       string
	config    any // tells one loaded config from another
	opener    Opener
	settings  string // the opener's configuration as JSON
	byDefault bool   // the handler names no backend, and takes what settings there are
}

// openInstance takes a share in the backend that opener stands for, opening it
// if it is the first. Within one config settings must not differ.
func (h *Handler) openInstance(ctx caddy.Context, opener Opener, byDefault bool) (*use, error) {
	settings, err := json.Marshal(opener)
	if err != nil {
		return nil, err
	}
	u := &use{
		handler: h,
		key:     string(opener.CaddyModule().ID) + " " + opener.DataName(),
		// Each load of a config has a registry of its own.
		config:    ctx.GetMetricsRegistry(),
		opener:    opener,
		settings:  string(settings),
		byDefault: byDefault,
	}
	value, _, err := instances.LoadOrNew(u.key, func() (caddy.Destructor, error) {
		backend, err := opener.Open()
		if err != nil {
			return nil, err
		}
		module := moduleName(opener)
		i := &instance{key: u.key, backend: backend, module: module, meters: metersOf(module)}
		i.requests.Store(1)
		opened.Store(u.key, i)
		return i, nil
	})
	if err != nil {
		return nil, err
	}
	u.instance = value.(*instance)
	if err := u.instance.add(u); err != nil {
		_, deleteErr := instances.Delete(u.key)
		return nil, errors.Join(err, deleteErr)
	}
	return u, nil
}

func (i *instance) add(u *use) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, other := range i.uses {
		if other.config == u.config && !other.byDefault && !u.byDefault && other.settings != u.settings {
			return fmt.Errorf("two handlers of this config share the locks of %q and give different settings; make them equal, or name other data", u.key)
		}
	}
	i.uses = append(i.uses, u)
	i.configure()
	return nil
}

// end gives the share up.
func (u *use) end() error {
	i := u.instance
	i.mu.Lock()
	i.uses = slices.DeleteFunc(i.uses, func(other *use) bool { return other == u })
	i.configure()
	i.mu.Unlock()
	_, err := instances.Delete(u.key)
	return err
}

// configure applies the settings of the oldest config: those that some handler of
// it gives, or else the defaults. While a config is being loaded the one before is
// the oldest, and stays so if the load fails; if not, its handlers end at once.
// Called with mu held.
func (i *instance) configure() {
	if len(i.uses) == 0 {
		return
	}
	inForce := i.uses[0]
	for _, u := range i.uses {
		if u.config == inForce.config && !u.byDefault {
			inForce = u
		}
	}
	inForce.opener.Configure(i.backend)
}

// enter counts a request as a user. It reports false if the backend is closed:
// the request is one of a config that is gone.
func (i *instance) enter() bool {
	for {
		n := i.requests.Load()
		if n == 0 {
			return false
		}
		if i.requests.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave ends what enter began. The last to leave closes the backend.
func (i *instance) leave() error {
	if i.requests.Add(-1) == 0 {
		return i.backend.Close()
	}
	return nil
}

// Destruct implements caddy.Destructor: no loaded config has the backend any
// more. What requests of earlier configs acquired could be released by nobody,
// so those that wait are told, and no more is granted; the others finish.
func (i *instance) Destruct() error {
	opened.CompareAndDelete(i.key, i)
	i.orphaned.Store(true)
	i.backend.Drain()
	return i.leave()
}

// drainIfExiting ends all waiting when the process exits. It runs when a server
// shuts down, which a config reload does as well. Waiters of earlier configs
// must end too: the servers they came through have shut down long ago, and
// Caddy waits for them without end. One call reaches the waiters of all backends.
func drainIfExiting() {
	if !caddy.Exiting() {
		return
	}
	opened.Range(func(_, value any) bool {
		value.(*instance).backend.Drain()
		return true
	})
}
