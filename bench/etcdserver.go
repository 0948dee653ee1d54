package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdServers is one etcd server, or several that keep the same data.
type etcdServers struct {
	members
	endpoints []string
	clients   []*clientv3.Client
}

// startEtcd runs n servers with their data in dir, and returns when they serve.
func startEtcd(ctx context.Context, dir string, n int) (*etcdServers, error) {
	if err := checkDisk(dir); err != nil {
		return nil, err
	}
	binary, err := toolBinary(ctx, "go.etcd.io/etcd/server/v3")
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(2 * n)
	if err != nil {
		return nil, err
	}
	var peers []string
	clients, cluster := addresses[:n], addresses[n:]
	for i, address := range cluster {
		peers = append(peers, fmt.Sprintf("etcd-%d=http://%s", i+1, address))
	}
	e := new(etcdServers)
	for i := range n {
		client, peer := "http://"+clients[i], "http://"+cluster[i]
		s, err := launch(binary, []string{
			fmt.Sprintf("--name=etcd-%d", i+1),
			"--data-dir=" + filepath.Join(dir, fmt.Sprintf("etcd-%d", i+1)),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=" + strings.Join(peers, ","),
			"--log-level=error",
		}, nil)
		if err != nil {
			return nil, errors.Join(err, e.stop())
		}
		e.members = append(e.members, s)
		e.endpoints = append(e.endpoints, client)
	}
	for i, s := range e.members {
		if err := s.waitFor(ctx, clients[i]); err != nil {
			return nil, errors.Join(err, e.stop())
		}
	}
	for range gatewayCount {
		if err := e.connect(ctx); err != nil {
			return nil, errors.Join(err, e.stop())
		}
	}
	return e, nil
}

// connect adds a client of all members, which has found them serving.
func (e *etcdServers) connect(ctx context.Context) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: e.endpoints, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	e.clients = append(e.clients, client)
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for { // a cluster refuses requests until it has a leader
		if _, err = client.Get(ctx, "any"); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("etcd does not answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (e *etcdServers) stop() error {
	for _, client := range e.clients {
		_ = client.Close()
	}
	return e.members.stop()
}
