package adminapi

// The routes about the nodes of a cluster of embedded NATS servers.
const (
	NodesRoute      = "nodes"
	RemoveNodeRoute = "remove_node"
)

// Nodes are the nodes of a cluster of embedded NATS servers.
type Nodes struct {
	Cluster string `json:"cluster"`
	Nodes   []Node `json:"nodes"`

	// Moving is a stream that is not on as many nodes as it is to be on.
	Moving string `json:"moving,omitempty"`
}

// Node is one of them, as the one that leads sees it.
type Node struct {
	Node   string `json:"node"` // its name; "" if the leader has not heard of it since it leads
	ID     string `json:"id"`   // what the cluster knows it by in any case
	Self   bool   `json:"self,omitempty"`
	Leader bool   `json:"leader,omitempty"`
	Online bool   `json:"online"`

	// Current tells that it has all data that it is to keep; Problem, what it says
	// else.
	Current bool   `json:"current"`
	Problem string `json:"problem,omitempty"`
}

// RemovedNode tells that a node does not count any more.
type RemovedNode struct {
	Cluster string `json:"cluster"`
	Removed string `json:"removed"` // its name, or its ID
}
