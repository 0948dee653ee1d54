package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/internal/adminapi"
	"github.com/lockgateway/lockgateway/internal/settings"
)

const (
	// operator is whom this process logs in as to see and change who is a node. It
	// is let into the servers' own account, where these requests go.
	operator = "operator"

	// memberPatience is how long nodes may take to answer.
	memberPatience = 5 * time.Second
)

var (
	errNoLeader  = errors.New("no node leads: there is no majority, or an election, which takes up to ten seconds")
	errNotMember = errors.New("the cluster has no such node")
	errRunning   = errors.New("the node runs, and would join again: stop its Caddy first; that it is gone shows ten seconds later")
	errFewNodes  = fmt.Errorf("the cluster has only %d nodes, and fewer could not miss one: replace this one instead, by one with its name", leastNodes)
	errUnknown   = errors.New("whether the node was removed is not known; see which nodes there are")
	errRefused   = errors.New("the node that leads refuses to remove it")
	errBehind    = errors.New("the others must have all data first, or some could be lost")
)

// ask sends a request to the nodes, and has each answer read until one says that it
// was the last.
func (n *node) ask(ctx context.Context, subject string, request any, read func(answer []byte) (last bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, memberPatience)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	conn, err := client.Connect("", client.InProcessServer(operatorDialer{ctx, n}), client.UserInfo(operator, ""),
		client.NoReconnect(), client.Timeout(memberPatience))
	if err != nil {
		return err
	}
	defer conn.Close()
	inbox := conn.NewInbox()
	answers, err := conn.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	if err := conn.PublishRequest(subject, inbox, body); err != nil {
		return err
	}
	for {
		answer, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		if last, err := read(answer.Data); last || err != nil {
			return err
		}
	}
}

// operatorDialer implements client.InProcessConnProvider.
type operatorDialer struct {
	ctx context.Context //nolint:containedctx // The client's interface takes none.
	*node
}

// InProcessConn connects to the server.
func (d operatorDialer) InProcessConn() (net.Conn, error) { return d.Dial(d.ctx) }

// askLeader sends a request that only the node answers that leads them all.
func (n *node) askLeader(ctx context.Context, subject string, request, answer any) error {
	err := n.ask(ctx, subject, request, func(data []byte) (bool, error) { return true, json.Unmarshal(data, answer) })
	if errors.Is(err, client.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded) {
		return errNoLeader
	}
	return err
}

