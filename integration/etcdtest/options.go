package etcdtest

import "time"

// Options are settings of servers. The zero value has etcd's defaults, without
// encryption and authentication.
type Options struct {
	// QuotaBytes is the size at which the database refuses writes.
	QuotaBytes int64

	// KeepRevisions makes the servers compact away all but so many revisions,
	// every five minutes.
	KeepRevisions int

	// TLS makes the servers take encrypted connections only, from clients with
	// a certificate of Cluster.Certificates.
	TLS bool

	// Auth makes the servers ask for a password: that of Root, or that of User,
	// who may use the keys that begin with UserPrefix.
	Auth       bool
	UserPrefix string

	// Heartbeat and Election are the times of the leader's election.
	Heartbeat, Election time.Duration

	// Checkpoint keeps what is left of leases across a change of the leader.
	Checkpoint bool
}

// Who may log in to servers with Options.Auth.
const (
	Root         = "root"
	RootPassword = "root-password"
	User         = "gateway"
	UserPassword = "gateway-password"
)
