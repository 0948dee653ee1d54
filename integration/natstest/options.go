package natstest

import "strings"

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

	// Operator makes the servers trust an operator, as nsc sets it up, and take
	// clients with credentials: those in Cluster.Credentials may use the given bucket
	// and nothing else.
	Operator bool

	// Token makes the servers ask for it.
	Token string

	// ReadOnly keeps User from writing to the bucket.
	ReadOnly bool

	// Domain is the JetStream domain of the servers, which let leaf nodes connect.
	Domain string

	// Hub is what the servers are leaf nodes of, if any.
	Hub *Cluster

	// NoAdvertise keeps the servers from telling clients of each other.
	NoAdvertise bool

	// Relayed lets the servers reach each other through Cluster.Routes only.
	Relayed bool

	// Version is that of the servers, such as v2.10.29. Default: what the module's
	// go.mod pins
	Version string

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

// subjects that a gateway needs, of which the docs tell.
func (o Options) subjects() (publish, subscribe []string) {
	for _, call := range []string{"INFO", "CREATE", "MSG.GET"} {
		publish = append(publish, "$JS.API.STREAM."+call+".KV_"+o.Bucket)
	}
	if !o.ReadOnly {
		publish = append(publish, "$KV."+o.Bucket+".>")
	}
	return publish, []string{"lockgateway." + o.Bucket + ".>", "_INBOX.>"}
}

// quoted is a list of texts as the servers' config has it.
func quoted(texts []string) string {
	if len(texts) == 0 {
		return "[]"
	}
	return `["` + strings.Join(texts, `", "`) + `"]`
}
