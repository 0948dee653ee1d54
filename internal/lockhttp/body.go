package lockhttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// What a request's body may have at most. No operation has one, but some
// clients send one all the same.
const (
	maxBody     = 64 << 10
	bodyTimeout = 5 * time.Second
)

// DrainBody reads the body away, up to 64 KiB and 5 seconds of it, or says why
// not. That must be done before waiting: the server does not notice that a
// client has gone while there is a body to be read.
func DrainBody(w http.ResponseWriter, r *http.Request) *Problem {
	if r.ContentLength == 0 {
		return nil
	}
	if r.ContentLength > maxBody {
		return tooMuchBody(w, r, fmt.Sprintf("the request's body has %d bytes", r.ContentLength))
	}
	// On HTTP/3 a request without a body has an unknown length too; its end is
	// there already.
	control := http.NewResponseController(w)
	// Where deadlines are not supported the server's own time-outs bound it.
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	n, err := io.CopyN(io.Discard, r.Body, maxBody+1)
	switch {
	case n > maxBody:
		return tooMuchBody(w, r, "the request's body is too long")
	case errors.Is(err, io.EOF):
		_ = control.SetReadDeadline(time.Time{})
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooMuchBody(w, r, fmt.Sprintf("the request's body did not arrive within %v", bodyTimeout))
	default:
		return tooMuchBody(w, r, "the request's body could not be read")
	}
}

// tooMuchBody refuses a request whose body stays unread, with which its
// connection can serve no other.
func tooMuchBody(w http.ResponseWriter, r *http.Request, what string) *Problem {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	return badRequest(fmt.Errorf("%s; none is expected, and at most %d bytes are ignored", what, maxBody))
}