// members lists the nodes of the cluster by their names.
func (n *node) members(ctx context.Context) ([]adminapi.Node, error) {
	var answer struct {
		Data struct {
			Meta *server.MetaClusterInfo `json:"meta_cluster"`
		} `json:"data"`
	}
	if err := n.askLeader(ctx, "$SYS.REQ.SERVER.PING.JSZ", server.JSzOptions{LeaderOnly: true}, &answer); err != nil {
		return nil, err
	}
	meta := answer.Data.Meta
	if meta == nil {
		return nil, errNoLeader
	}
	list := []adminapi.Node{{Node: meta.Leader, ID: meta.Peer, Leader: true, Online: true}}
	for _, p := range meta.Replicas {
		name := p.Name
		if !settings.IsName(name) {
			name = "" // it tells that there is none
		}
		// Of a node that was killed it may be told for minutes that it is online.
		list = append(list, adminapi.Node{Node: name, ID: p.Peer, Online: !p.Offline && p.Active < sightHolds})
	}
	unheard, err := n.askHealth(ctx, list)
	if err != nil {
		return nil, err
	}
	for _, p := range meta.Replicas {
		if m := unheard[p.Name]; m != nil {
			m.Online = p.Active > 0 // else whoever leads has not heard of it either
		}
	}
	slices.SortFunc(list, func(a, b adminapi.Node) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}

// askHealth asks those who are online whether they have their data, and returns those
// who did not answer.
func (n *node) askHealth(ctx context.Context, list []adminapi.Node) (unheard map[string]*adminapi.Node, err error) {
	unheard = make(map[string]*adminapi.Node)
	for i := range list {
		m := &list[i]
		m.Self = m.Node == n.settings.cluster.Node
		if m.Online {
			unheard[m.Node] = m
			m.Problem = "it does not answer"
		}
	}
	err = n.ask(ctx, "$SYS.REQ.SERVER.PING.HEALTHZ", server.HealthzOptions{Details: true}, func(data []byte) (bool, error) {
		var answer struct {
			Server server.ServerInfo   `json:"server"`
			Data   server.HealthStatus `json:"data"`
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return false, err
		}
		if m := unheard[answer.Server.Name]; m != nil {
			delete(unheard, answer.Server.Name)
			m.Current, m.Problem = answer.Data.Status == "ok", ""
			if !m.Current {
				m.Problem = cmp.Or(answer.Data.Error, "it is not well")
				if len(answer.Data.Errors) > 0 {
					m.Problem = answer.Data.Errors[0].Error
				}
			}
		}
		return len(unheard) == 0, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil
	}
	return unheard, err
}

// moving returns a stream that is not yet, or not any more, on as many nodes as it is to
// be on, or "". Nodes are well already when a stream has yet to be given to one of them.
// One node may be left out of account.
func (n *node) moving(ctx context.Context, list []adminapi.Node, without string) (string, error) {
	online, answered := 0, 0
	for _, m := range list {
		if m.Online {
			online++
		}
	}
	settled := make(map[string]bool)
	request := server.JSzOptions{Accounts: true, Streams: true, Config: true}
	err := n.ask(ctx, "$SYS.REQ.SERVER.PING.JSZ", request, func(data []byte) (bool, error) {
		var answer struct {
			Server server.ServerInfo `json:"server"`
			Data   server.JSInfo     `json:"data"`
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return false, err
		}
		for _, a := range answer.Data.AccountDetails {
			for _, d := range a.Streams {
				led := d.Cluster != nil && d.Cluster.Leader == answer.Server.Name // others do not know
				settled[d.Name] = settled[d.Name] || led && isSettled(d, without)
			}
		}
		answered++
		return answered >= online, nil
	})
	if err != nil && (!errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil) {
		return "", err
	}
	for name, is := range settled {
		if !is {
			return name, nil
		}
	}
	return "", nil
}

// isSettled judges by what a stream's leader tells.
func isSettled(d server.StreamDetail, without string) bool {
	if d.Config == nil || d.Cluster.Desired != nil || len(d.Cluster.Replicas)+1 < d.Config.Replicas {
		return false
	}
	return !slices.ContainsFunc(d.Cluster.Replicas, func(p *server.PeerInfo) bool {
		return p.Peer != without && (!p.Current || p.Offline || p.Pending)
	})
}

// remove makes a node that is gone count no more, and returns its name. What it kept is
// copied to another node.
func (n *node) remove(ctx context.Context, nameOrID string) (string, error) {
	all, err := n.members(ctx)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(all, func(m adminapi.Node) bool { return m.Node == nameOrID || m.ID == nameOrID })
	switch {
	case at < 0 || nameOrID == "":
		return "", errNotMember
	case all[at].Online:
		return "", errRunning
	case len(all) <= leastNodes:
		return "", errFewNodes
	}
	for i, m := range all {
		if i != at && !m.Current {
			return "", fmt.Errorf("%w: node %s is not there or may be behind", errBehind, cmp.Or(m.Node, m.ID))
		}
	}
	moving, err := n.moving(ctx, all, all[at].ID)
	if err != nil {
		return "", err
	}
	if moving != "" {
		return "", fmt.Errorf("%w: the stream %s is not on all nodes yet that it is to be on", errBehind, moving)
	}
	var answer server.JSApiMetaServerRemoveResponse
	request := server.JSApiMetaServerRemoveRequest{Peer: all[at].ID}
	if err := n.askLeader(ctx, server.JSApiRemoveServer, request, &answer); err != nil {
		return "", fmt.Errorf("%w: %w", errUnknown, err) // a leader that was deposed does not answer
	}
	if answer.Error != nil {
		return "", fmt.Errorf("%w: %w", errRefused, answer.Error)
	}
	name := cmp.Or(all[at].Node, all[at].ID)
	n.logger.Load().Info("an operator removed a node of the cluster", zap.String("node", name))
	return name, nil
}
