package nats

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
)

// scripted is what a server of NATS looks like that answers publications with the
// given answers, one after the other, and then not at all; and all reads with the
// same. Its stream is kept by so many servers.
type scripted struct {
	address  string
	replicas int
	read     string

	mu      sync.Mutex // guards what follows
	last    uint64     // what the stream says that its last sequence is
	mute    bool       // it says nothing
	answers []string
	sent    []nats.Header // of publications
}

// What the scripted server may answer.
const (
	silence      = ""
	noResponders = "503"
)

func apiError(code int, description string) string {
	return fmt.Sprintf(`{"stream":"KV_b","seq":0,"error":{"code":400,"err_code":%d,"description":%q}}`, code, description)
}

func acknowledged(sequence uint64) string {
	return fmt.Sprintf(`{"stream":"KV_b","seq":%d}`, sequence)
}

// storeAt opens a store at a scripted server, one of three.
func storeAt(t *testing.T, read string, answers ...string) (*scripted, *Store) {
	t.Helper()
	return storeOn(t, 3, read, answers...)
}

// storeOn opens a store at a scripted server.
func storeOn(t *testing.T, replicas int, read string, answers ...string) (*scripted, *Store) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{address: l.Addr().String(), replicas: replicas, read: read, last: 5, answers: answers}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			serving.Go(func() { s.serve(conn) })
		}
	})
	store, err := Open(Options{
		Connection:     Connection{Servers: []string{"nats://" + s.address}, DialTimeout: 10 * time.Second},
		Name:           "b",
		RequestTimeout: 10 * time.Second,
		SessionTTL:     time.Hour,
		ForgetAfter:    24 * time.Hour,
		Logger:         zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = store.Close()
		_ = l.Close()
		serving.Wait()
	})
	return s, store
}

// serve speaks the protocol to a client until it hangs up.
func (s *scripted) serve(conn net.Conn) {
	defer conn.Close()
	fmt.Fprintf(conn, "INFO {\"server_id\":\"s\",\"version\":\"2.15.3\",\"proto\":1,\"headers\":true,\"max_payload\":1048576}\r\n")
	lines := bufio.NewReader(conn)
	inbox := "" // the client's first subscription is for answers
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		switch words[0] {
		case "PING":
			fmt.Fprint(conn, "PONG\r\n")
		case "SUB":
			inbox = cmp.Or(inbox, words[len(words)-1])
		case "PUB", "HPUB":
			size, _ := strconv.Atoi(words[len(words)-1])
			body := make([]byte, size+2)
			if _, err := io.ReadFull(lines, body); err != nil {
				return
			}
			header := 0
			if words[0] == "HPUB" {
				header, _ = strconv.Atoi(words[3])
			}
			s.answer(conn, inbox, words[1], words[2], body[:header])
		}
	}
}

func (s *scripted) answer(conn io.Writer, inbox, subject, reply string, header []byte) {
	var text string
	switch {
	case strings.HasPrefix(subject, "$JS.API.STREAM.INFO."):
		text = s.streamInfo()
	case strings.HasPrefix(subject, "$JS.API.STREAM.MSG.GET."):
		text = s.read
	default:
		text = s.next(header)
	}
	switch text {
	case silence:
	case noResponders:
		const status = "NATS/1.0 503\r\n\r\n"
		fmt.Fprintf(conn, "HMSG %s %s %d %d\r\n%s\r\n", reply, inbox, len(status), len(status), status)
	default:
		fmt.Fprintf(conn, "MSG %s %s %d\r\n%s\r\n", reply, inbox, len(text), text)
	}
}

// next notes a publication and returns its answer.
func (s *scripted) next(header []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := nats.DecodeHeadersMsg(header)
	if err != nil {
		return err.Error()
	}
	s.sent = append(s.sent, h)
	if len(s.answers) == 0 {
		return silence
	}
	text := s.answers[0]
	s.answers = s.answers[1:]
	var ack struct {
		Sequence uint64 `json:"seq"`
	}
	if json.Unmarshal([]byte(text), &ack) == nil {
		s.last = max(s.last, ack.Sequence)
	}
	return text
}

// expected returns the last sequences that publications named.
func (s *scripted) expected() (sequences []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.sent {
		sequences = append(sequences, h.Get(nats.ExpectedLastSubjSeqHdr))
	}
	return sequences
}

func (s *scripted) streamInfo() string {
	config, err := json.Marshal(Bucket{Replicas: s.replicas}.config(newKeyspace("", "b")))
	if err != nil {
		return err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mute {
		return silence
	}
	return fmt.Sprintf(`{"type":"io.nats.jetstream.api.v1.stream_info_response","config":%s,"created":"2026-01-02T03:04:05Z","state":{"last_seq":%d}}`, config, s.last)
}
