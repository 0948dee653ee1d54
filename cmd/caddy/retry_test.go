package main_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A client whose own time-out is shorter than its wait leaves nothing behind.
func TestB22ClientTimeOutTakesNothing(t *testing.T) {
	s := startServer(t, onlySite, nil)
	for _, test := range []struct {
		name    string
		acquire func(t *testing.T, url string, timeout time.Duration) error // reports what is wrong with its end
	}{
		{"curl", curlTimesOut},
		{"Go", goTimesOut},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := s.within(t)
			anonymous, named := "1/anonymous-"+test.name, "1/named-"+test.name

			s.take(anonymous, "")
			s.timeOutInQueue(anonymous, "", test.acquire)
			s.awaitWaiting(anonymous, 0)
			s.expect("/v1/"+anonymous+"/value", `{"value":1}`)
			s.expect("/v1/"+anonymous+"/release", `{"released":true}`)
			s.expect("/v1/"+anonymous+"/value", `{"value":0}`)

			s.take(named, "")
			s.timeOutInQueue(named, "holder=h", test.acquire)
			s.awaitWaiting(named, 0)
			s.expect("/v1/"+named+"/release", `{"released":true}`)
			s.expect("/v1/"+named+"/value", `{"value":0}`)
			token := s.take(named, "holder=h").Token
			if again := s.take(named, "holder=h"); again.Token != token || again.Value != 1 {
				t.Errorf("the repeated acquire answers %+v, want token %d and value 1", again, token)
			}
		})
	}

	// The client gave up when the slot was its own already.
	t.Run("answer not read", func(t *testing.T) {
		s := s.within(t)
		conn := s.dial(s.site)
		conn.send("/v1/1/unread/acquire?holder=h")
		await(t, "the slot is taken", func() bool { return s.state("1/unread").Value == 1 })
		conn.close()
		token := s.state("1/unread").Holders[0].Token

		again := s.take("1/unread", "holder=h&"+forLong)
		if again.Token != token || again.Value != 1 {
			t.Errorf("the repeated acquire answers %+v, want token %d and value 1", again, token)
		}
		s.expect("/v1/1/unread/release?holder=h", `{"released":true}`)
		s.expect("/v1/1/unread/value", `{"value":0}`)
	})
}

// timeOutInQueue lets a client wait for a lock until its time-out. In a slow
// minute that can pass before the request has its place, which tests nothing;
// then the client gets more time.
func (s *server) timeOutInQueue(lock, query string, acquire func(t *testing.T, url string, timeout time.Duration) error) {
	s.t.Helper()
	url := "http://" + s.site + "/v1/" + lock + "/acquire?" + forLong + "&" + query
	for timeout := time.Second; timeout <= soon; timeout *= 2 {
		ended := make(chan error, 1)
		go func() { ended <- acquire(s.t, url, timeout) }() // ends with the client

		queued := false
		var err error
		await(s.t, "the client gives up", func() bool {
			queued = queued || s.state(lock).Waiting == 1
			select {
			case err = <-ended:
				return true
			default:
				return false
			}
		})
		if err != nil {
			s.t.Fatal(err)
		}
		if queued {
			return
		}
	}
	s.t.Fatal("no request was ever seen in the queue")
}

func curlTimesOut(t *testing.T, url string, timeout time.Duration) error {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Log("without curl:", err)
		return goTimesOut(t, url, timeout)
	}
	seconds := strconv.FormatFloat(timeout.Seconds(), 'f', -1, 64)
	err = exec.CommandContext(t.Context(), curl, "--silent", "--max-time", seconds, url).Run()
	const timedOut = 28
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != timedOut {
		return errors.Join(errors.New("curl did not time out"), err)
	}
	return nil
}

func goTimesOut(t *testing.T, url string, timeout time.Duration) error {
	client := &http.Client{Transport: &http.Transport{}, Timeout: timeout}
	defer client.CloseIdleConnections()
	_, err := fetch(t.Context(), client, url)
	var netErr net.Error
	if !errors.As(err, &netErr) || !netErr.Timeout() {
		return errors.Join(errors.New("the client did not time out"), err)
	}
	return nil
}

