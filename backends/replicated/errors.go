package replicated

import (
	"fmt"

	"github.com/lockgateway/lockgateway/lock"
)

var (
	// errPlaceLost is the answer to waiters whose place went with a session.
	errPlaceLost = fmt.Errorf("%w: the session with the store ended, and the place in the queue with it", lock.ErrUnavailable)

	// errSilent is the answer to requests that were in no swap when their time
	// was up.
	errSilent = fmt.Errorf("%w: the store did not answer in time", lock.ErrUnavailable)

	// errNoSession is what is wrong while there is none.
	errNoSession = fmt.Errorf("%w: this instance has no session with the store now, so nobody can be queued", lock.ErrUnavailable)

	// errSlotExpired is the answer to a grant whose time ran out before it could
	// be told.
	errSlotExpired = fmt.Errorf("%w: the slot expired before the answer", lock.ErrUnavailable)
)

// tooLarge is the answer to an acquire that the record has no room for.
var tooLarge = &lock.LimitError{Limit: "record size in bytes", Max: maxRecordSize}
