package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

const (
	lockFile  = "lock"
	ownerFile = "owner.json"
	tryFile   = "try"

	// trySize is how much room there must be for a server to go on that had none,
	// in bytes. It has to do more than the next write.
	trySize = 1 << 20
)

// owner says whose data a folder has.
type owner struct {
	Version string `json:"nats_server"` // the last that wrote to it
	Cluster string `json:"cluster,omitempty"`
	Node    string `json:"node,omitempty"`
}

// folder is the data of a server, which this process owns until it is released.
type folder struct{ lock *fileutil.LockedFile }

// claim takes the folder. Its errors name it.
func (s serverSettings) claim() (*folder, error) {
	if err := s.makeFolder(); err != nil {
		return nil, fmt.Errorf("dir: %w", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(s.dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("dir: another process has %s; end it, or give each a folder of its own", s.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("dir: %s cannot be written to: %w", s.dir, err)
	}
	f := &folder{lock: lock}
	if err := s.sign(); err != nil {
		return nil, errors.Join(fmt.Errorf("dir: %w", err), f.release())
	}
	return f, nil
}

// tryWriting reports why the folder takes no more, or nil.
func (s serverSettings) tryWriting() error {
	path := filepath.Join(s.dir, tryFile)
	err := os.WriteFile(path, make([]byte, trySize), 0o600)
	return errors.Join(err, os.Remove(path))
}

// release gives the folder up.
func (f *folder) release() error { return f.lock.Close() }

func (s serverSettings) makeFolder() error {
	if !s.given {
		return os.MkdirAll(s.dir, 0o700)
	}
	info, err := os.Stat(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Made here it would be empty, and hide that a disk is not mounted.
		return fmt.Errorf("%s does not exist; make it, or mount what it is on", s.dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", s.dir)
	}
	return nil
}

// sign checks whose data the folder has, and writes that it is ours.
func (s serverSettings) sign() error {
	path := filepath.Join(s.dir, ownerFile)
	ours := owner{Version: server.VERSION}
	if s.cluster != nil {
		ours.Cluster, ours.Node = s.cluster.Name, s.cluster.Node
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		var theirs owner
		if err := json.Unmarshal(text, &theirs); err != nil {
			return fmt.Errorf("%s is damaged: %w", path, err)
		}
		if theirs == ours {
			return nil
		}
		if err := ours.mayTake(theirs); err != nil {
			return fmt.Errorf("%s %w", s.dir, err)
		}
	}
	if text, err = json.Marshal(ours); err != nil {
		return err
	}
	return replaceFile(path, text)
}

// replaceFile writes all of a file, or nothing, also if the power fails.
func replaceFile(path string, text []byte) error {
	next := path + ".next"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = fileutil.Fsync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	dir, err := fileutil.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(fileutil.Fsync(dir), dir.Close())
}

// mayTake returns why a folder cannot be used, or nil. A server would delete what a
// cluster it joins does not know of.
func (o owner) mayTake(theirs owner) error {
	switch {
	case newer(theirs.Version, o.Version):
		return fmt.Errorf("was written by nats-server %s; this Caddy has %s, which may not be able to read it", theirs.Version, o.Version)
	case theirs.Cluster == "" && o.Cluster != "":
		return errors.New("has the data of a server that is alone; a node of a cluster cannot use it")
	case theirs.Cluster != o.Cluster || theirs.Node != o.Node:
		return fmt.Errorf("has the data of the node %q of the cluster %q; only that can use it", theirs.Node, theirs.Cluster)
	}
	return nil
}

// newer reports whether version a is of a later release than b. Those that differ
// in their patch number only read each other's data.
func newer(a, b string) bool {
	var aMajor, aMinor, bMajor, bMinor int
	if _, err := fmt.Sscanf(a, "%d.%d.", &aMajor, &aMinor); err != nil {
		return false
	}
	if _, err := fmt.Sscanf(b, "%d.%d.", &bMajor, &bMinor); err != nil {
		return false
	}
	return aMajor > bMajor || aMajor == bMajor && aMinor > bMinor
}
