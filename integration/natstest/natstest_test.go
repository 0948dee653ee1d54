package natstest_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/lockgateway/lockgateway/integration/natstest"
	"github.com/lockgateway/lockgateway/integration/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const stream = "STREAM"

// makeStream makes a stream on all servers.
func makeStream(t *testing.T, c *natstest.Cluster) jetstream.JetStream {
	t.Helper()
	js := c.JetStream(t)
	process.Await(t, "a stream is made", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: stream, Subjects: []string{"s.>"}, Replicas: len(c.Members())})
		return err == nil
	})
	return js
}

// put writes a message until that succeeds.
func put(t *testing.T, js jetstream.JetStream, subject string) {
	t.Helper()
	process.Await(t, "a write succeeds", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := js.Publish(ctx, subject, nil)
		return err == nil
	})
}

// expectMessage checks that a message is there, once the servers answer.
func expectMessage(t *testing.T, js jetstream.JetStream, subject string) {
	t.Helper()
	process.Await(t, subject+" is there", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		s, err := js.Stream(ctx, stream)
		if err != nil {
			return false
		}
		_, err = s.GetLastMsgForSubject(ctx, subject)
		return err == nil
	})
}

func TestKilledServerKeepsItsData(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{SyncAlways: true})
	js := makeStream(t, c)
	put(t, js, "s.a")
	m := c.Members()[0]
	m.Kill(t)
	m.Restart(t)
	expectMessage(t, js, "s.a")
}

func TestClusterOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	c := natstest.StartCluster(t, 3, natstest.Options{})
	js := makeStream(t, c)
	put(t, js, "s.first")
	first := c.Leader(t, stream)
	first.Kill(t)
	put(t, js, "s.second")
	if second := c.Leader(t, stream); second == first {
		t.Fatalf("%s leads after its death", first.Name)
	}
	first.Restart(t)
	second := c.Leader(t, stream)
	second.Pause(t)
	put(t, js, "s.third")
	second.Resume(t)
	for _, subject := range []string{"s.first", "s.second", "s.third"} {
		expectMessage(t, js, subject)
	}
	before := c.Leader(t, stream)
	c.StepDown(t, stream)
	process.Await(t, "another leads", func() bool { return c.Leader(t, stream) != before })
	if others := c.Others(before); len(others) != 2 {
		t.Errorf("there are %d others", len(others))
	}
}

func TestServersAskForCertificatesAndPasswords(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{TLS: true, Auth: true, Bucket: "b", Domain: "hub"})
	put(t, makeStream(t, c), "s.a")
	tls := nats.Secure(c.Certificates.ClientTLS(t))
	seed, err := nats.NkeyOptionFromSeed(c.Seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		options []nats.Option
		ok      bool
	}{
		{"no certificate", []nats.Option{nats.UserInfo(natstest.User, natstest.UserPassword)}, false},
		{"no password", []nats.Option{tls}, false},
		{"password", []nats.Option{tls, nats.UserInfo(natstest.User, natstest.UserPassword)}, true},
		{"seed", []nats.Option{tls, seed}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, err := nats.Connect(c.Members()[0].URL(), append(test.options, nats.Timeout(process.Soon))...)
			if (err == nil) != test.ok {
				t.Errorf("connecting gave the error %v", err)
			}
			conn.Close()
		})
	}
}

func TestServerWithoutJetStream(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{WithoutJetStream: true})
	if _, err := c.Conn().Request("$JS.API.INFO", nil, process.Soon); err == nil {
		t.Error("somebody answers")
	}
}
