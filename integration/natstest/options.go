package natstest

// Options are settings of servers. The zero value has the defaults of NATS, with
// JetStream, without encryption and authentication.
type Options struct {
	// SyncAlways makes the servers sync each write to disk before they acknowledge
	// it.
	SyncAlways bool

	// TLS makes the servers take encrypted connections only, from clients with a
	// certificate of Cluster.Certificates.
	TLS bool

	// Auth makes the servers ask for a password: that of Root, or that of User, who
	// may use the given bucket and nothing else; or for the seed in Cluster.Seed.
	Auth   bool
	Bucket string

	// ReadOnly keeps User from writing to the bucket.
	ReadOnly bool

	// Domain is the JetStream domain of the servers.
	Domain string

	// NoAdvertise keeps the servers from telling clients of each other.
	NoAdvertise bool

	// WithoutJetStream leaves that out.
	WithoutJetStream bool
}

// Who may log in to servers with Options.Auth.
const (
	Root         = "root"
	RootPassword = "root-password"
	User         = "gateway"
	UserPassword = "gateway-password"
)