// HTTP clients and proxies repeat a GET by themselves when its connection dies.
func TestB23RepeatedGetTakesOneSlot(t *testing.T) {
	const config = `{
	admin ADMIN
	default_bind 127.0.0.1
}
http://SITE {
	lock_gateway
}
http://OTHER {
	reverse_proxy CUTTER {
		lb_retries 5
	}
}
`
	cut := newCutter(t)
	s := startServer(t, config, map[string]string{"CUTTER": cut.address()})
	cut.forwardTo(s.site)

	// The second attempt is there before the server knows that the first is dead.
	t.Run("by hand", func(t *testing.T) {
		s := s.within(t)
		s.take("1/hand", "")
		first, second := s.dial(s.site), s.dial(s.site)
		first.send("/v1/1/hand/value") // which makes it a reused connection
		if a := first.receive(); a.body != `{"value":1}` {
			t.Fatal(a)
		}
		first.send("/v1/1/hand/acquire?" + forLong)
		s.awaitWaiting("1/hand", 1)
		second.send("/v1/1/hand/acquire?" + forLong)
		s.awaitWaiting("1/hand", 2)
		first.close()
		s.awaitWaiting("1/hand", 1)

		s.expect("/v1/1/hand/release", `{"released":true}`)
		if a := second.receive(); a.body != `{"acquired":true,"value":1}` {
			t.Fatal(a)
		}
		s.expect("/v1/1/hand/value?detail=1", `{"value":1,"waiting":0}`)
	})

	for _, test := range []struct {
		name, address, query string
	}{
		{"by Go's client", cut.address(), ""},
		{"by Go's client with a holder", cut.address(), "holder=h"},
		{"by a proxy", s.other, ""},
		{"by a proxy with a holder", s.other, "holder=h"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := s.within(t)
			lock := "1/" + url.PathEscape(test.name)
			s.take(lock, "")
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			// Go repeats a request only if its connection has served one before.
			mustFetch(t, client, "http://"+test.address+"/v1/"+lock+"/value")

			w := queueBy(t, client, test.address, lock, test.query)
			s.awaitWaiting(lock, 1)
			cut.cut()
			defer cut.mend() // also for the tests that follow if this one fails
			s.awaitWaiting(lock, 0)
			cut.mend()
			s.awaitWaiting(lock, 1)
			w.expectWaiting(t)

			s.expect("/v1/"+lock+"/release", `{"released":true}`)
			if g := w.expectGrant(t); g.Value != 1 {
				t.Errorf("the grant says that there are %d holders", g.Value)
			}
			if st := s.state(lock); st.Value != 1 || st.Waiting != 0 {
				t.Errorf("the lock reads %+v, want one holder and nobody waiting", st)
			}
		})
	}

	// A holder finds the slot again that it was never told of.
	t.Run("by a proxy that got no answer", func(t *testing.T) {
		s := s.within(t)
		const lost = 3
		cut.lose(lost)
		g, err := parseGrant(mustFetch(t, s.client, "http://"+s.other+"/v1/5/lost/acquire?holder=h"))
		if err != nil {
			t.Fatal(err)
		}
		if g.Value != 1 {
			t.Errorf("the answer says that there are %d holders", g.Value)
		}
		answers := cut.lostAnswers()
		if len(answers) != lost {
			t.Errorf("%d answers were lost, want %d", len(answers), lost)
		}
		token := fmt.Sprintf(`"token":%d}`, g.Token)
		for _, earlier := range answers {
			if !strings.Contains(earlier, token) {
				t.Errorf("an answer that was lost has not %s:\n%s", token, earlier)
			}
		}
		if st := s.state("5/lost"); st.Value != 1 || len(st.Holders) != 1 || st.Holders[0].Token != g.Token {
			t.Errorf("the lock reads %+v, want one holder with token %d", st, g.Token)
		}
	})
}
