package lockhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/lockgateway/lockgateway/lock"
)

const (
	contentJSON    = "application/json"
	contentProblem = "application/problem+json"
)

// The success bodies that never vary.
var (
	notAcquiredBody = []byte(`{"acquired":false}`)
	releasedBody    = []byte(`{"released":true}`)
	notReleasedBody = []byte(`{"released":false}`)
	resetBody       = []byte(`{"reset":true}`)
	freshBody       = []byte(`{}`)
)

// bodies holds buffers for the bodies that vary.
var bodies = sync.Pool{New: func() any {
	b := make([]byte, 0, 128)
	return &b
}}

// WriteAcquired answers an acquire. With confirm it flushes a grant, and returns
// the error of the connection if it can be seen: a handler around ours that
// buffers whole answers hides it.
func WriteAcquired(w http.ResponseWriter, res lock.AcquireResult, confirm bool) error {
	if !res.Acquired {
		writeBody(w, notAcquiredBody)
		return nil
	}
	buffer := bodies.Get().(*[]byte)
	defer bodies.Put(buffer)
	b := (*buffer)[:0]
	b = append(b, `{"acquired":true,"value":`...)
	b = strconv.AppendInt(b, res.Value, 10)
	if res.Token != 0 {
		b = append(b, `,"token":`...)
		b = strconv.AppendUint(b, res.Token, 10)
	}
	if res.ExpiresIn > 0 {
		b = append(b, `,"expiresInMs":`...)
		b = strconv.AppendInt(b, res.ExpiresIn.Milliseconds(), 10)
	}
	b = append(b, '}')
	*buffer = b
	setHeaders(w.Header(), contentJSON, len(b))
	if _, err := w.Write(b); err != nil {
		return err
	}
	if !confirm {
		return nil
	}
	// Only flushing tells whether the connection takes the answer; until then
	// it is in a buffer. On HTTP/1.1 it costs no extra packet, since the answer is
	// complete.
	if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// WriteReleased answers a release.
func WriteReleased(w http.ResponseWriter, released bool) {
	if released {
		writeBody(w, releasedBody)
	} else {
		writeBody(w, notReleasedBody)
	}
}

// WriteReset answers a reset.
func WriteReset(w http.ResponseWriter) { writeBody(w, resetBody) }

// WriteHealthy answers 200 to the question whether the process is live or ready.
func WriteHealthy(w http.ResponseWriter, question string) {
	writeBody(w, encode(map[string]bool{question: true}))
}

// WriteValue answers a value request.
func WriteValue(w http.ResponseWriter, v lock.Value, detail bool) {
	switch {
	case detail:
		writeBody(w, detailBody(v))
	case v.Fresh:
		writeBody(w, freshBody)
	default:
		buffer := bodies.Get().(*[]byte)
		defer bodies.Put(buffer)
		b := (*buffer)[:0]
		b = append(b, `{"value":`...)
		b = strconv.AppendInt(b, v.Held, 10)
		b = append(b, '}')
		*buffer = b
		writeBody(w, b)
	}
}

func detailBody(v lock.Value) []byte {
	type holder struct {
		Holder      string `json:"holder"`
		Token       uint64 `json:"token"`
		ExpiresInMs *int64 `json:"expiresInMs,omitempty"`
	}
	body := struct {
		Value   *int64   `json:"value,omitempty"`
		Waiting int64    `json:"waiting"`
		Holders []holder `json:"holders,omitempty"`
	}{Waiting: v.Waiting}
	if !v.Fresh {
		body.Value = &v.Held
	}
	for _, h := range v.Holders {
		out := holder{Holder: h.Name, Token: h.Token}
		if h.ExpiresIn > 0 {
			out.ExpiresInMs = new(h.ExpiresIn.Milliseconds())
		}
		body.Holders = append(body.Holders, out)
	}
	return encode(body)
}

// encode returns compact JSON in which nothing is escaped that needs not be.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // the types encoded here cannot fail
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// writeBody answers 200. An error of the connection means nothing to these
// answers: what they tell is done.
func writeBody(w http.ResponseWriter, body []byte) {
	setHeaders(w.Header(), contentJSON, len(body))
	_, _ = w.Write(body)
}

// setHeaders sets the headers of every answer. One array holds the values of
// all, each with a capacity of its own so that nobody appends into the next.
func setHeaders(h http.Header, contentType string, length int) {
	values := [...]string{contentType, "no-store", "nosniff", strconv.Itoa(length)}
	h["Content-Type"] = values[0:1:1]
	h["Cache-Control"] = values[1:2:2] // a cached GET acquire would be a disaster
	h["X-Content-Type-Options"] = values[2:3:3]
	h["Content-Length"] = values[3:4:4]
}

// Problem is an answer that is not a success (RFC 9457).
type Problem struct {
	Status     int
	Detail     string        // what was wrong, with which value
	allow      string        // the Allow header
	retryAfter time.Duration // the Retry-After header, in whole seconds
}

func badRequest(err error) *Problem {
	return &Problem{Status: http.StatusBadRequest, Detail: err.Error()}
}

func notFound(detail string) *Problem {
	return &Problem{Status: http.StatusNotFound, Detail: detail}
}

// Unavailable says that nothing happened and when to try again. At a shutdown
// that differs from client to client, so that they do not come back all at
// once.
func Unavailable(detail string, shutdown bool) *Problem {
	p := &Problem{Status: http.StatusServiceUnavailable, Detail: detail, retryAfter: time.Second}
	if shutdown {
		p.retryAfter += time.Duration(rand.IntN(5)) * time.Second //nolint:gosec // Not a secret.
	}
	return p
}

// WriteNothing ends a request whose client has gone: the status is for the access
// log. A client that closed only its half of the connection sees it too.
func WriteNothing(w http.ResponseWriter, status int) {
	setHeaders(w.Header(), contentJSON, 0)
	w.WriteHeader(status)
}

// WriteProblem answers a request that was not carried out, or may not have been.
func WriteProblem(w http.ResponseWriter, p *Problem) {
	body := encode(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(p.Status), p.Status, p.Detail})
	h := w.Header()
	setHeaders(h, contentProblem, len(body))
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(p.retryAfter/time.Second)))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}
